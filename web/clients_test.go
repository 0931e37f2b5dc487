package web

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// fakeConn is a connection that knows whether it was closed.
type fakeConn struct {
	net.Conn
	name   string
	closed *[]string
}

func (c *fakeConn) Close() error {
	*c.closed = append(*c.closed, c.name)
	return nil
}

func TestClients(t *testing.T) {
	const opened, busy, idle, gone = http.StateNew, http.StateActive, http.StateIdle, http.StateClosed
	type event struct {
		conn  string
		state http.ConnState
	}
	for _, row := range []struct {
		name   string
		events []event
		want   []string // closed, in order
	}{
		{"as many as may be", []event{{"a", opened}, {"b", opened}, {"c", opened}}, nil},
		{"one more, all busy", []event{{"a", opened}, {"b", opened}, {"c", opened}, {"a", busy}, {"d", opened}}, []string{"d"}},
		{"one more, one idle", []event{{"a", opened}, {"b", opened}, {"c", opened}, {"b", idle}, {"d", opened}}, []string{"b"}},
		{"the one that is idle for longest", []event{{"a", opened}, {"b", opened}, {"c", opened}, {"c", idle}, {"a", idle}, {"d", opened}, {"e", opened}}, []string{"c", "a"}},
		{"busy again", []event{{"a", opened}, {"b", opened}, {"c", opened}, {"c", idle}, {"a", idle}, {"c", busy}, {"d", opened}}, []string{"a"}},
		{"one has gone", []event{{"a", opened}, {"b", opened}, {"c", opened}, {"b", gone}, {"d", opened}}, nil},
		{"one was taken over", []event{{"a", opened}, {"b", opened}, {"c", opened}, {"b", http.StateHijacked}, {"d", opened}}, nil},
		{"what a closed one still says", []event{{"a", opened}, {"b", opened}, {"c", opened}, {"b", idle}, {"d", opened}, {"b", idle}, {"b", gone}, {"c", gone}, {"e", opened}, {"f", opened}}, []string{"b", "f"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var closed []string
				conns := map[string]*fakeConn{}
				c := newClients(3)
				for _, e := range row.events {
					if conns[e.conn] == nil {
						conns[e.conn] = &fakeConn{name: e.conn, closed: &closed}
					}
					c.changed(conns[e.conn], e.state)
					time.Sleep(time.Second)
				}
				if !slices.Equal(closed, row.want) {
					t.Errorf("closed %v, want %v", closed, row.want)
				}
				if len(c.open) > 3 {
					t.Errorf("%d connections are known of", len(c.open))
				}
			})
		})
	}
}

// TestManyConnections opens three times as many as may be, each of which asks
// once and stays: the newest always gets its answer, and most of them are gone.
func TestManyConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }), slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	var all []net.Conn
	for i := range 3 * MaxClients {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
		if !asks(conn) {
			t.Fatalf("connection %d got no answer", i)
		}
	}
	alive := 0
	for _, conn := range all {
		if asks(conn) {
			alive++
		}
		_ = conn.Close()
	}
	// Before the server notices that one is idle, it is none to be closed.
	if alive < MaxClients/2 || alive > MaxClients {
		t.Errorf("%d of %d connections are alive, want at most %d", alive, len(all), MaxClients)
	}
	_ = s.Close()
	<-ended
}

// asks reports whether a connection gets an answer.
func asks(conn net.Conn) bool {
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		return false
	}
	n, err := conn.Read(make([]byte, 4096))
	return err == nil && n > 0
}

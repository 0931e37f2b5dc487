package testbed

import (
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// newClient returns a client that trusts a and opens the connections that it
// needs, with a session cache of its own.
func newClient(t *testing.T, a *testcert.CA) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs:            a.Pool(),
		ServerName:         "localhost",
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// get sends a request and returns the status and the body of the answer.
func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	code, body, err := fetch(c, url)
	if err != nil {
		t.Fatalf("requesting %q: %v", url, err)
	}
	return code, body
}

func TestNGINXCountsWhatItServes(t *testing.T) {
	n := NGINX(t, NGINXOptions{AccessLog: true})
	c := newClient(t, n.CA)
	if got := n.Counters(); got != (NGINXCounters{}) {
		t.Errorf("counters before any request = %+v, want none", got)
	}
	for range 3 {
		code, body := get(t, c, "http://"+n.HTTP+"/")
		if code != 200 || body != Body() {
			t.Fatalf("answer = %d %q, want 200 and the body", code, body)
		}
	}
	if code, _ := get(t, c, "http://"+n.HTTP+"/status/503"); code != 503 {
		t.Errorf("status = %d, want 503", code)
	}
	if code, body := get(t, c, "https://"+n.HTTPS+"/"); code != 200 || body != Body() {
		t.Errorf("answer over TLS = %d %q, want 200 and the body", code, body)
	}
	// 4 requests on one connection, 1 on another.
	want := NGINXCounters{Accepts: 2, Handled: 2, Requests: 5}
	if got := n.Counters(); got != want {
		t.Errorf("counters = %+v, want %+v", got, want)
	}
	n.Reload()
	if got := n.Counters(); got != want {
		t.Errorf("counters after a reload = %+v, want %+v", got, want)
	}
	log := n.Log()
	if log.Requests != 5 || log.Connections != 2 || log.Full != 1 || log.Resumed != 0 || log.Codes[503] != 1 || log.Codes[200] != 4 {
		t.Errorf("log = %+v, want 5 requests, one of them 503, on 2 connections, one with a full handshake", log)
	}
}

func TestNGINXHandshakes(t *testing.T) {
	for _, row := range []struct {
		name          string
		options       NGINXOptions
		full, resumed uint64
		version       string
	}{
		{"both versions resume", NGINXOptions{}, 1, 2, "TLSv1.3"},
		{"1.2 resumes", NGINXOptions{TLS: TLS12}, 1, 2, "TLSv1.2"},
		{"1.3 resumes", NGINXOptions{TLS: TLS13}, 1, 2, "TLSv1.3"},
		{"1.2 without tickets resumes by cache", NGINXOptions{TLS: TLS12, NoTickets: true}, 3, 0, "TLSv1.2"}, // Go's client has no session ids
		{"neither tickets nor cache", NGINXOptions{NoTickets: true, NoSessionCache: true}, 3, 0, "TLSv1.3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.options.AccessLog = true
			n := NGINX(t, row.options)
			c := newClient(t, n.CA)
			for range 3 {
				get(t, c, "https://"+n.HTTPS+"/")
				c.CloseIdleConnections()
			}
			log := n.Log()
			if log.Full != row.full || log.Resumed != row.resumed || log.Versions[row.version] != 3 {
				t.Errorf("log = %+v, want %d full and %d resumed handshakes of %s", log, row.full, row.resumed, row.version)
			}
		})
	}
}

func TestNGINXReloadReplacesTheWorker(t *testing.T) {
	n := NGINX(t, NGINXOptions{})
	before := n.worker()
	n.Reload()
	if after := n.worker(); after == before || after == 0 {
		t.Errorf("worker after the reload = %d, before = %d, want another", after, before)
	}
	get(t, newClient(t, n.CA), "http://"+n.HTTP+"/")
}

func TestNGINXStall(t *testing.T) {
	n := NGINX(t, NGINXOptions{})
	c := newClient(t, n.CA)
	get(t, c, "http://"+n.HTTP+"/")
	stalledAnswers(t, n.Stall, func() { get(t, c, "http://"+n.HTTP+"/") })
}

// stalledAnswers checks that requests wait while a door is stalled, and are
// answered afterwards.
func stalledAnswers(t *testing.T, stall func(time.Duration), request func()) {
	t.Helper()
	const length = 200 * time.Millisecond
	over := make(chan struct{})
	go func() {
		defer close(over)
		stall(length)
	}()
	for slowest := time.Duration(0); slowest < length/2; {
		select {
		case <-over:
			t.Fatalf("no request took longer than %v while the door was stalled for %v", slowest, length)
		default:
		}
		start := time.Now()
		request()
		slowest = max(slowest, time.Since(start))
	}
	<-over
	request()
}

func TestNGINXStopAndStart(t *testing.T) {
	n := NGINX(t, NGINXOptions{AccessLog: true})
	c := newClient(t, n.CA)
	get(t, c, "http://"+n.HTTP+"/")
	n.Stop()
	if code, _, err := fetch(c, "http://"+n.HTTP+"/"); err == nil {
		t.Errorf("a stopped nginx answered %d", code)
	}
	n.Start()
	get(t, c, "http://"+n.HTTP+"/")
	n.Restart()
	get(t, c, "http://"+n.HTTP+"/")
	if got := n.Counters().Requests; got != 1 {
		t.Errorf("requests since the restart = %d, want 1", got)
	}
	if got := n.Log().Requests; got != 3 {
		t.Errorf("requests in the log = %d, want 3", got)
	}
}

func TestNGINXPassesToBackends(t *testing.T) {
	a := NGINX(t, NGINXOptions{Locations: `location = /who { return 200 "a"; }`})
	front := NGINX(t, NGINXOptions{Backends: []string{a.HTTP}})
	c := newClient(t, front.CA)
	if code, body := get(t, c, "http://"+front.HTTP+"/who"); code != 200 || body != "a" {
		t.Errorf("answer = %d %q, want 200 from the backend", code, body)
	}
	a.Stop()
	if code, _ := get(t, c, "http://"+front.HTTP+"/who"); code != 502 {
		t.Errorf("status without a backend = %d, want 502", code)
	}
}

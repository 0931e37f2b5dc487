package testbed

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load posts to url from several clients at once until stop is closed, and
// counts what was answered and what failed. Posts, because net/http would hide
// the failures of other requests by sending them again.
func load(clients []*http.Client, url string, stop <-chan struct{}) (answered, failed uint64) {
	var yes, no atomic.Uint64
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := c.Post(url, "text/plain", nil)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					err = closing(resp.Body, err)
				}
				if err != nil {
					no.Add(1)
				} else {
					yes.Add(1)
				}
			}
		})
	}
	all.Wait()
	return yes.Load(), no.Load()
}

// loadWhile runs load while do runs.
func loadWhile(t *testing.T, clients []*http.Client, url string, do func()) (answered, failed uint64) {
	t.Helper()
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		answered, failed = load(clients, url, stop)
	}()
	do()
	close(stop)
	<-over
	return answered, failed
}

// TestReloadsKeepTheAccount reloads doors under load: what they counted and
// what they logged must be what the clients saw. A request that a reload cut
// may have reached the door or not.
func TestReloadsKeepTheAccount(t *testing.T) {
	check := func(t *testing.T, answered, failed, counted uint64, log Log) {
		t.Helper()
		if answered == 0 || counted < answered || counted > answered+failed {
			t.Errorf("requests = %d, want the %d that were answered, and at most the %d that failed", counted, answered, failed)
		}
		if log.Codes[200] < answered {
			t.Errorf("log = %+v, want at least the %d that were answered", log, answered)
		}
		if log.Full+log.Resumed != log.Connections {
			t.Errorf("log = %+v, want a handshake for every connection", log)
		}
	}
	reload := func(door interface{ Reload() }) func() {
		return func() {
			for range 3 {
				time.Sleep(100 * time.Millisecond)
				door.Reload()
			}
		}
	}
	t.Run("nginx", func(t *testing.T) {
		n := NGINX(t, NGINXOptions{AccessLog: true, KeepaliveRequests: 50})
		clients := []*http.Client{newClient(t, n.CA), newClient(t, n.CA), newClient(t, n.CA)}
		answered, failed := loadWhile(t, clients, "https://"+n.HTTPS+"/", reload(n))
		check(t, answered, failed, n.Counters().Requests, n.Log())
	})
	t.Run("HAProxy", func(t *testing.T) {
		h := HAProxy(t, HAProxyOptions{AccessLog: true})
		clients := []*http.Client{newClient(t, h.CA), newClient(t, h.CA), newClient(t, h.CA)}
		answered, failed := loadWhile(t, clients, "https://"+h.HTTPS+"/", reload(h))
		c := h.Counters()
		check(t, answered, failed, c.Requests, h.Log())
		if c.Full+c.Resumed != c.TLS || c.TLS != c.Connections {
			t.Errorf("counters = %+v, want a handshake, full or resumed, for every connection", c)
		}
	})
}

package wire

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/probe"
)

// TestAgainstNetHTTP sends every kind of request to the standard library's
// server, which is strict about them.
func TestAgainstNetHTTP(t *testing.T) {
	handler := http.NewServeMux()
	handler.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })
	handler.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		// Writing before the body is read makes this server close.
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})
	handler.HandleFunc("/chunked", func(w http.ResponseWriter, r *http.Request) {
		for range 10 {
			io.WriteString(w, strings.Repeat("x", 10000))
			w.(http.Flusher).Flush()
		}
	})
	handler.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		if h.Get("User-Agent") != "probe/1" || len(h["X-A"]) != 2 || h.Get("Accept") != "*/*" || r.URL.RawQuery != "x=y" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	handler.HandleFunc("/empty", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for _, tc := range []struct {
		name    string
		method  string
		path    string
		body    string
		outcome probe.Outcome
		code    uint16
	}{
		{name: "get", path: "/", code: 200},
		{name: "head", method: "HEAD", path: "/", code: 200},
		{name: "no content", path: "/empty", code: 204},
		{name: "chunked answer", path: "/chunked", code: 200},
		{name: "short body", method: "POST", path: "/echo", body: "abc", code: 200},
		{name: "body over the inline limit", method: "PUT", path: "/echo", body: strings.Repeat("long", 100_000), code: 200},
		{name: "empty body", method: "POST", path: "/echo", code: 200},
		{name: "headers", path: "/headers?x=y", code: 200},
		{name: "status", path: "/headers", outcome: probe.ResponseStatus, code: 403},
	} {
		for _, secure := range []bool{false, true} {
			for _, reuse := range []bool{true, false} {
				name := tc.name + map[bool]string{true: "/tls"}[secure] + map[bool]string{false: "/per request"}[reuse]
				t.Run(name, func(t *testing.T) {
					server := httptest.NewUnstartedServer(handler)
					o := Options{Reuse: reuse, Request: Request{Method: tc.method, Target: tc.path, Body: []byte(tc.body), UserAgent: "probe/1", Headers: []Header{{"X-A", "b"}, {"x-a", "c"}}}}
					if secure {
						server.StartTLS()
						config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
						config.ServerName = "example.com"
						config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
						o.TLSConfig = fixed(config)
					} else {
						server.Start()
					}
					defer server.Close()
					r := newRig(t, server.Listener.Addr().String(), o, probe.Target{})
					for i := range 3 {
						s := r.send()
						if s.Outcome != tc.outcome || s.Code != tc.code || s.Protocol != probe.HTTP11 {
							t.Fatalf("request %d: %v, status %d, %v", i, s.Outcome, s.Code, s.Protocol)
						}
						opened := i == 0 || !reuse
						if got := s.Did.Has(probe.PhaseConnect); got != opened {
							t.Errorf("request %d: connected: %v, want %v", i, got, opened)
						}
						if got := s.Handshake.Version != 0; got != (opened && secure) {
							t.Errorf("request %d: shook hands: %v", i, got)
						}
						if i == 1 && opened && secure && !s.Handshake.Resumed {
							t.Error("the second handshake resumed nothing")
						}
					}
					r.close()
					l := r.prober.Ledger()
					want := uint64(1)
					if !reuse {
						want = 3
					}
					if l.Opened != want {
						t.Errorf("opened %d connections, want %d", l.Opened, want)
					}
				})
			}
		}
	}
}

package testbed

import (
	"testing"
	"time"
)

func TestHAProxyCountsWhatItServes(t *testing.T) {
	h := HAProxy(t, HAProxyOptions{AccessLog: true})
	c := newClient(t, h.CA)
	if got := h.Counters(); got != (HAProxyCounters{}) {
		t.Errorf("counters before any request = %+v, want none", got)
	}
	for range 3 {
		code, body := get(t, c, "http://"+h.HTTP+"/")
		if code != 200 || body != Body() {
			t.Fatalf("answer = %d %q, want 200 and the body", code, body)
		}
	}
	if code, _ := get(t, c, "http://"+h.HTTP+"/status/503"); code != 503 {
		t.Errorf("status = %d, want 503", code)
	}
	if code, body := get(t, c, "https://"+h.HTTPS+"/"); code != 200 || body != Body() {
		t.Errorf("answer over TLS = %d %q, want 200 and the body", code, body)
	}
	if got, want := h.Counters(), (HAProxyCounters{Connections: 2, Requests: 5, TLS: 1, Full: 1}); got != want {
		t.Errorf("counters = %+v, want %+v", got, want)
	}
	if got := h.Info()["CumSslConns"]; got != "1" {
		t.Errorf("CumSslConns = %q, want 1", got)
	}
	log := h.Log()
	if log.Requests != 5 || log.Connections != 2 || log.Full != 1 || log.Codes[503] != 1 || log.Codes[200] != 4 {
		t.Errorf("log = %+v, want 5 requests, one of them 503, on 2 connections, one with a full handshake", log)
	}
}

func TestHAProxyHandshakes(t *testing.T) {
	for _, row := range []struct {
		name          string
		options       HAProxyOptions
		full, resumed uint64
		version       string
	}{
		{"both versions resume", HAProxyOptions{}, 1, 2, "TLSv1.3"},
		{"1.2 resumes", HAProxyOptions{TLS: TLS12}, 1, 2, "TLSv1.2"},
		{"1.3 resumes", HAProxyOptions{TLS: TLS13}, 1, 2, "TLSv1.3"},
		{"1.2 without resumption", HAProxyOptions{TLS: TLS12, NoResumption: true}, 3, 0, "TLSv1.2"},
		{"1.3 without resumption", HAProxyOptions{TLS: TLS13, NoResumption: true}, 3, 0, "TLSv1.3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.options.AccessLog = true
			h := HAProxy(t, row.options)
			c := newClient(t, h.CA)
			for range 3 {
				get(t, c, "https://"+h.HTTPS+"/")
				c.CloseIdleConnections()
			}
			want := HAProxyCounters{Connections: 3, Requests: 3, TLS: 3, Full: row.full, Resumed: row.resumed}
			if got := h.Counters(); got != want {
				t.Errorf("counters = %+v, want %+v", got, want)
			}
			log := h.Log()
			if log.Full != row.full || log.Resumed != row.resumed || log.Versions[row.version] != 3 {
				t.Errorf("log = %+v, want %d full and %d resumed handshakes of %s", log, row.full, row.resumed, row.version)
			}
		})
	}
}

func TestHAProxyReloadKeepsTheAccount(t *testing.T) {
	h := HAProxy(t, HAProxyOptions{})
	c := newClient(t, h.CA)
	for range 3 {
		get(t, c, "https://"+h.HTTPS+"/")
		h.Reload()
	}
	get(t, c, "https://"+h.HTTPS+"/")
	got := h.Counters()
	if got.Requests != 4 || got.Full+got.Resumed != got.TLS || got.Full == 0 {
		t.Errorf("counters after 3 reloads = %+v, want 4 requests and every handshake full or resumed", got)
	}
}

func TestHAProxyStall(t *testing.T) {
	h := HAProxy(t, HAProxyOptions{})
	c := newClient(t, h.CA)
	get(t, c, "http://"+h.HTTP+"/")
	stalledAnswers(t, h.Stall, func() { get(t, c, "http://"+h.HTTP+"/") })
}

func TestHAProxyStopAndStart(t *testing.T) {
	h := HAProxy(t, HAProxyOptions{AccessLog: true, KeepaliveTimeout: time.Second})
	c := newClient(t, h.CA)
	get(t, c, "http://"+h.HTTP+"/")
	// It logs a moment after it has answered, and not when it has ended before.
	WaitFor(t, "the request to be logged", 10*time.Second, func() bool { return h.Log().Requests == 1 })
	h.Stop()
	if code, _, err := fetch(c, "http://"+h.HTTP+"/"); err == nil {
		t.Errorf("a stopped HAProxy answered %d", code)
	}
	h.Restart()
	get(t, c, "http://"+h.HTTP+"/")
	if got := h.Counters().Requests; got != 1 {
		t.Errorf("requests since the restart = %d, want 1", got)
	}
	if got := h.Log().Requests; got != 2 {
		t.Errorf("requests in the log = %d, want 2", got)
	}
}

func TestHAProxyPassesToBackends(t *testing.T) {
	a := NGINX(t, NGINXOptions{Locations: `location = /who { return 200 "a"; }`})
	h := HAProxy(t, HAProxyOptions{Backends: []string{a.HTTP}})
	c := newClient(t, h.CA)
	if code, body := get(t, c, "http://"+h.HTTP+"/who"); code != 200 || body != "a" {
		t.Errorf("answer = %d %q, want 200 from the backend", code, body)
	}
	h.Command("disable server servers/s0")
	if code, _ := get(t, c, "http://"+h.HTTP+"/who"); code != 503 {
		t.Errorf("status without a backend = %d, want 503", code)
	}
}

func TestHAProxyHoldsRequests(t *testing.T) {
	h := HAProxy(t, HAProxyOptions{Frontend: "\thttp-request lua.wait 50\n", Urgent: true})
	began := time.Now()
	code, body, err := fetch(questions(), "http://"+h.HTTP+"/")
	if took := time.Since(began); err != nil || code != 200 || body != Body() || took < 50*time.Millisecond {
		t.Errorf("status %d, error %v after %v; want 200 after at least 50 ms", code, err, took)
	}
}

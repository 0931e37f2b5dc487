package web

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

func handlerOf(t *testing.T, o Options) http.Handler {
	t.Helper()
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Profiles are there where they are asked for, and nowhere else.
func TestProfiles(t *testing.T) {
	o := newKit().options()
	without := handlerOf(t, o)
	o.Profiles = true
	with := handlerOf(t, o)
	for path, want := range map[string]string{
		"/debug/pprof/":                   "goroutine",
		"/debug/pprof/goroutine?debug=1":  "goroutine profile: total",
		"/debug/pprof/heap?debug=1":       "heap profile: ",
		"/debug/pprof/symbol":             "num_symbols",
		"/debug/pprof/trace?seconds=0.01": "go 1",
	} {
		if r := ask(with, http.MethodGet, path); r.StatusCode != http.StatusOK || !strings.Contains(body(t, r), want) {
			t.Errorf("%s: status %d, or %q is missing", path, r.StatusCode, want)
		}
		if r := ask(without, http.MethodGet, path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d where profiles were not asked for", path, r.StatusCode)
		}
	}
	r := ask(with, http.MethodGet, "/debug/pprof/cmdline")
	if text := body(t, r); r.StatusCode != http.StatusNotFound || strings.Contains(text, os.Args[0]) {
		t.Errorf("the command line: status %d, %q", r.StatusCode, text)
	}
	if r := ask(with, http.MethodPost, "/debug/pprof/symbol"); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST of a profile: status %d", r.StatusCode)
	}
}

// Nothing takes a large body, whether it says so or not.
func TestLargeBodies(t *testing.T) {
	o := newKit().options()
	var read int
	h := guarded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for piece := make([]byte, 1024); ; {
			n, err := r.Body.Read(piece)
			read += n
			if err != nil {
				return
			}
		}
	}), "")
	for _, row := range []struct {
		name  string
		size  int
		known bool
		code  int
		read  int
	}{
		{"none", 0, true, 200, 0},
		{"as large as may be", maxBodyBytes, true, 200, maxBodyBytes},
		{"larger", maxBodyBytes + 1, true, 413, 0},
		{"of a size that is not said", 10 * maxBodyBytes, false, 200, maxBodyBytes},
	} {
		read = 0
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", row.size)))
		if !row.known {
			r.ContentLength = -1
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != row.code || read != row.read {
			t.Errorf("%s: status %d, %d bytes read; want %d and %d", row.name, w.Code, read, row.code, row.read)
		}
	}
	w := httptest.NewRecorder()
	handlerOf(t, o).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", strings.NewReader(strings.Repeat("x", maxBodyBytes+1))))
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a scrape with a large body: status %d", w.Code)
	}
}

package web

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestControl(t *testing.T) {
	const off = "churns cannot be controlled over HTTP; start the daemon with --web.enable-lifecycle to allow it"
	const foreign = "the request comes from a page of another site; ask without a browser, or from this one"
	on := func(k *kit) { k.lifecycle = true }
	fails := func(err error) func(*kit) {
		return func(k *kit) { k.lifecycle, k.control = true, func(string, Control) error { return err } }
	}
	header := func(pairs ...string) []string { return pairs }
	for _, row := range []struct {
		name, method, path string
		header             []string
		change             func(*kit)
		status             int
		want               string
		asked              string // of the churns
	}{
		{"pause", "POST", "web/pause", nil, on, 200, success(apiChurnJSON), "web pause"},
		{"resume", "POST", "web/resume", nil, on, 200, success(apiChurnJSON), "web resume"},
		{"restore", "POST", "web/restore", nil, on, 200, success(apiChurnJSON), "web restore"},
		{"by the page itself", "POST", "web/pause", header("Sec-Fetch-Site", "same-origin", "Origin", "http://example.com"), on, 200, success(apiChurnJSON), "web pause"},
		{"by an old browser on the page itself", "POST", "web/pause", header("Origin", "http://example.com"), on, 200, success(apiChurnJSON), "web pause"},
		{"by another site", "POST", "web/pause", header("Sec-Fetch-Site", "cross-site"), on, 403, failure("forbidden", foreign), ""},
		{"by a sister site", "POST", "web/restore", header("Sec-Fetch-Site", "same-site"), on, 403, failure("forbidden", foreign), ""},
		{"by an old browser on another site", "POST", "web/resume", header("Origin", "http://evil.example"), on, 403, failure("forbidden", foreign), ""},
		{"switched off", "POST", "web/pause", nil, nil, 403, failure("forbidden", off), ""},
		{"switched off, no such churn", "POST", "x/pause", nil, nil, 403, failure("forbidden", off), ""},
		{"read", "GET", "web/pause", nil, on, 405, failure("method_not_allowed", "this changes something; use POST"), ""},
		{"read, switched off", "GET", "web/restore", nil, nil, 405, failure("method_not_allowed", "this changes something; use POST"), ""},
		{"put", "PUT", "web/pause", nil, on, 405, failure("method_not_allowed", "this changes something; use POST"), ""},
		{"no such churn", "POST", "x/pause", nil, on, 404, failure("not_found", `there is no churn "x"; there are "web", "a/b"`), ""},
		{"name with a slash", "POST", "a%2Fb/pause", nil, on, 200, success(strings.Replace(emptyChurnJSON, `"b"`, `"a/b"`, 1)), "a/b pause"},
		{"led by another", "POST", "web/pause", nil, fails(fmt.Errorf("pausing: %w", &ControlError{"probe-1 leads; ask there"})), 409,
			failure("conflict", "probe-1 leads; ask there"), ""},
		{"not accepted", "POST", "web/pause", nil, fails(errors.New("the disk is full")), 503, failure("unavailable", "the disk is full"), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit()
			k.churns = []Churn{apiChurn(), {Name: "a/b"}}
			asked := ""
			k.control = func(churn string, do Control) error {
				asked = churn + " " + string(do)
				return nil
			}
			if row.change != nil {
				row.change(k)
			}
			r := httptest.NewRequest(row.method, "/api/v1/churns/"+row.path, nil)
			for pair := range slices.Chunk(row.header, 2) {
				r.Header.Set(pair[0], pair[1])
			}
			w := httptest.NewRecorder()
			k.handler(t).ServeHTTP(w, r)
			if w.Code != row.status {
				t.Errorf("status %d, want %d", w.Code, row.status)
			}
			if diff := cmp.Diff(row.want, w.Body.String()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if got := w.Header().Get("Allow"); (got == "POST") != (row.status == 405) {
				t.Errorf("allow %q with status %d", got, row.status)
			}
			if asked != row.asked {
				t.Errorf("asked %q of the churns, want %q", asked, row.asked)
			}
		})
	}
}

// What was done over HTTP is in the log, with who asked for it.
func TestControlIsLogged(t *testing.T) {
	k := newKit()
	k.churns, k.lifecycle = []Churn{apiChurn()}, true
	k.control = func(string, Control) error { return nil }
	h := k.handler(t)
	ask(h, "POST", "/api/v1/churns/web/restore")
	k.control = func(string, Control) error { return errors.New("no") }
	ask(h, "POST", "/api/v1/churns/web/pause")
	for _, want := range []string{
		`level=INFO msg="A churn is controlled over HTTP" churn=web asked_for=restore by=192.0.2.1:1234`,
		`level=WARN msg="A churn was not controlled" churn=web asked_for=pause err=no`,
	} {
		if !strings.Contains(k.log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, k.log.String())
		}
	}
}

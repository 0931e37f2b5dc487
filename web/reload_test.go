package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/html/atom"
)

func TestReload(t *testing.T) {
	const off = "Reloading over HTTP is not enabled: start steadyprobe with --web.enable-lifecycle, or send it SIGHUP.\n"
	changed := func(context.Context) (string, error) { return "One target is new.", nil }
	broken := func(context.Context) (string, error) { return "", errors.New("a.yml:3: targets: there is none") }
	for _, row := range []struct {
		name, method string
		reload       func(context.Context) (string, error)
		status       int
		want, allow  string
	}{
		{"not enabled", "POST", nil, 403, off, ""},
		{"not enabled, put", "PUT", nil, 403, off, ""},
		{"not enabled, get", "GET", nil, 405, "Only POST and PUT reload the configuration.\n", "POST, PUT"},
		{"get", "GET", broken, 405, "Only POST and PUT reload the configuration.\n", "POST, PUT"},
		{"delete", "DELETE", broken, 405, "Only POST and PUT reload the configuration.\n", "POST, PUT"},
		{"post", "POST", changed, 200, "One target is new.\n", ""},
		{"put", "PUT", changed, 200, "One target is new.\n", ""},
		{"bad file", "POST", broken, 500, "The configuration was not reloaded, and nothing has changed:\na.yml:3: targets: there is none\n", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := newKit().options()
			o.Reload = row.reload
			h, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			r := ask(h, row.method, "/-/reload")
			if got := body(t, r); r.StatusCode != row.status || got != row.want || r.Header.Get("Allow") != row.allow {
				t.Errorf("status %d %q, allow %q; want %d %q, %q", r.StatusCode, got, r.Header.Get("Allow"), row.status, row.want, row.allow)
			}
		})
	}
}

// A page that somebody has open in a browser must not reload what is on another
// site.
func TestReloadFromAnotherSite(t *testing.T) {
	o := newKit().options()
	reloads := 0
	o.Reload = func(context.Context) (string, error) { reloads++; return "", nil }
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for site, status := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200, "": 200} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/-/reload", nil)
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		h.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("from %q: status %d, want %d", site, w.Code, status)
		}
	}
	if reloads != 3 {
		t.Errorf("reloaded %d times, want 3", reloads)
	}
}

func TestReloadByAClientThatIsGone(t *testing.T) {
	o := newKit().options()
	o.Reload = func(ctx context.Context) (string, error) { return "", ctx.Err() }
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/-/reload", nil))
	if w.Body.Len() != 0 {
		t.Errorf("answered %q", w.Body)
	}
}

// A failed reload is on the page and in the API, each problem of it on the page
// until there are too many.
func TestFailedReloadIsShown(t *testing.T) {
	k := newKit()
	lines := make([]string, 13)
	for i := range lines {
		lines[i] = "a.yml:" + strings.Repeat("1", i+1) + ": <b>"
	}
	k.status.Configuration.Failed = &FailedReload{At: testNow.Add(-90e9), Error: strings.Join(lines, "\n")}
	h := k.handler(t)
	notice := loadPage(t, h).id(t, "reload")
	const want = "The last reload failed, and nothing has changed. It was 1 min ago; the configuration that holds was loaded 13 min ago."
	if got := notice.text(); !strings.Contains(got, want) {
		t.Errorf("%q is without %q", got, want)
	}
	items := notice.all(atom.Li)
	if len(items) != 11 || items[0].text() != "a.yml:1: <b>" || items[10].text() != "3 more, see the log." {
		t.Errorf("%d problems, the last is %q", len(items), items[len(items)-1].text())
	}
	status := body(t, ask(h, "GET", "/api/v1/status"))
	if want := `"configuration":{"loaded":"2026-11-30T19:08:05Z","failed":{"at":"2026-11-30T19:19:35Z","error":"a.yml:1: \u003cb\u003e\n`; !strings.Contains(status, want) {
		t.Errorf("%s is without %s", status, want)
	}
}

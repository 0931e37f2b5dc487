package web

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOnlyReading asks for every path of docs/API.md in every other way than
// reading. Only a reload takes any of them.
func TestOnlyReading(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "API.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| path | answer |")
	table, _, _ = strings.Cut(table, "\n\n")
	o := newKit().options()
	reloads := 0
	o.Profiles, o.Reload = true, func(context.Context) (string, error) { reloads++; return "done", nil }
	h := handlerOf(t, o)
	asked := 0
	for line := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, m := range regexp.MustCompile("`(/[^`]*)`").FindAllStringSubmatch(first, -1) {
			path := strings.Replace(m[1], "{name}", "shop", 1)
			for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"} {
				asked++
				want := http.StatusMethodNotAllowed
				acts := strings.HasPrefix(path, "/"+pathAPI+"churns/") && method == "POST"
				if acts {
					want = http.StatusForbidden // without Lifecycle
				}
				if path == "/"+pathReload && (method == "POST" || method == "PUT") {
					want = http.StatusOK
				}
				r := ask(h, method, path)
				if r.StatusCode != want || want == http.StatusMethodNotAllowed && r.Header.Get("Allow") == "" {
					t.Errorf("%s %s: status %d, want %d; Allow %q", method, path, r.StatusCode, want, r.Header.Get("Allow"))
				}
			}
		}
	}
	if asked < 8*15 || reloads != 2 {
		t.Errorf("asked %d times, %d reloads", asked, reloads)
	}
}

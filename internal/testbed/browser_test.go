package testbed

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pages is a site whose pages are well or have one fault each.
func pages(t *testing.T) string {
	t.Helper()
	body := map[string]string{
		"/good": `<title>t</title><h1 id=h>Good</h1><style>
			:root { background: #fff; color-scheme: light dark }
			@media (prefers-color-scheme: dark) { :root { background: #000 } }
			body { margin: 0; height: 3000px } h1 { margin: 0 }</style>
			<script>document.getElementById("h").textContent = "Scripted"</script>`,
		"/fetches":   `<script>fetch("/good?of=script")</script>`,
		"/error":     `<script>console.error("it is", "bad", 7)</script>`,
		"/assert":    `<script>console.assert(1 > 2, "arithmetic")</script>`,
		"/warning":   `<script>console.warn("only that"); console.log("nor this")</script>`,
		"/exception": `<script>undefinedFunction()</script>`,
		"/rejection": `<script>Promise.reject(new Error("nobody minds"))</script>`,
		"/missing":   `<img src="/nowhere.png">`,
		"/policy":    `<script>document.title = "ran"</script>`,
		"/stranger":  `<img src="http://stranger.example/x.png">`,
		"/address":   `<img src="http://192.0.2.1/x.png">`, // TEST-NET-1, RFC 5737
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := body[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.URL.Path == "/policy" {
			w.Header().Set("Content-Security-Policy", "script-src 'none'")
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><link rel=icon href=data:,>" + text))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestBrowserNotices(t *testing.T) {
	site := pages(t)
	b := Chromium(t)
	for _, tc := range []struct {
		name     string
		path     string
		errors   []string // beginnings
		requests []string // after the page itself
	}{
		{"nothing in a good page", "/good", nil, nil},
		{"what a script fetches", "/fetches", nil, []string{site + "/good?of=script"}},
		{"an error on the console", "/error", []string{"console: it is bad 7"}, nil},
		{"a failed assertion", "/assert", []string{"console: arithmetic"}, nil},
		{"no warning", "/warning", nil, nil},
		{"an exception", "/exception", []string{"exception: Uncaught ReferenceError: undefinedFunction is not defined"}, nil},
		{"a rejected promise", "/rejection", []string{"exception: Uncaught (in promise) Error: nobody minds"}, nil},
		{"a missing file", "/missing", []string{"network: Failed to load resource: the server responded with a status of 404"}, []string{site + "/nowhere.png"}},
		{"a violated policy", "/policy", []string{"security: Executing inline script violates the following Content Security Policy directive"}, nil},
		{"a stranger", "/stranger", []string{"network: Failed to load resource: net::ERR_NAME_NOT_RESOLVED"}, []string{"http://stranger.example/x.png"}},
		{"a strange address", "/address", []string{"network: Failed to load resource: net::ERR_NAME_NOT_RESOLVED"}, []string{"http://192.0.2.1/x.png"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			errors, requests := len(b.Errors()), len(b.Requests())
			b.Open(site + tc.path)
			// What a script begins may end after the page is loaded.
			WaitFor(t, "the browser to notice", startLimit, func() bool {
				return len(b.Errors()) >= errors+len(tc.errors) && len(b.Requests()) > requests+len(tc.requests)
			})
			got := b.Errors()[errors:]
			if !slices.EqualFunc(got, tc.errors, strings.HasPrefix) {
				t.Errorf("errors = %q, want %q", got, tc.errors)
			}
			want := append([]string{site + tc.path}, tc.requests...)
			got = slices.DeleteFunc(b.Requests()[requests:], func(url string) bool { return url == "data:," })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests (- want, + got):\n%s", diff)
			}
		})
	}
}

// browserDiesIn names the file that TestDiesWithBrowser, in a process of its
// own, writes the folder of its browser to before it kills itself.
const browserDiesIn = "STEADYPROBE_TESTBED_BROWSER_DIES_IN"

// TestDiesWithBrowser is the other half of TestBrowserEnds, and does nothing by
// itself.
func TestDiesWithBrowser(t *testing.T) {
	file := os.Getenv(browserDiesIn)
	if file == "" {
		return
	}
	b := Chromium(t)
	if err := os.WriteFile(file, []byte(b.dir), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := signalProcess(os.Getpid(), os.Kill); err != nil {
		t.Fatal(err)
	}
	time.Sleep(startLimit) // it is dead long before
}

// browserProcesses returns how many processes have a browser's folder in their
// command line. A browser has several.
func browserProcesses(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("there is no /proc")
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(dir)) { // else it has ended
			n++
		}
	}
	return n
}

func TestBrowserEnds(t *testing.T) {
	t.Run("with its test", func(t *testing.T) {
		var dir string
		t.Run("owner", func(t *testing.T) {
			// A home that cannot be written to, as in some containers.
			t.Setenv("HOME", "/nowhere")
			b := Chromium(t)
			dir = b.dir
			if n := browserProcesses(t, dir); n == 0 {
				t.Error("no process is known by the browser's folder: the test would see nothing")
			}
		})
		// Its last helpers end by themselves once it has.
		WaitFor(t, "the browser's processes to end", stopLimit, func() bool { return browserProcesses(t, dir) == 0 })
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("the browser's folder: %v, want it gone", err)
		}
	})
	t.Run("with the test process", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "folder")
		cmd := exec.Command(os.Args[0], "-test.run=^TestDiesWithBrowser$")
		cmd.Env = append(os.Environ(), browserDiesIn+"="+file, "TMPDIR="+shortFolder(t))
		out, err := cmd.CombinedOutput()
		dir, readErr := os.ReadFile(file)
		if err == nil || readErr != nil {
			t.Fatalf("the test process ended with %v and %v, want it killed; it printed:\n%s", err, readErr, out)
		}
		WaitFor(t, "the browser's processes to end", stopLimit, func() bool { return browserProcesses(t, string(dir)) == 0 })
	})
}

func TestBrowserReadsPages(t *testing.T) {
	site := pages(t)
	b := Chromium(t)
	b.Open(site + "/good")
	if got := b.Text("h1"); got != "Scripted" {
		t.Errorf("text = %q, want that of the script", got)
	}
	var sum int
	if b.Evaluate("Promise.resolve(19 + 23)", &sum); sum != 42 {
		t.Errorf("19 + 23 = %d, want 42", sum)
	}
	b.Scripts(false)
	b.Open(site + "/good")
	if got := b.Text("h1"); got != "Good" {
		t.Errorf("text = %q, want that of a page without scripts", got)
	}
	b.Scripts(true)
	b.Open(site + "/good")
	if got := b.Text("h1"); got != "Scripted" {
		t.Errorf("text = %q, want that of the script again", got)
	}
	if got := b.Errors(); len(got) != 0 {
		t.Errorf("errors = %q, want none", got)
	}
}

func TestBrowserScreenshots(t *testing.T) {
	b := Chromium(t)
	b.Open(pages(t) + "/good")
	for _, tc := range []struct {
		name          string
		width, height int
		dark          bool
		want          image.Point // the page is 3000 high
		colour        color.Gray
	}{
		{"light", 640, 480, false, image.Pt(640, 480), color.Gray{Y: 255}},
		{"dark", 390, 844, true, image.Pt(390, 844), color.Gray{Y: 0}},
		{"whole page", 640, 0, false, image.Pt(640, 3000), color.Gray{Y: 255}},
		{"light again", 800, 600, false, image.Pt(800, 600), color.Gray{Y: 255}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "new", "picture.png")
			b.Screenshot(tc.width, tc.height, tc.dark, path)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			picture, err := png.Decode(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := picture.Bounds().Size(); got != tc.want {
				t.Errorf("size = %v, want %v", got, tc.want)
			}
			corner := picture.At(tc.want.X-1, tc.want.Y-1)
			if got := color.GrayModel.Convert(corner); got != tc.colour {
				t.Errorf("colour of the last corner = %v, want %v", corner, tc.colour)
			}
		})
	}
}

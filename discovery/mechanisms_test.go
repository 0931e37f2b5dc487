package discovery

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/file"
	prometheushttp "github.com/prometheus/prometheus/discovery/http"
)

// real returns a bench in real time, for mechanisms that are real.
func real(t *testing.T) *bench { return newBench(t, time.Millisecond, 2*time.Millisecond) }

// names returns the names of all targets.
func (b *bench) admitted() string { return namesOf(b.Targets()) }

// failures returns how often the first source has failed.
func (b *bench) failures() uint64 { return b.Sources()[0].Failures }

// TestFiles changes files as editors, deployments and ConfigMaps do.
func TestFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first, second := filepath.Join(folder, "a.yml"), filepath.Join(folder, "b.json")
	write(t, first, "- targets: [a.example.com]\n")
	b := real(t)
	text := strings.Replace(with("keep_last: 1h"), "files: [a.yml]", fmt.Sprintf("files: [%q, %q]", filepath.Join(folder, "*.yml"), second), 1)
	b.run(prepared(t, text))
	eventually(t, "a", b.admitted)
	write(t, first, "- targets: [a.example.com, b.example.com:8080]\n  labels: {team: shop}\n")
	eventually(t, "a b", b.admitted)
	for _, target := range b.Targets() {
		if target.Labels["team"] != "shop" {
			t.Errorf("%s has the labels %v", target.Name, target.Labels)
		}
	}
	write(t, second, `[{"targets": ["c.example.com"]}]`)
	eventually(t, "a b c", b.admitted)
	write(t, first, "- targets: [a.example.com\n") // half a file
	eventually(t, "1", func() string { return fmt.Sprint(min(b.failures(), 1)) })
	b.is("a b c")
	if s := b.Sources()[0]; !strings.Contains(s.LastFailure, "Error reading file") || s.FailedAt.IsZero() {
		t.Errorf("last failure %q", s.LastFailure)
	}
	write(t, first, "- targets: [d.example.com]\n")
	eventually(t, "c d", b.admitted)
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	eventually(t, "d", b.admitted)
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "true", func() string { return fmt.Sprint(b.Sources()[0].Held) })
	b.is("d") // for an hour
	write(t, first, "- targets: [e.example.com]\n")
	eventually(t, "e", b.admitted)
}

// TestFilesOfAConfigMap swaps the folder that holds the files, as a kubelet
// does.
func TestFilesOfAConfigMap(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a right on Windows")
	}
	folder := t.TempDir()
	swap := func(version, text string) {
		inner := filepath.Join(folder, "..data_"+version)
		if err := os.Mkdir(inner, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(inner, "doors.yml"), text)
		beside := filepath.Join(folder, "..data_tmp")
		if err := os.Symlink("..data_"+version, beside); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(beside, filepath.Join(folder, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("1", "- targets: [a.example.com]\n")
	path := filepath.Join(folder, "doors.yml")
	if err := os.Symlink(filepath.Join("..data", "doors.yml"), path); err != nil {
		t.Fatal(err)
	}
	b := real(t)
	b.run(prepared(t, strings.Replace(oneSource, "a.yml", path, 1)))
	eventually(t, "a", b.admitted)
	swap("2", "- targets: [b.example.com]\n")
	eventually(t, "b", b.admitted)
}

// fakeDirectory answers requests for targets as it is told. It is an HTTP server
// all the same.
type fakeDirectory struct {
	mu     sync.Mutex
	answer func(http.ResponseWriter, *http.Request)
	asked  []http.Header
	hung   chan struct{}
}

func (d *fakeDirectory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.asked = append(d.asked, r.Header.Clone())
	answer := d.answer
	d.mu.Unlock()
	answer(w, r)
}

func (d *fakeDirectory) answers(answer func(http.ResponseWriter, *http.Request)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = answer
}

// says has the server answer with these targets below example.com.
func (d *fakeDirectory) says(hosts ...string) {
	type group struct {
		Targets []string `json:"targets"`
	}
	groups := []group{}
	if len(hosts) > 0 {
		groups = append(groups, group{Targets: hosts})
	}
	text, err := json.Marshal(groups)
	if err != nil {
		panic(err)
	}
	d.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	})
}

// faster has everything that is asked be asked so often. The configuration does
// not let a user ask more than once a second.
func (p *Plan) faster(refresh time.Duration) *Plan {
	for _, e := range p.entries {
		for _, m := range e.mechanisms {
			switch c := m.config.(type) {
			case *prometheushttp.SDConfig:
				c.RefreshInterval = model.Duration(refresh)
			case *file.SDConfig:
				c.RefreshInterval = model.Duration(refresh)
			}
		}
	}
	return p
}

// TestHTTP has a server that answers targets, and then whatever else a server
// may: what it has said last stays.
func TestHTTP(t *testing.T) {
	t.Parallel()
	const planted = "planted-token"
	d := &fakeDirectory{hung: make(chan struct{})}
	server := httptest.NewServer(d)
	defer server.Close()
	defer close(d.hung)
	b := real(t)
	d.says("a.example.com", "b.example.com")
	text := strings.Replace(with("keep_last: 1h"), "file_sd_configs: [{files: [a.yml]}]",
		fmt.Sprintf("http_sd_configs: [{url: '%s/targets?key=%s', authorization: {credentials: %s}}]", strings.Replace(server.URL, "://", "://"+planted+":"+planted+"@", 1), planted, planted), 1)
	text = strings.Replace(text, planted+":"+planted+"@", "", 1) // together with authorization it would be two
	const refresh = 100 * time.Millisecond
	b.run(prepared(t, text).faster(refresh))
	eventually(t, "a b", b.admitted)
	for _, row := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		why    string // in the last failure
	}{
		{"garbage", asJSON("<html>planted-token</html>"), "invalid character"},
		{"half an answer", asJSON(`[{"targets": ["c.exam`), "unexpected end of JSON input"},
		{"something else", asJSON(`{"targets": ["c.example.com"]}`), "cannot unmarshal object"},
		{"a field that is unknown", asJSON(`[{"targets": ["c.example.com"], "url": "planted-token"}]`), "unknown field"},
		{"null", asJSON(`[null]`), "nil target group"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) }, "unsupported content type"},
		{"500", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "planted-token", http.StatusInternalServerError)
		}, "500 Internal Server Error"},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-d.hung:
			case <-r.Context().Done():
			}
		}, "deadline exceeded"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		{"a loop", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/targets?key=planted-token", http.StatusFound)
		}, "stopped after 10 redirects"},
	} {
		before := b.failures()
		d.answers(row.answer)
		eventually(t, "true", func() string { return fmt.Sprint(b.failures() > before+1) })
		eventually(t, row.name, func() string {
			if last := b.Sources()[0].LastFailure; !strings.Contains(last, row.why) {
				return last
			}
			return row.name
		})
		b.is("a b")
	}
	if _, err := json.Marshal(b.Sources()); err != nil || strings.Contains(fmt.Sprint(b.Sources(), b.log), planted) {
		t.Errorf("a secret is shown: %v\n%s", b.Sources(), b.log)
	}
	before := b.failures()
	d.says()
	eventually(t, "true", func() string { return fmt.Sprint(b.Sources()[0].Held && b.failures() > before) })
	b.is("a b")
	d.says("c.example.com")
	eventually(t, "c", b.admitted)
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.asked[0]; h.Get("User-Agent") != "steadyprobe/test" || h.Get("Authorization") != "Bearer "+planted {
		t.Errorf("it was asked with %v", h)
	}
}

func asJSON(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
	}
}

// TestHTTPHuge answers with 10,000 targets, and then without an end.
func TestHTTPHuge(t *testing.T) {
	t.Parallel()
	d := &fakeDirectory{}
	server := httptest.NewServer(d)
	defer server.Close()
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("h%05d.example.com", i)
	}
	d.says("h00500.example.com")
	const most = 4 << 20
	b := real(t)
	b.options.mostAnswer = most
	text := strings.Replace(with("max_targets: 3"), "file_sd_configs: [{files: [a.yml]}]", "http_sd_configs: [{url: '"+server.URL+"'}]", 1)
	b.run(prepared(t, text).faster(time.Second))
	eventually(t, "h00500", b.admitted)
	d.says(slices.Concat([]string{"h00500.example.com"}, many)...)
	b.run(prepared(t, strings.Replace(text, "rate: 2", "rate: 1", 1)).faster(time.Second)) // the same source
	eventually(t, "h00000 h00001 h00500", b.admitted)
	if got := b.refused(0); got != "max_targets 9997" {
		t.Errorf("refused %q", got)
	}
	written := make(chan int, 100)
	d.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		n, chunk := 0, []byte(strings.Repeat(" ", 1<<20))
		_, _ = w.Write([]byte("["))
		for {
			k, err := w.Write(chunk)
			if n += k; err != nil || n > 1<<30 {
				break
			}
		}
		written <- n
	})
	n := <-written
	// What the sockets hold comes on top of what was read.
	if n < most-1<<20 || n > most+32<<20 {
		t.Errorf("%d MiB were sent of an answer without end, want 4 and what the sockets hold", n>>20)
	}
	eventually(t, "true", func() string { return fmt.Sprint(strings.Contains(b.Sources()[0].LastFailure, errTooLarge.Error())) })
	b.is("h00000 h00001 h00500")
}

// TestMechanismsOfOneSource finds targets in several ways at once.
func TestMechanismsOfOneSource(t *testing.T) {
	t.Parallel()
	d := &fakeDirectory{}
	d.says("b.example.com", "a.example.com")
	server := httptest.NewServer(d)
	defer server.Close()
	folder := t.TempDir()
	for _, name := range []string{"1.yml", "2.yml"} {
		write(t, filepath.Join(folder, name), "- targets: [a.example.com, "+strings.TrimSuffix(name, ".yml")+".example.com]\n")
	}
	c := parsed(t, strings.Replace(oneSource, "file_sd_configs: [{files: [a.yml]}]",
		"file_sd_configs: [{files: ['"+folder+"/1.yml']}, {files: ['"+folder+"/2.yml']}]\n  http_sd_configs: [{url: '"+server.URL+"'}]", 1))
	p, err := Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	b := real(t)
	b.run(p)
	eventually(t, "1 2 a b", b.admitted)
	if s := b.Sources()[0]; fmt.Sprint(s.Mechanisms) != "[file file http]" || b.refused(0) != "" {
		t.Errorf("figures %+v", s)
	}
}

// TestFailuresAreCountedWherePrometheusCountsThem fails when a counter has
// another name in a new version.
func TestFailuresAreCountedWherePrometheusCountsThem(t *testing.T) {
	t.Parallel()
	text := strings.Replace(oneSource, "file_sd_configs: [{files: [a.yml]}]", `file_sd_configs: [{files: [a.yml]}]
  http_sd_configs: [{url: http://h/}]
  dns_sd_configs: [{names: [h]}]
  kubernetes_sd_configs: [{role: ingress, api_server: http://127.0.0.1:1/}, {role: route, api_server: http://127.0.0.1:1/}]`, 1)
	p := prepared(t, text)
	b := real(t)
	built, err := b.Build(p)
	if err != nil {
		t.Fatal(err)
	}
	counters := map[string]bool{}
	for _, m := range built.sources[0].mechanisms {
		families, err := m.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range families {
			if slices.Contains(failureCounters(), f.GetName()) {
				counters[f.GetName()], found = true, true
			}
		}
		if !found {
			t.Errorf("the mechanism %s counts no failures that are known: %v", m.name, families)
		}
	}
	if len(counters) != len(failureCounters()) {
		t.Errorf("counted are %v, known %v", counters, failureCounters())
	}
}

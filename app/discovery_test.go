package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/discovery"
	"github.com/steadyprobe/steadyprobe/internal/dnsdoor"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/resolve"
	"github.com/steadyprobe/steadyprobe/web"
)

// doorsIn writes the file of a source.
func doorsIn(t *testing.T, file string, addresses ...string) {
	t.Helper()
	text, err := json.Marshal([]map[string]any{{"targets": addresses, "labels": map[string]string{"team": "shop", "__probe_rate__": "999"}}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(text))
}

// discovering returns a configuration with one target of its own and a source
// of this file, whose targets are named by their port.
func discovering(own, file, settings string) string {
	return "targets:\n" + targetOf("own", own, "rate: 100, connections: 2, connection: {warm: true}") + `
profiles:
  - {name: p, rate: 50, connections: 2, connection: {warm: true}, labels: {site: fra1}, ` + settings + `}
discovery:
  - name: files
    file_sd_configs: [{files: ['` + file + `']}]
    relabel_configs: [{source_labels: [__address__], regex: ".*:(.+)", target_label: __probe_name__, replacement: "door-$1"}]
    profile: p
    allow: {networks: [127.0.0.1/32]}
    max_targets: 2
`
}

func portOf(door *faultdoor.Door) string {
	return fmt.Sprint(netip.MustParseAddrPort(door.Addr()).Port())
}

// discover runs a daemon that does not wait long for more to be found.
func discover(t *testing.T, text string) *daemonRun {
	t.Helper()
	o := options(configured(t, text), "127.0.0.1:0")
	o.apart = time.Millisecond
	return start(t, o)
}

// sourcesShown returns what the API says of the sources.
func sourcesShown(t *testing.T, r *daemonRun) []web.Source {
	t.Helper()
	_, body := get(r.url + "/api/v1/discovery")
	var answer struct{ Data []web.Source }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return answer.Data
}

// TestDiscovery lets doors come and go in a file. What has always been there is
// not touched by that.
func TestDiscovery(t *testing.T) {
	own, first, second := faultdoor.Listen(t, good()), faultdoor.Listen(t, good()), faultdoor.Listen(t, good())
	file := filepath.Join(t.TempDir(), "doors.json")
	doorsIn(t, file, first.Addr())
	r := discover(t, discovering(own.URL("http"), file, ""))
	eventually(t, "the first door", func() bool { return first.Counts().Answers > 20 })
	accepted := own.Counts().Accepted + first.Counts().Accepted
	doorsIn(t, file, first.Addr(), second.Addr(), "169.254.169.254:80", "127.0.0.2:80", "127.0.0.1:65535", "", "[::1]:80")
	eventually(t, "the second door", func() bool { return second.Counts().Answers > 20 })
	_, page := get(r.url + "/metrics")
	for _, row := range []struct {
		series string
		want   float64
	}{
		{`steadyprobe_discovered_targets{source="files"}`, 2},
		{`steadyprobe_discovery_refused_targets{reason="network",source="files"}`, 3},
		{`steadyprobe_discovery_refused_targets{reason="max_targets",source="files"}`, 1},
		{`steadyprobe_discovery_refused_targets{reason="invalid",source="files"}`, 1},
		{`steadyprobe_discovery_failures_total{source="files"}`, 0},
		{`steadyprobe_discovery_held_targets{source="files"}`, 0},
		{fmt.Sprintf(`steadyprobe_target_requests_per_second{site="fra1",target="door-%s",team="shop"}`, portOf(second)), 50},
		{`steadyprobe_target_requests_per_second{site="",target="own",team=""}`, 100},
	} {
		if got := metric(page, row.series); got != row.want || !strings.Contains(page, row.series) {
			t.Errorf("%s is %v, want %v", row.series, got, row.want)
		}
	}
	s := sourcesShown(t, r)[0]
	if s.Name != "files" || s.Profile != "p" || s.Targets != 2 || s.Refused["network"] != 3 || len(s.Listed) != 5 || s.Updated == nil || s.LastFailure != nil {
		t.Errorf("the API shows %+v", s)
	}
	doorsIn(t, file, second.Addr())
	eventually(t, "the end of the first door", func() bool {
		status, _ := get(r.url + "/api/v1/targets/door-" + portOf(first))
		return status == http.StatusNotFound
	})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the file being missed", func() bool { return sourcesShown(t, r)[0].Held })
	_, page = get(r.url + "/metrics")
	if held := metric(page, `steadyprobe_discovery_held_targets{source="files"}`); held != 1 {
		t.Errorf("%v targets are held", held)
	}
	before := second.Counts().Answers
	eventually(t, "more requests", func() bool { return second.Counts().Answers > before+20 })
	if n := own.Counts().Accepted + first.Counts().Accepted; n != accepted {
		t.Errorf("%d connections were opened to doors that nothing has changed of", n-accepted)
	}
	if failed := metric(page, "steadyprobe_request_failures_total"); failed != 0 {
		t.Errorf("%v requests failed", failed)
	}
}

// TestDiscoveryReload changes what the configuration says of discovery.
func TestDiscoveryReload(t *testing.T) {
	own, door := faultdoor.Listen(t, good()), faultdoor.Listen(t, good())
	doors := filepath.Join(t.TempDir(), "doors.json")
	doorsIn(t, doors, door.Addr())
	file := configured(t, discovering(own.URL("http"), doors, ""))
	signals := make(chan os.Signal, 1)
	var log logged
	o := options(file, "127.0.0.1:0")
	o.Reload, o.Logger, o.apart = signals, log.logger(), time.Millisecond
	r := start(t, o)
	name := "door-" + portOf(door)
	eventually(t, "the door", func() bool { return door.Counts().Answers > 10 })
	reload := func(text, until string) {
		t.Helper()
		write(t, file, text)
		signals <- syscall.SIGHUP
		eventually(t, until, func() bool { return strings.Contains(log.String(), until) })
	}
	accepted := door.Counts().Accepted
	_, page := get(r.url + "/metrics")
	scheduled := metric(page, `steadyprobe_requests_scheduled_total{site="fra1",target="`+name)
	reload(discovering(own.URL("http"), doors, "")+"    max_target: 3\n", "discovery[0].max_target: unknown field")
	reload(strings.Replace(discovering(own.URL("http"), doors, ""), "file_sd_configs: [{", "file_sd_configs: [{file: [], ", 1), "discovery[0].file_sd_configs[0].file: unknown field; write files")
	reload(strings.Replace(discovering(own.URL("http"), doors, ""), "file_sd_configs:", "kubernetes_sd_configs: [{role: route, kubeconfig_file: none}]\n    file_sd_configs:", 1), `discovering from \"files\" by kubernetes`)
	if s := sourcesShown(t, r)[0]; s.Targets != 1 {
		t.Errorf("the API shows %+v after reloads that failed", s)
	}
	write(t, file, strings.Replace(discovering(own.URL("http"), doors, ""), "rate: 50", "rate: 80", 1))
	signals <- syscall.SIGHUP
	eventually(t, "another rate", func() bool {
		_, page = get(r.url + "/metrics")
		return metric(page, `steadyprobe_target_requests_per_second{site="fra1",target="`+name) == 80
	})
	if n := door.Counts().Accepted; n != accepted {
		t.Errorf("another rate has opened %d connections", n-accepted)
	}
	if n := metric(page, `steadyprobe_requests_scheduled_total{site="fra1",target="`+name); n < scheduled {
		t.Errorf("another rate has its own counters: %v, and %v before", n, scheduled)
	}
	// What is not allowed any more is gone at once.
	write(t, file, strings.Replace(discovering(own.URL("http"), doors, ""), "127.0.0.1/32", "127.0.0.2/32", 1))
	signals <- syscall.SIGHUP
	eventually(t, "the end of the door", func() bool {
		status, _ := get(r.url + "/api/v1/targets/" + name)
		return status == http.StatusNotFound
	})
	if s := sourcesShown(t, r)[0]; s.Refused["network"] != 1 {
		t.Errorf("the API shows %+v", s)
	}
	write(t, file, "targets:\n"+targetOf("own", own.URL("http"), "rate: 100, connections: 2, connection: {warm: true}"))
	signals <- syscall.SIGHUP
	eventually(t, "no source", func() bool { return len(sourcesShown(t, r)) == 0 })
	_, page = get(r.url + "/metrics")
	if strings.Contains(page, "steadyprobe_discovered_targets") || own.Counts().Accepted != 2 {
		t.Errorf("there are series of a source that is gone, or %d connections, want 2", own.Counts().Accepted)
	}
}

// TestDiscoveredNames lets a discovered name lead to the probe's own machine,
// once it is a target.
func TestDiscoveredNames(t *testing.T) {
	names := dnsdoor.Listen(t)
	names.Set("shop.example.com", "127.0.0.1")
	names.Set("evil.example.com", "127.0.0.2")
	door := faultdoor.Listen(t, good())
	port := portOf(door)
	// Somebody who should not be reached, at the same port.
	inner := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("what is not allowed was reached") }))
	if err := inner.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := listenOn("test", "127.0.0.2:"+port)
	if err != nil {
		t.Skipf("this system has one loopback address only: %v", err)
	}
	inner.Listener = l
	inner.Start()
	defer inner.Close()
	file := filepath.Join(t.TempDir(), "doors.json")
	doorsIn(t, file, "shop.example.com:"+port, "evil.example.com:"+port)
	text := strings.Replace(discovering("http://"+faultdoor.Refused(t), file, "dns: {refresh: 1s, server: '"+names.Addr().String()+"'}, connection: {max_requests: 5}, "), "networks: [127.0.0.1/32]", "hosts: [example.com], networks: [127.0.0.1/32]", 1)
	text = strings.Replace(text, "connection: {warm: true}, labels", "labels", 1)
	text = strings.Replace(text, `".*:(.+)"`, `"(.+)[.]example.*"`, 1)
	r := discover(t, text)
	eventually(t, "the name", func() bool { return door.Counts().Answers > 50 })
	eventually(t, "the refusal", func() bool { return sourcesShown(t, r)[0].Refused["network"] == 1 })
	if s := sourcesShown(t, r)[0]; s.Listed[0].Target != "door-evil" || !strings.Contains(s.Listed[0].Text, "leads to 127.0.0.2") {
		t.Errorf("the API shows %+v", s)
	}
	names.Set("shop.example.com", "127.0.0.2")
	asked := names.Counts().A
	eventually(t, "another lookup", func() bool { return names.Counts().A > asked+1 })
	before := door.Counts().Accepted
	eventually(t, "more connections", func() bool { return door.Counts().Accepted > before+5 })
	_, page := get(r.url + "/metrics")
	if failed := metric(page, `steadyprobe_lookup_failures_total{reason="error"`); failed == 0 {
		t.Error("no lookup has failed")
	}
}

// TestElsewhere counts the targets whose addresses are all refused.
func TestElsewhere(t *testing.T) {
	c, _, err := config.Parse([]byte("profiles: [{name: p, rate: 1}]\ndiscovery: [{name: d, profile: p, file_sd_configs: [{files: [a.yml]}], allow: {networks: [10.0.0.0/8]}}]"), "x.yml")
	if err != nil {
		t.Fatal(err)
	}
	var all []*probed
	for i, host := range []string{"10.0.0.1", "127.0.0.1", "127.0.0.2"} {
		u, err := config.ParseURL("http://" + host)
		if err != nil {
			t.Fatal(err)
		}
		made, err := c.Profiles[0].Target(config.Discovered{Source: &c.Discovery[0], Name: fmt.Sprint(i), URL: u})
		if err != nil {
			t.Fatal(err)
		}
		r := resolve.New(resolve.Options{Host: host, Clock: probe.NewClock(), Allow: reach(&made)})
		defer r.Close()
		all = append(all, &probed{target: &target{config: made, resolver: r}})
	}
	d := &daemon{}
	d.state.Store(newState(c, all))
	if got := d.elsewhere(); got["d"] != 2 || len(got) != 1 {
		t.Errorf("got %v, want 2 of d", got)
	}
}

func TestLookUp(t *testing.T) {
	names := dnsdoor.Listen(t)
	names.Set("a.test", "10.0.0.1", "2001:db8::1")
	for family, want := range map[string]string{"any": "[10.0.0.1 2001:db8::1]", "prefer_ipv6": "[10.0.0.1 2001:db8::1]", "ipv4": "[10.0.0.1]", "ipv6": "[2001:db8::1]"} {
		found, err := lookUp(context.Background(), discovery.Question{Host: "a.test.", Server: names.Addr(), Family: family})
		for i := range found {
			found[i] = found[i].Unmap()
		}
		if err != nil || fmt.Sprint(found) != want {
			t.Errorf("%s: got %v, %v; want %s", family, found, err, want)
		}
	}
}

// TestProfileFiles rotates a token that discovered targets send, and finds
// another one afterwards.
func TestProfileFiles(t *testing.T) {
	var h heard
	door := faultdoor.Listen(t, faultdoor.HTTP(h.answer))
	folder := t.TempDir()
	token, file := filepath.Join(folder, "token"), filepath.Join(folder, "doors.json")
	write(t, token, "planted1")
	doorsIn(t, file, door.Addr())
	text := strings.Replace(discovering(door.URL("http")+"/own", file, "http: {authorization: {credentials_file: "+token+"}}"), "replacement: \"door-$1\"}]",
		"replacement: \"door-$1\"}, {target_label: __probe_path__, replacement: /found}]", 1)
	r := discover(t, text)
	says := func(token string) func() bool {
		return func() bool { return strings.HasPrefix(h.of("/found"), "Bearer "+token+" ") }
	}
	eventually(t, "the first token", says("planted1"))
	write(t, token, "planted2")
	eventually(t, "the second token", says("planted2"))
	other := faultdoor.Listen(t, faultdoor.HTTP(h.answer))
	doorsIn(t, file, door.Addr(), other.Addr())
	eventually(t, "another target", func() bool { return other.Counts().Answers > 20 })
	if !says("planted2")() {
		t.Errorf("the targets say %q", h.of("/found"))
	}
	_, shown := get(r.url + "/config")
	_, api := get(r.url + "/api/v1/discovery")
	if strings.Contains(shown+api, "planted") {
		t.Error("a secret is shown")
	}
}

package test

import (
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/steadyprobe/steadyprobe/internal/monitoring"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// TestCompose checks the example with containers, which cannot be run here:
// each file by the program that reads it, and that the files fit together.
func TestCompose(t *testing.T) {
	e := readExample(t)
	t.Run("services", e.checkServices)
	t.Run("nginx", e.checkNGINX)
	t.Run("HAProxy", e.checkHAProxy)
	t.Run("steadyprobe", e.checkProbe)
	t.Run("Prometheus", e.checkPrometheus)
	t.Run("Alertmanager", e.checkAlertmanager)
	t.Run("Grafana", e.checkGrafana)
}

// example is the example, as the reference parser of the Compose Specification
// understands it.
type example struct {
	root     string // of the repository
	dir      string // of the example
	Services map[string]service
}

type service struct {
	Image   string
	Build   *struct{ Context string }
	Command []string
	Volumes []struct {
		Type, Source, Target string
		ReadOnly             bool `json:"read_only"`
	}
	Ports []struct {
		HostIP    string `json:"host_ip"`
		Published string
		Target    int
	}
	DependsOn map[string]any `json:"depends_on"`
}

func readExample(t *testing.T) *example {
	t.Helper()
	root := testbed.Root(t)
	e := &example{root: root, dir: filepath.Join(root, "examples", "compose")}
	parser := exec.Command(testbed.Tool(t, "compose", "cmd"), "-format", "json", "compose.yml")
	parser.Dir = e.dir
	out, err := parser.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			out = exit.Stderr
		}
		t.Fatalf("parsing the compose file: %v: %s", err, out)
	}
	if err := json.Unmarshal(out, e); err != nil {
		t.Fatalf("reading what the parser says: %v: %s", err, out)
	}
	return e
}

// container returns the path of a file that is mounted into a service: a
// folder stands for the container's root, and in it are its mounts.
func (e *example) container(t *testing.T, name, file string) string {
	t.Helper()
	root := t.TempDir()
	for _, v := range e.Services[name].Volumes {
		if v.Type != "bind" {
			continue
		}
		to := filepath.Join(root, v.Target)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(v.Source, to); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(root, file)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the container %s has no %s: %v", name, file, err)
	}
	return path
}

// checkServices: whatever is mounted is there and cannot be changed, what is
// published is only on loopback, and images have versions.
func (e *example) checkServices(t *testing.T) {
	for _, name := range []string{"backend-1", "backend-2", "nginx", "haproxy", "steadyprobe", "demo", "alertmanager", "prometheus", "grafana"} {
		if e.Services[name].Image == "" {
			t.Errorf("there is no service %s with an image", name)
		}
	}
	built := map[string]bool{}
	for _, s := range e.Services {
		if s.Build != nil {
			built[s.Image] = true
			if _, err := os.Stat(filepath.Join(s.Build.Context, "Dockerfile")); err != nil {
				t.Errorf("building %s: %v", s.Image, err)
			}
		}
	}
	published := map[string]string{}
	for name, s := range e.Services {
		if _, tag, _ := strings.Cut(s.Image, ":"); !built[s.Image] && (tag == "" || tag == "latest") {
			t.Errorf("%s: the image %q has no version", name, s.Image)
		}
		for _, v := range s.Volumes {
			if v.Type != "bind" {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s: the mount of %s: read only is %v, want true; %v", name, v.Source, v.ReadOnly, err)
			}
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" || published[p.Published] != "" {
				t.Errorf("%s: port %s is on %q, and already used by %q", name, p.Published, p.HostIP, published[p.Published])
			}
			published[p.Published] = name
		}
		for other := range s.DependsOn {
			if _, ok := e.Services[other]; !ok {
				t.Errorf("%s depends on %s, which there is not", name, other)
			}
		}
	}
}

// reachable checks that an address is that of a service which listens there.
func (e *example) reachable(t *testing.T, address string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Error(err)
		return
	}
	s, ok := e.Services[host]
	if !ok {
		t.Errorf("%s is no service", address)
		return
	}
	if strings.HasPrefix(host, "backend") && port == "8080" { // not published; in backend.conf
		return
	}
	for _, p := range s.Ports {
		if port == strconv.Itoa(p.Target) {
			return
		}
	}
	t.Errorf("%s: the service listens on %+v", address, s.Ports)
}

var upstream = regexp.MustCompile(`(?m)^\s*server (?:[\w-]+ )?([\w-]+:\d+)`)

// checkNGINX tests backend and door. Outside of the containers' network the
// backends have no names: an address stands in for them.
func (e *example) checkNGINX(t *testing.T) {
	for _, name := range []string{"backend-1", "nginx"} {
		text := read(t, e.container(t, name, "etc/nginx/nginx.conf"))
		for _, m := range upstream.FindAllStringSubmatch(text, -1) {
			e.reachable(t, m[1])
		}
		file := filepath.Join(t.TempDir(), "nginx.conf")
		text = regexp.MustCompile(`backend-\d:`).ReplaceAllString(text, "127.0.0.1:")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		checkWith(t, testbed.Program(t, "nginx"), "-t", "-e", "stderr", "-g", "pid "+file+".pid;", "-c", file)
	}
}

func (e *example) checkHAProxy(t *testing.T) {
	file := e.container(t, "haproxy", "usr/local/etc/haproxy/haproxy.cfg")
	found := upstream.FindAllStringSubmatch(read(t, file), -1)
	if len(found) != 2 {
		t.Errorf("%d backends, want 2", len(found))
	}
	for _, m := range found {
		e.reachable(t, m[1])
	}
	checkWith(t, testbed.Program(t, "haproxy"), "-c", "-f", file)
}

func (e *example) checkProbe(t *testing.T) {
	file := e.container(t, "steadyprobe", "etc/steadyprobe/steadyprobe.yml")
	checkWith(t, program(t), "check", file)
	var c struct{ Targets []struct{ URL string } }
	parse(t, file, &c)
	for _, target := range c.Targets {
		u, err := url.Parse(target.URL)
		if err != nil {
			t.Fatal(err)
		}
		e.reachable(t, u.Host)
	}
}

// checkPrometheus also checks that all rules that are shipped are loaded, but
// for those of the other kind of histograms.
func (e *example) checkPrometheus(t *testing.T) {
	file := e.container(t, "prometheus", "etc/prometheus/prometheus.yml")
	if out, err := testbed.Promtool(t, nil, "check", "config", "--lint=all", "--lint-fatal", file); err != nil {
		t.Errorf("promtool: %v: %s", err, out)
	}
	type static struct{ Targets []string }
	var c struct {
		RuleFiles []string `yaml:"rule_files"`
		Alerting  struct {
			Alertmanagers []struct {
				Static []static `yaml:"static_configs"`
			}
		}
		Scrape []struct {
			Static []static `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	parse(t, file, &c)
	for _, s := range c.Scrape {
		e.reachable(t, s.Static[0].Targets[0])
	}
	e.reachable(t, c.Alerting.Alertmanagers[0].Static[0].Targets[0])
	shipped, err := monitoring.RuleFiles(filepath.Join(e.root, "alerts"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, path := range shipped {
		if name, err := filepath.Rel(e.root, path); err == nil && !strings.Contains(name, "/classic/") {
			want = append(want, filepath.ToSlash(name))
		}
	}
	slices.Sort(c.RuleFiles)
	slices.Sort(want)
	if !slices.Equal(c.RuleFiles, want) {
		t.Errorf("the rule files are %v, want %v", c.RuleFiles, want)
	}
}

func (e *example) checkAlertmanager(t *testing.T) {
	file := e.container(t, "alertmanager", "etc/alertmanager/alertmanager.yml")
	if out, err := testbed.Amtool(t, "check-config", file); err != nil {
		t.Errorf("amtool: %v: %s", err, out)
	}
}

// checkGrafana reads what provisions it, which nothing but Grafana can check.
func (e *example) checkGrafana(t *testing.T) {
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct{ Name, Type, Access, URL string }
	}
	parse(t, e.container(t, "grafana", "etc/grafana/provisioning/datasources/prometheus.yml"), &sources)
	if len(sources.Datasources) != 1 || sources.APIVersion != 1 {
		t.Fatalf("the data sources are %+v, want one", sources)
	}
	d := sources.Datasources[0]
	if d.Type != "prometheus" || d.Access != "proxy" {
		t.Errorf("the data source is %+v", d)
	}
	e.reachable(t, strings.TrimPrefix(d.URL, "http://"))
	var boards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type string
			Options    struct{ Path string }
		}
	}
	parse(t, e.container(t, "grafana", "etc/grafana/provisioning/dashboards/steadyprobe.yml"), &boards)
	if len(boards.Providers) != 1 || boards.Providers[0].Type != "file" {
		t.Fatalf("the dashboards are %+v, want those of one folder", boards)
	}
	folder, err := filepath.EvalSymlinks(e.container(t, "grafana", boards.Providers[0].Options.Path))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := monitoring.Dashboards(folder); err != nil || len(found) < 6 {
		t.Errorf("there are %d dashboards in %s, want 6: %v", len(found), folder, err)
	}
	var raw struct {
		Services map[string]struct{ Environment map[string]string }
	}
	parse(t, filepath.Join(e.dir, "compose.yml"), &raw)
	home := raw.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	e.container(t, "grafana", home)
}

// parse reads a YAML file.
func parse(t *testing.T, file string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, file)), into); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
}

// checkWith runs a program that has to be content.
func checkWith(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v: %s", name, args, err, out)
	}
}

package testbed

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// PrometheusOptions says what a Prometheus does.
type PrometheusOptions struct {
	Global        string   // further lines of the global section, such as "evaluation_interval: 1s"
	ScrapeConfigs string   // the items of scrape_configs
	Rules         string   // a rule file's text; empty: none
	RuleFiles     []string // paths of further rule files
	Alertmanager  string   // address that alerts go to; empty: none
	Past          string   // OpenMetrics text with timestamps that it knows from the start; empty: nothing
	Flags         []string // further flags of the command line
	System        bool     // it is the machine's own, such as Debian's 2.42, and not the one of tools/prometheus
}

// ScrapeJob returns one item of scrape_configs: a job that scrapes /metrics of
// an address once a second and keeps classic and native histograms.
func ScrapeJob(job, address string) string {
	return fmt.Sprintf(`
- job_name: %s
  scrape_interval: 1s
  scrape_timeout: 1s
  scrape_native_histograms: true
  always_scrape_classic_histograms: true
  static_configs: [{targets: [%q]}]
`, job, address)
}

// PrometheusServer is a running Prometheus.
type PrometheusServer struct {
	Address string // "127.0.0.1:port"

	*server
	client *http.Client
}

// Prometheus starts a Prometheus that ends with the test, and returns when it
// is ready.
func Prometheus(t Owner, o PrometheusOptions) *PrometheusServer {
	t.Helper()
	program := "prometheus"
	if !o.System {
		program = Tool(t, "prometheus", program)
	}
	p := &PrometheusServer{
		Address: freeAddress(t),
		server:  newServer(t, program),
		client:  questions(),
	}
	config := "global:\n" + indent(o.Global) + "scrape_configs:\n" + o.ScrapeConfigs
	if strings.TrimSpace(o.Global) == "" {
		config = "scrape_configs:\n" + o.ScrapeConfigs
	}
	files := o.RuleFiles
	if o.Rules != "" {
		files = append(slices.Clone(files), p.write("rules.yml", o.Rules))
	}
	if len(files) > 0 {
		config += "\nrule_files:\n"
	}
	for _, file := range files {
		config += fmt.Sprintf("- %q\n", file)
	}
	if o.Alertmanager != "" {
		config += fmt.Sprintf("\nalerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}\n", o.Alertmanager)
	}
	if o.Past != "" {
		past := p.write("past", o.Past+"# EOF\n")
		if out, err := Promtool(t, nil, "tsdb", "create-blocks-from", "openmetrics", past, p.path("data")); err != nil {
			t.Fatalf("giving Prometheus a past: %v: %s", err, out)
		}
	}
	p.args = append([]string{
		"--config.file=" + p.write("prometheus.yml", config),
		"--storage.tsdb.path=" + p.path("data"),
		"--web.listen-address=" + p.Address,
	}, o.Flags...)
	p.start(func() bool { return p.ready() })
	return p
}

// indent puts every line of a mapping two places to the right.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		b.WriteString("  " + line)
	}
	return b.String()
}

func (p *PrometheusServer) ready() bool {
	code, _, err := fetch(p.client, "http://"+p.Address+"/-/ready")
	return err == nil && code == http.StatusOK
}

// Promtool runs promtool and returns what it printed; the error tells that it
// had a complaint, or how it could not be run.
func Promtool(t Owner, stdin io.Reader, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(Tool(t, "prometheus", "promtool"), args...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Tool returns the path of a program of tools/NAME, which scripts/tools builds.
func Tool(t Owner, module, program string) string {
	t.Helper()
	where := exec.Command(filepath.Join(Root(t), "scripts", "tools"), "where", module)
	var complaint bytes.Buffer
	where.Stderr = &complaint
	dir, err := where.Output()
	if err != nil {
		t.Fatalf("finding the tools of %q: %v: %s", module, err, complaint.String())
	}
	path := filepath.Join(strings.TrimSpace(string(dir)), program)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("finding the program %q: %v; `make setup` builds what the tests need", program, err)
	}
	return path
}

// Root returns the folder of the project's module.
func Root(t Owner) string {
	t.Helper()
	file, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("finding the folder of the project: %v", err)
	}
	return filepath.Dir(strings.TrimSpace(string(file)))
}

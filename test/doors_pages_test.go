package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// doorPages returns the pages of doors, by their paths in the repository.
func doorPages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "docs/doors/") {
			all = append(all, page)
		}
	}
	if len(all) < 7 {
		t.Fatalf("found %v, want a page for each kind of door", all)
	}
	return all
}

// blocksIn returns the blocks of a page that are of one language.
func blocksIn(t *testing.T, page, language string) []block {
	t.Helper()
	all, err := blocksOf(page, read(t, filepath.Join(testbed.Root(t), page)))
	if err != nil {
		t.Fatal(err)
	}
	var found []block
	for _, b := range all {
		if len(b.info) > 0 && b.info[0] == language {
			found = append(found, b)
		}
	}
	return found
}

// TestExamplesOfDoors loads every example, without an error and without a
// warning, and every configuration of the pages, which is what an example holds.
func TestExamplesOfDoors(t *testing.T) {
	root := testbed.Root(t)
	files, err := filepath.Glob(filepath.Join(root, "examples", "doors", "*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]string{} // text by the name of the file
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yml")
		examples[name] = read(t, file)
		if _, warnings, err := config.Load(file); err != nil || len(warnings) != 0 {
			t.Errorf("%s: %v, warnings %v; want neither", file, err, warnings)
		}
		page := filepath.Join(root, "docs", "doors", name+".md")
		if _, err := os.Stat(page); err != nil {
			t.Errorf("%s has no page: %v", file, err)
		} else if !strings.Contains(read(t, page), "](../../examples/doors/"+name+".yml)") {
			t.Errorf("%s does not link to its example", page)
		}
	}
	for _, page := range doorPages(t) {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		blocks := blocksIn(t, page, "yaml")
		if len(blocks) == 0 && name != "README" {
			t.Errorf("%s has no configuration", page)
		}
		for _, b := range blocks {
			if _, warnings, err := config.Parse([]byte(b.text), b.String()); err != nil || len(warnings) != 0 {
				t.Errorf("%v, warnings %v; want neither", err, warnings)
			}
			if !strings.Contains(examples[name], b.text) {
				t.Errorf("%v is not what examples/doors/%s.yml holds", b, name)
			}
		}
	}
}

// TestMetricsOfDoorPages looks every metric that a page of doors names up in
// the page of metrics.
func TestMetricsOfDoorPages(t *testing.T) {
	known := read(t, filepath.Join(testbed.Root(t), "docs", "METRICS.md"))
	named := 0
	for _, page := range doorPages(t) {
		text := read(t, filepath.Join(testbed.Root(t), page))
		found := regexp.MustCompile(`steadyprobe_[a-z_]+`).FindAllString(text, -1)
		for _, short := range regexp.MustCompile("`([a-z_]+_total)[`{]").FindAllStringSubmatch(text, -1) {
			found = append(found, "steadyprobe_"+strings.TrimPrefix(short[1], "steadyprobe_"))
		}
		for _, name := range found {
			named++
			if !strings.Contains(known, "\n| `"+name+"` | ") {
				t.Errorf("%s names %s, which there is not", page, name)
			}
		}
	}
	if named < 50 {
		t.Errorf("found %d metrics in the pages, which is too few to be all", named)
	}
}

// TestQueriesOfDoorPages asks a real Prometheus, which has scraped the daemon,
// every query of the pages: it understands them and has no complaint.
func TestQueriesOfDoorPages(t *testing.T) {
	checkLeaks(t)
	nginx := startNGINX(t, 0, true)
	d := startDaemon(t, "targets:"+nginx.targetConfiguration("secure", profile{tls: true, rate: 50, connections: 5}))
	p := testbed.Prometheus(t, testbed.PrometheusOptions{ScrapeConfigs: testbed.ScrapeJob("steadyprobe", d.address)})
	p.WaitForQuery(`count_over_time(steadyprobe_requests_total[20s]) >= 2`, time.Minute)
	queries := 0
	for _, page := range doorPages(t) {
		for _, b := range blocksIn(t, page, "promql") {
			queries++
			if _, warnings := p.Query(b.text); len(warnings) != 0 {
				t.Errorf("%v: Prometheus warns %v", b, warnings)
			}
			// A label that no series has makes a query that is always empty.
			for _, m := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(b.text, -1) {
				for _, name := range strings.Split(m[1], ", ") {
					if !strings.Contains(read(t, filepath.Join(testbed.Root(t), "docs", "METRICS.md")), "`"+name+"`") && name != "instance" {
						t.Errorf("%v sums by %s, which no metric has", b, name)
					}
				}
			}
		}
	}
	if queries < 25 {
		t.Errorf("found %d queries, which is too few to be all", queries)
	}
	// The queries that need nothing special have an answer.
	for _, expr := range []string{
		`histogram_quantile(0.99, sum by (target) (rate(steadyprobe_latency_seconds[5m])))`,
		`sum by (target, tls_version, cipher, key_exchange, resumed) (rate(steadyprobe_tls_handshakes_total[5m]))`,
		`steadyprobe_target_addresses`,
	} {
		if answer, _ := p.Query(expr); len(answer) == 0 {
			t.Errorf("%s has no answer", expr)
		}
	}
}

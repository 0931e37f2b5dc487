package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/barchart"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/text"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

var update = flag.Bool("update", false, "write the files of the dashboards")

// each runs a test on every dashboard.
func each(t *testing.T, test func(t *testing.T, b board, d model)) {
	t.Helper()
	for _, b := range boards() {
		t.Run(b.name, func(t *testing.T) {
			d, err := b.build()
			if err != nil {
				t.Fatal(err)
			}
			test(t, b, d)
		})
	}
}

// flat returns the panels of a dashboard without the rows.
func flat(d model) []dashboard.Panel {
	var all []dashboard.Panel
	for _, p := range d.Panels {
		if p.Panel != nil {
			all = append(all, *p.Panel)
		}
	}
	return all
}

func TestFiles(t *testing.T) {
	known := map[string]bool{}
	each(t, func(t *testing.T, b board, d model) {
		known[b.file()] = true
		want, err := encode(d)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(b.file(), want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(b.file())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator makes: go generate in dashboards/", b.file())
		}
	})
	files, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[file] {
			t.Errorf("%s comes from no dashboard", file)
		}
	}
}

// TestReadStrictly reads the files by Grafana's own schema, which refuses
// unknown fields and missing ones, and looks that nothing got lost.
func TestReadStrictly(t *testing.T) {
	register()
	each(t, func(t *testing.T, b board, _ model) {
		raw, err := os.ReadFile(b.file())
		if err != nil {
			t.Fatal(err)
		}
		read, err := readStrictly(raw)
		if err != nil {
			t.Fatal(err)
		}
		again, err := encode(read)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(decode(t, raw), decode(t, again)) {
			t.Error("a field of the file is not in Grafana's schema")
		}
	})
}

func TestReadStrictlyRefuses(t *testing.T) {
	register()
	raw, err := os.ReadFile("overview.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string][2]string{
		"a field that a dashboard has not": {`"refresh"`, `"refreshh"`},
		"a field that a panel has not":     {`"gridPos"`, `"gridPoss"`},
		"a field that a query has not":     {`"legendFormat"`, `"legendFormatt"`},
		"an option that a panel has not":   {`"colorMode"`, `"colourMode"`},
	} {
		t.Run(name, func(t *testing.T) {
			broken := bytes.Replace(raw, []byte(edit[0]), []byte(edit[1]), 1)
			if bytes.Equal(broken, raw) {
				t.Fatalf("there is no %s", edit[0])
			}
			if _, err := readStrictly(broken); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// register tells the schema of the kinds of panels and queries that are used.
// The package's own list of all kinds costs half a minute to compile.
func register() {
	r := cog.NewRuntime()
	r.RegisterPanelcfgVariant(barchart.VariantConfig())
	r.RegisterPanelcfgVariant(heatmap.VariantConfig())
	r.RegisterPanelcfgVariant(stat.VariantConfig())
	r.RegisterPanelcfgVariant(statetimeline.VariantConfig())
	r.RegisterPanelcfgVariant(table.VariantConfig())
	r.RegisterPanelcfgVariant(text.VariantConfig())
	r.RegisterPanelcfgVariant(timeseries.VariantConfig())
	r.RegisterDataqueryVariant(prometheus.VariantConfig())
}

// readStrictly reads a dashboard that the schema has nothing against. The
// schema's own strict reading returns an empty list of errors for none, takes
// that for a failure itself and loses panels, so it only judges.
func readStrictly(raw []byte) (model, error) {
	var judged, d model
	if err := judged.UnmarshalJSONStrict(raw); err != nil && err.Error() != "" {
		return d, err
	}
	err := json.Unmarshal(raw, &d)
	return d, err
}

func decode(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestDatasources: a file that names a data source of ours fits no other
// Grafana.
func TestDatasources(t *testing.T) {
	want := map[string]any{"type": "prometheus", "uid": "${datasource}"}
	each(t, func(t *testing.T, b board, d model) {
		raw, err := encode(d)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		walk(decode(t, raw), func(key string, value any) {
			switch key {
			case "datasource":
				found++
				if !reflect.DeepEqual(value, want) {
					t.Errorf("a data source is %v", value)
				}
			case "targets": // of a panel
				for _, q := range value.([]any) {
					if q.(map[string]any)["datasource"] == nil {
						t.Errorf("a query has no data source: %v", q)
					}
				}
			}
		})
		if found == 0 {
			t.Error("no data source at all")
		}
		first := d.Templating.List[0]
		if first.Type != "datasource" || first.Name != "datasource" || first.Query.String == nil || *first.Query.String != "prometheus" {
			t.Error("the first variable is not the data source")
		}
	})
}

// walk visits every field of every object.
func walk(v any, visit func(key string, value any)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			visit(key, value)
			walk(value, visit)
		}
	case []any:
		for _, value := range v {
			walk(value, visit)
		}
	}
}

func TestPanels(t *testing.T) {
	uids, titles := map[string]bool{}, map[string]bool{}
	each(t, func(t *testing.T, b board, d model) {
		// Grafana takes at most 40 characters.
		if uid := *d.Uid; uids[uid] || len(uid) > 40 || uid != "steadyprobe-"+b.name {
			t.Errorf("uid %q", uid)
		}
		uids[*d.Uid] = true
		if titles[*d.Title] || *d.Description == "" {
			t.Errorf("title %q, description %q", *d.Title, *d.Description)
		}
		titles[*d.Title] = true
		if d.Id != nil {
			t.Error("an id of one Grafana")
		}

		ids := map[uint32]bool{}
		for _, p := range flat(d) {
			about(t, p)
			if ids[*p.Id] {
				t.Errorf("%q has the id of another panel", *p.Title)
			}
			ids[*p.Id] = true
		}
		for _, p := range d.Panels {
			if p.RowPanel != nil && ids[p.RowPanel.Id] {
				t.Errorf("the row %q has the id of a panel", *p.RowPanel.Title)
			}
		}
		overlap(t, d)
	})
}

// about looks at what a panel says about itself.
func about(t *testing.T, p dashboard.Panel) {
	t.Helper()
	if p.Title == nil || *p.Title == "" {
		t.Fatalf("panel %d has no title", *p.Id)
	}
	if p.Description == nil || !strings.HasSuffix(*p.Description, ".") {
		t.Errorf("%q has no description in sentences", *p.Title)
	}
	if p.Type == "text" {
		return
	}
	if p.FieldConfig.Defaults.Unit == nil || *p.FieldConfig.Defaults.Unit == "" {
		t.Errorf("%q has no unit", *p.Title)
	}
	if len(p.Targets) == 0 {
		t.Errorf("%q has no query", *p.Title)
	}
	refs := map[string]bool{}
	for _, target := range p.Targets {
		ref := *target.(prometheus.Dataquery).RefId
		if refs[ref] {
			t.Errorf("%q has two queries %s", *p.Title, ref)
		}
		refs[ref] = true
	}
}

// overlap looks that no panel covers another, and that lines of panels are
// full.
func overlap(t *testing.T, d model) {
	t.Helper()
	taken := map[[2]uint32]string{}
	place := func(title string, g dashboard.GridPos) {
		if g.X+g.W > 24 {
			t.Errorf("%q reaches over the edge", title)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]uint32{x, y}]; other != "" {
					t.Fatalf("%q covers %q", title, other)
				}
				taken[[2]uint32{x, y}] = title
			}
		}
	}
	bottom := uint32(0)
	for _, p := range d.Panels {
		if row := p.RowPanel; row != nil {
			place(*row.Title, *row.GridPos)
			continue
		}
		place(*p.Panel.Title, *p.Panel.GridPos)
		bottom = max(bottom, p.Panel.GridPos.Y+p.Panel.GridPos.H)
	}
	for cell := uint32(0); cell < 24*bottom; cell++ {
		if at := [2]uint32{cell % 24, cell / 24}; taken[at] == "" {
			t.Fatalf("there is a hole in the grid at %v", at)
		}
	}
}

// TestLinks: every dashboard leads to the others with its variables, and links
// to one dashboard lead to one that there is.
func TestLinks(t *testing.T) {
	each(t, func(t *testing.T, b board, d model) {
		if len(d.Links) != 1 || d.Links[0].Tags[0] != d.Tags[0] || !d.Links[0].IncludeVars || !d.Links[0].KeepTime {
			t.Errorf("links %+v", d.Links)
		}
		raw, err := encode(d)
		if err != nil {
			t.Fatal(err)
		}
		walk(decode(t, raw), func(key string, value any) {
			url, _ := value.(string)
			if key != "url" || url == "" {
				return
			}
			for _, other := range boards() {
				if strings.HasPrefix(url, fmt.Sprintf("/d/%s?${datasource:queryparam}&", other.uid())) {
					return
				}
			}
			t.Errorf("a link leads to %s", url)
		})
	})
}

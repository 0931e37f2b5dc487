package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// model is a dashboard in the first version of Grafana's schema, which every
// Grafana imports and provisions. The second version, which the library
// prefers, only recent ones read.
type (
	model   = dashboard.Dashboard        //nolint:staticcheck // deprecated for the second version
	builder = dashboard.DashboardBuilder //nolint:staticcheck // deprecated for the second version
)

// board is one dashboard before it is built.
type board struct {
	name        string // of its file, and behind "steadyprobe-" its uid
	title       string
	description string
	variables   []cog.Builder[dashboard.VariableModel]
	annotations []cog.Builder[dashboard.AnnotationQuery]
	sections    []section
}

// section is a row of a dashboard and the panels below it.
type section struct {
	title  string // of its row; without one the panels stand alone
	repeat string // the variable for each value of which it is shown
	panels []cog.Builder[dashboard.Panel]
}

func panels(all ...cog.Builder[dashboard.Panel]) []cog.Builder[dashboard.Panel] { return all }

// tag is what the dashboards find each other by.
const tag = "steadyprobe"

// boards returns all dashboards, in the order in which a reader meets them.
func boards() []board {
	return []board{overview(), door(), comparison(), churn(), tls(), probe()}
}

// uid is the identity of a dashboard in Grafana, and the path that links to it
// have behind /d/.
func (b board) uid() string { return tag + "-" + b.name }

// file is the name of the dashboard's file.
func (b board) file() string { return b.name + ".json" }

// build makes the dashboard as Grafana reads it.
func (b board) build() (model, error) {
	d := dashboard.NewDashboardBuilder("steadyprobe: "+b.title). //nolint:staticcheck // see model
									Uid(b.uid()).
									Description(b.description).
									Tags([]string{tag}).
									Timezone("browser").
									Time("now-1h", "now").
									Refresh("30s").
									Tooltip(dashboard.DashboardCursorSyncCrosshair).
									Variables(b.variables).
									Annotations(b.annotations).
									Link(dashboard.NewDashboardLinkBuilder("steadyprobe").
										Type(dashboard.DashboardLinkTypeDashboards).
										Tooltip("The other dashboards, with the same time, data source, job and targets.").
										Tags([]string{tag}).
										IncludeVars(true).
										KeepTime(true))
	for _, s := range b.sections {
		s.add(d)
	}
	built, err := d.Build()
	if err != nil {
		return built, fmt.Errorf("building dashboard %q: %w", b.name, err)
	}
	identify(built.Panels)
	return built, nil
}

func (s section) add(d *builder) {
	if s.title != "" {
		row := dashboard.NewRowBuilder(s.title)
		if s.repeat != "" {
			row.Repeat(s.repeat)
		}
		d.WithRow(row)
	}
	for _, p := range s.panels {
		d.WithPanel(p)
	}
}

// identify gives every row and panel its id, which links to a panel use.
func identify(panels []dashboard.PanelOrRowPanel) {
	for i := range panels {
		id := uint32(i + 1)
		if p := panels[i].Panel; p != nil {
			p.Id = &id
		} else {
			panels[i].RowPanel.Id = id
		}
	}
}

// encode is the content of a dashboard's file.
func encode(d model) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, fmt.Errorf("encoding dashboard %q: %w", *d.Title, err)
	}
	return out.Bytes(), nil
}

// datasource is whichever Prometheus the reader chose.
func datasource() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// link leads to a dashboard, for one target with its job, whose names the
// clicked point has at the given paths.
func link(title, to, job, target string) map[string]any {
	return map[string]any{
		"title": title,
		"url": fmt.Sprintf("/d/%s-%s?${datasource:queryparam}&var-job=${%s}&var-target=${%s}&${__url_time_range}",
			tag, to, job, target),
	}
}

// doorLinks are the links of a series that belongs to one target.
func doorLinks() []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "links", Value: []any{
		link("Detail of ${__field.labels.target}", "door", "__field.labels.job", "__field.labels.target"),
	}}}
}

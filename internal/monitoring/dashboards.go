package monitoring

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Dashboard is what the tests look at of a dashboard of Grafana.
type Dashboard struct {
	File      string // path
	UID       string
	Title     string
	Variables []Variable
	Panels    []Panel // in their order, those inside of rows included; rows themselves are not
	Queries   []Query // of all panels, and of annotations
}

// Panel is one panel.
type Panel struct {
	Title       string
	Type        string // as "timeseries", "text"
	Description string
	Unit        string // of its fields by default
	Datasource  string // uid of its data source, empty where it has none
}

// Query is one expression of a dashboard, with its variables as they are
// written.
type Query struct {
	Dashboard  string // title
	Panel      string // title; of an annotation, "annotation NAME"
	Ref        string // letter of the query in its panel
	Expr       string
	Legend     string // with the labels that it names in braces
	Instant    bool   // evaluated once, and not for each point of a graph
	Datasource string // uid
}

// String names the query for people.
func (q Query) String() string { return q.Dashboard + " / " + q.Panel + " / " + q.Ref }

// Variable is a variable of a dashboard.
type Variable struct {
	Name       string
	Type       string // as "query", "custom", "datasource"
	Query      string // definition of its values, as "label_values(up, job)"
	Multi      bool   // several values may be chosen
	IncludeAll bool   // all may be chosen
	AllValue   string // what stands for all; empty: all values
}

// Dashboards reads the dashboards in the tree below a folder, sorted by path.
// Other JSON files, those without panels, are none.
func Dashboards(folder string) ([]Dashboard, error) {
	var all []Dashboard
	err := filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d, err := readDashboard(text)
		if err != nil {
			return fmt.Errorf("reading the dashboard %q: %w", path, err)
		}
		d.File = path
		if len(d.Panels) > 0 {
			all = append(all, d)
		}
		return nil
	})
	return all, err
}

// The parts of Grafana's dashboard JSON, schema versions 36 and later.
type (
	panelFile struct {
		Title, Type, Description string
		Datasource               source
		Targets                  []targetFile
		Panels                   []panelFile // of a row
		FieldConfig              struct{ Defaults struct{ Unit string } }
	}
	targetFile struct {
		Expr, RefID, LegendFormat string
		Instant                   bool
		Datasource                source
	}
	// source is the reference to a data source; an old one is a mere text.
	source      struct{ UID string }
	rawVariable struct {
		Name, Type string
		Query      json.RawMessage // a text, or with one
		Multi      bool
		IncludeAll bool
		AllValue   *string
	}
	dashboardFile struct {
		UID, Title  string
		Panels      []panelFile
		Templating  struct{ List []rawVariable }
		Annotations struct {
			List []struct {
				Name, Expr string
				Datasource source
				Target     targetFile
			}
		}
	}
)

// UnmarshalJSON implements json.Unmarshaler.
func (s *source) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &s.UID) == nil {
		return nil
	}
	type plain source
	return json.Unmarshal(text, (*plain)(s))
}

func readDashboard(text []byte) (Dashboard, error) {
	var f dashboardFile
	if err := json.Unmarshal(text, &f); err != nil {
		return Dashboard{}, err
	}
	d := Dashboard{UID: f.UID, Title: f.Title}
	for _, v := range f.Templating.List {
		d.Variables = append(d.Variables, variable(v))
	}
	for _, a := range f.Annotations.List {
		expr := cmp.Or(a.Target.Expr, a.Expr) // older Grafana reads the latter
		if expr == "" {
			continue // Grafana's own
		}
		d.Queries = append(d.Queries, Query{
			Dashboard: d.Title, Panel: "annotation " + a.Name, Ref: "A", Expr: expr, Datasource: a.Datasource.UID,
		})
	}
	d.addPanels(f.Panels)
	return d, nil
}

func (d *Dashboard) addPanels(panels []panelFile) {
	for _, p := range panels {
		d.addPanels(p.Panels)
		if p.Type == "row" {
			continue
		}
		d.Panels = append(d.Panels, Panel{
			Title: p.Title, Type: p.Type, Description: p.Description, Unit: p.FieldConfig.Defaults.Unit, Datasource: p.Datasource.UID,
		})
		for _, q := range p.Targets {
			from := q.Datasource.UID
			if from == "" {
				from = p.Datasource.UID
			}
			d.Queries = append(d.Queries, Query{
				Dashboard: d.Title, Panel: p.Title, Ref: q.RefID, Expr: q.Expr, Legend: q.LegendFormat, Instant: q.Instant, Datasource: from,
			})
		}
	}
}

// variable reads a variable, whose query is a text or has one of that name.
func variable(r rawVariable) Variable {
	v := Variable{Name: r.Name, Type: r.Type, Multi: r.Multi, IncludeAll: r.IncludeAll}
	if r.AllValue != nil {
		v.AllValue = *r.AllValue
	}
	if json.Unmarshal(r.Query, &v.Query) != nil {
		var with struct{ Query string }
		if json.Unmarshal(r.Query, &with) == nil {
			v.Query = with.Query
		}
	}
	return v
}

var reference = regexp.MustCompile(`\$\{(\w+)(?::[^}]*)?\}|\$([A-Za-z_]\w*)|\[\[(\w+)(?::\w+)?\]\]`)

// Interpolate puts values in the place of the variables of a text. value is
// asked for each; one that it does not know stays as it is.
func Interpolate(text string, value func(name string) (string, bool)) string {
	return reference.ReplaceAllStringFunc(text, func(w string) string {
		m := reference.FindStringSubmatch(w)
		if v, ok := value(m[1] + m[2] + m[3]); ok {
			return v
		}
		return w
	})
}

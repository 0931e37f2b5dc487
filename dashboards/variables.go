package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// source lets the reader choose among the Prometheus servers that Grafana
// knows: nothing is wired to one, so a file can be imported and provisioned
// as it is.
func source() *dashboard.DatasourceVariableBuilder {
	return dashboard.NewDatasourceVariableBuilder("datasource").
		Label("Data source").
		Description("The Prometheus that scrapes steadyprobe.").
		Type("prometheus")
}

// one is a variable of one value of a label.
func one(name, label, description, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).
		Description(description).
		Datasource(datasource()).
		Query(dashboard.StringOrMap{String: &query}).
		Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc)
}

// many is a variable of any number of values of a label, all at first.
func many(name, label, description, query string) *dashboard.QueryVariableBuilder {
	all := func() dashboard.StringOrArrayOfString {
		return dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}}
	}
	return one(name, label, description, query).
		Multi(true).
		IncludeAll(true).
		AllValue(".+").
		Current(dashboard.VariableOption{
			Selected: cog.ToPtr(true),
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    all(),
		})
}

// values asks Prometheus for the values of a label.
func values(metric, selection, label string) string {
	if selection != "" {
		metric += "{" + selection + "}"
	}
	return fmt.Sprintf("label_values(%s, %s)", metric, label)
}

const aboutJob = "The scrape job. Different sites or kinds of histogram belong into different jobs."

func anyJobs() *dashboard.QueryVariableBuilder {
	return many("job", "Job", aboutJob, values("steadyprobe_target_info", "", "job"))
}

func oneJob() *dashboard.QueryVariableBuilder {
	return one("job", "Job", aboutJob, values("steadyprobe_target_info", "", "job"))
}

func anyTargets(selection string) *dashboard.QueryVariableBuilder {
	return many("target", "Target", "The doors, by the names of their targets.",
		values("steadyprobe_target_info", selection, "target"))
}

// window chooses among the sliding windows of the exact quantiles.
func window() *dashboard.CustomVariableBuilder {
	return choice("window", "Window",
		"What the exact percentiles look back over. A percentile is only shown while the window holds enough requests for it: 10,000 for the 99.99th.",
		"1m", "5m", "1h")
}

// choice is a variable with a fixed list of values, the first one chosen.
func choice(name, label, description string, all ...string) *dashboard.CustomVariableBuilder {
	joined := strings.Join(all, ",")
	options := make([]dashboard.VariableOption, len(all))
	for i, value := range all {
		options[i] = option(value, i == 0)
	}
	return dashboard.NewCustomVariableBuilder(name).
		Label(label).
		Description(description).
		Values(dashboard.StringOrMap{String: &joined}).
		Options(options).
		Current(option(all[0], true))
}

func option(value string, selected bool) dashboard.VariableOption {
	return dashboard.VariableOption{
		Selected: &selected,
		Text:     dashboard.StringOrArrayOfString{String: &value},
		Value:    dashboard.StringOrArrayOfString{String: &value},
	}
}

// labelFilter narrows all queries down by labels that users set on their targets.
// It stands only on dashboards all of whose series carry these labels: those of
// a churn and of the process do not, and would vanish.
func labelFilter() *dashboard.AdHocVariableBuilder {
	return dashboard.NewAdHocVariableBuilder("labels").
		Label("Labels").
		Description("Filters by the labels that you gave to your targets, for example site or front. What is said of the probe itself and of churns has no such labels and is missing meanwhile.").
		Datasource(datasource())
}

// The annotations mark on every graph what a reader must know before he
// blames a door.

// churning marks the time in which a churn scales its workload.
func churning(selection string) *dashboard.AnnotationQueryBuilder {
	return annotation("Churn", "orange",
		"max by (job, churn, phase) "+ever("steadyprobe_churn_phase", with(selection, `phase=~"scaling_.+"`))+" > 0",
		"{{churn}}: {{phase}}", "churn,phase",
		"The churn scales the backend and the door has not settled yet.")
}

// untrusted marks the time in which the probe lacked a resource.
func untrusted(selection string) *dashboard.AnnotationQueryBuilder {
	return annotation("Not to be trusted", "red",
		"max by (job, instance, resource) "+ever("steadyprobe_saturated", selection)+" > 0",
		"The probe lacks {{resource}}", "instance,resource",
		"The probe on {{instance}} lacks {{resource}}: its figures are not to be trusted.")
}

// readdressed marks changes of a target's addresses.
func readdressed(selection string) *dashboard.AnnotationQueryBuilder {
	return annotation("Addresses", "blue",
		fmt.Sprintf(`sum by (job, target, direction) (increase(steadyprobe_target_address_changes_total{%s}[%s])) > 0`, selection, step),
		"{{target}}: address {{direction}}", "target,direction",
		"The name of {{target}} leads to other addresses.")
}

func annotation(name, color, expr, title, tags, about string) *dashboard.AnnotationQueryBuilder {
	const every = "5s"
	return dashboard.NewAnnotationQueryBuilder().
		Name(name).
		Datasource(datasource()).
		Enable(true).
		IconColor(color).
		// Older Grafana reads expr and step, newer the target.
		Expr(expr).
		Step(every).
		Target(prometheus.NewDataqueryBuilder().RefId("Anno").Datasource(datasource()).Expr(expr).Interval(every).Range()).
		TitleFormat(title).
		TextFormat(about).
		TagKeys(tags)
}

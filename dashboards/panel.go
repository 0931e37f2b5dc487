package main

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/barchart"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/text"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// The units that the panels use, by Grafana's names.
const (
	seconds   = "s"
	share     = "percentunit"
	perSecond = "reqps"
	events    = "ops"
	count     = "short"
	size      = "bytes"
	byteRate  = "Bps"
	moment    = "dateTimeAsIso" // of milliseconds since the epoch
	times     = "suffix:×"
	plain     = "none"
)

// The sizes of panels; the grid is 24 wide.
const (
	third  = 8
	half   = 12
	whole  = 24
	height = 8
)

// head is what every panel says about itself.
type head struct {
	title       string
	description string // what it shows and how to read it, in full sentences
	unit        string // of the values, one of the units above
}

// graph draws lines over time, three panels in a row of the grid.
func graph(h head, queries ...query) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().
		Title(h.title).Description(h.description).Unit(h.unit).
		Datasource(datasource()).
		Span(third).Height(height).
		Targets(ranges(queries)).
		Legend(legend("lastNotNull", "max")).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		LineWidth(1).
		FillOpacity(5).
		ShowPoints(common.VisibilityModeAuto).
		AxisSoftMin(0)
}

// latencies draws times on a logarithmic axis: a door's median and its worst
// request are often a factor of 1,000 apart.
func latencies(h head, queries ...query) *timeseries.PanelBuilder {
	h.unit = seconds
	return graph(h, queries...).FillOpacity(0).ScaleDistribution(logarithmic())
}

// stacked draws what adds up. A query that leaves out what is 0 keeps the
// legend short.
func stacked(h head, queries ...query) *timeseries.PanelBuilder {
	return graph(h, queries...).
		FillOpacity(40).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// bars draws what happens now and then.
func bars(h head, queries ...query) *timeseries.PanelBuilder {
	return stacked(h, queries...).DrawStyle(common.GraphDrawStyleBars).FillOpacity(80).NoValue("none")
}

// figure shows present values in large print.
func figure(h head, steps []dashboard.Threshold, queries ...query) *stat.PanelBuilder {
	return stat.NewPanelBuilder().
		Title(h.title).Description(h.description).Unit(h.unit).
		Datasource(datasource()).
		Span(3).Height(4).
		Targets(instants(queries, prometheus.PromQueryFormatTimeSeries)).
		Thresholds(thresholds(steps)).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		GraphMode(common.BigValueGraphModeNone).
		Orientation(common.VizOrientationAuto).
		ColorMode(common.BigValueColorModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

// density draws a distribution over time.
func density(h head, expr string) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().
		Title(h.title).Description(h.description).Unit(h.unit).
		Datasource(datasource()).
		Span(half).Height(height).
		// Grafana draws native histograms as they are; the format is for
		// classic buckets, which arrive as one series for each le.
		Targets(dataqueries([]query{q("{{le}}", expr)}, func(b *prometheus.DataqueryBuilder) {
			b.Range().Format(prometheus.PromQueryFormatHeatmap)
		})).
		MaxDataPoints(120).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(h.unit).AxisPlacement(common.AxisPlacementLeft)).
		Color(heatmap.NewHeatmapColorOptionsBuilder().
			Mode(heatmap.HeatmapColorModeScheme).
			Scale(heatmap.HeatmapColorScaleExponential).
			Exponent(0.5).Scheme("Oranges").Fill("dark-orange").Steps(64)).
		Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).YHistogram(true).ShowColorScale(true))
}

// timeline draws states over time.
func timeline(h head, mappings []dashboard.ValueMapping, queries ...query) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().
		Title(h.title).Description(h.description).Unit(h.unit).
		Datasource(datasource()).
		Span(half).Height(height).
		Targets(ranges(queries)).
		Mappings(mappings).
		FillOpacity(70).LineWidth(0).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderNone))
}

// percentiles draws one group of bars for each percentile of latency, with a
// bar for each target.
func percentiles(h head, expr string) *barchart.PanelBuilder {
	return barchart.NewPanelBuilder().
		Title(h.title).Description(h.description).Unit(h.unit).
		Datasource(datasource()).
		Span(half).Height(10).
		Targets(instants([]query{q("", expr)}, prometheus.PromQueryFormatTable)).
		WithTransformation(dashboard.DataTransformerConfig{Id: "sortBy", Options: map[string]any{
			"sort": []map[string]any{{"field": "q"}},
		}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "groupingToMatrix", Options: map[string]any{
			"columnField": "target", "rowField": "q", "valueField": "Value",
		}}).
		XField(`q\target`).
		Orientation(common.VizOrientationVertical).
		ShowValue(common.VisibilityModeAuto).
		ScaleDistribution(logarithmic()).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderNone))
}

// column is a column of a table: a query that has one value for each row.
type column struct {
	title string
	unit  string
	expr  string
}

// rows is a table with a row for each set of labels that the queries share and
// a column for each label and each query. The unit of the head is the one of
// columns that have none.
func rows(h head, columns ...column) *table.PanelBuilder {
	queries := make([]query, len(columns))
	names := map[string]any{}
	for i, c := range columns {
		queries[i] = q("", c.expr)
		names[valueOf(i, len(columns))] = c.title
	}
	b := table.NewPanelBuilder().
		Title(h.title).Description(h.description).Unit(h.unit).
		Datasource(datasource()).
		Span(whole).Height(height).
		Targets(instants(queries, prometheus.PromQueryFormatTable)).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]any{"Time": true, "__name__": true},
			"renameByName":  names,
		}}).
		Filterable(true).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{}))
	for _, c := range columns {
		b.OverrideByName(c.title, []dashboard.DynamicConfigValue{{Id: "unit", Value: c.unit}})
	}
	return b
}

// valueOf is the name that Grafana gives to the values of the query at the
// index, of so many.
func valueOf(index, queries int) string {
	if queries == 1 {
		return "Value"
	}
	return "Value #" + refs[index:index+1]
}

// page is a panel of prose.
func page(title, content string) *text.PanelBuilder {
	return text.NewPanelBuilder().
		Title(title).Description("How to read this dashboard.").
		Span(whole).Height(6).
		Mode(text.TextModeMarkdown).
		Content(content)
}

func legend(calcs ...string) *common.VizLegendOptionsBuilder {
	return common.NewVizLegendOptionsBuilder().
		DisplayMode(common.LegendDisplayModeTable).
		Placement(common.LegendPlacementBottom).
		ShowLegend(true).
		Calcs(calcs)
}

func logarithmic() *common.ScaleDistributionConfigBuilder {
	return common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10)
}

func thresholds(steps []dashboard.Threshold) *dashboard.ThresholdsConfigBuilder {
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// neutral colours nothing, for values of which none is bad in itself.
func neutral() []dashboard.Threshold { return []dashboard.Threshold{{Color: "text"}} }

// rising colours values that are bad when they are high.
func rising(warn, bad float64) []dashboard.Threshold {
	return []dashboard.Threshold{{Color: "green"}, {Color: "orange", Value: &warn}, {Color: "red", Value: &bad}}
}

// falling colours values that are bad when they are low.
func falling(bad, warn float64) []dashboard.Threshold {
	return []dashboard.Threshold{{Color: "red"}, {Color: "orange", Value: &bad}, {Color: "green", Value: &warn}}
}

// state is a value with its word and colour.
type state struct{ text, color string }

// states maps 0, 1, 2 and so on to words.
func states(all ...state) []dashboard.ValueMapping {
	options := map[string]dashboard.ValueMappingResult{}
	for i, s := range all {
		options[strconv.Itoa(i)] = dashboard.ValueMappingResult{
			Text: cog.ToPtr(s.text), Color: cog.ToPtr(s.color), Index: cog.ToPtr(int32(i)),
		}
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}}
}

// dashed draws the series of a query as a dashed line without filling: what
// was asked for, beside what came of it.
func dashed(b *timeseries.PanelBuilder, ref string) *timeseries.PanelBuilder {
	return b.OverrideByQuery(ref, []dashboard.DynamicConfigValue{
		{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 8}}},
		{Id: "custom.fillOpacity", Value: 0},
	})
}

// unstacked draws the series of a query as a line over a stack.
func unstacked(b *timeseries.PanelBuilder, ref string) *timeseries.PanelBuilder {
	return b.OverrideByQuery(ref, []dashboard.DynamicConfigValue{
		{Id: "custom.stacking", Value: map[string]any{"mode": "none", "group": "A"}},
		{Id: "custom.fillOpacity", Value: 0},
		{Id: "custom.lineWidth", Value: 2},
		{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": "text"}},
	})
}

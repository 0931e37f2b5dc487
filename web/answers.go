package web

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// answerViews returns the answers of each status, in the order of statuses.
func answerViews(t *Target) (all []answerView) {
	codes, sum := t.unexpected(), uint64(0)
	for _, n := range t.Responses {
		sum += n
	}
	for _, code := range byCode(t.Responses) {
		n := t.Responses[code]
		v := answerView{Status: statusName(code), Meaning: "As expected.", Count: count(n), Share: percent(n, sum)}
		if v.Unexpected = slices.Contains(codes, code); v.Unexpected {
			v.Meaning = strings.TrimSpace("Not expected: it counts as " + responseStatus + ". " + sentence(means(statusMeanings[:], code)))
		}
		all = append(all, v)
	}
	return all
}

// meaningOf says in a sentence what a failure means.
func meaningOf(t *Target, f *Failure) string {
	text := sentence(means(failureMeanings[:], f.name()))
	if codes := t.unexpected(); f.name() == responseStatus && len(codes) == 1 {
		text += " " + sentence(means(statusMeanings[:], codes[0]))
	}
	return strings.TrimSpace(text)
}

// newObjectiveView returns nil where there is no objective.
func newObjectiveView(t *Target) *objectiveView {
	o := t.Objective
	if o == nil {
		return nil
	}
	v := &objectiveView{Text: "within " + seconds(o.Latency), Within: count(o.Within), Share: dash}
	if !math.IsNaN(float64(o.Ratio)) {
		v.Text = precise(float64(o.Ratio)) + " " + v.Text
	}
	if t.Completed > 0 {
		share := float64(o.Within) / float64(t.Completed)
		v.Share, v.Missed = precise(share), share < float64(o.Ratio)
	}
	return v
}

// precise returns a share in per cent to three digits behind the point, rounded
// down, so that what misses an objective never looks as if it met it.
func precise(share float64) string {
	// A ratio such as 0.999 has no exact binary form.
	const half = 1e-9
	return strconv.FormatFloat(math.Floor(share*1e5+half)/1e3, 'f', -1, 64) + " %"
}

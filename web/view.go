package web

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// maxDetailed is how many targets the page shows in detail, the least well
// ones; a line for each of the others is enough to find it in the API.
const maxDetailed = 50

// maxConditions is how many targets have their condition listed though they are
// up; of more, only those that are not.
const maxConditions = 12

// view is what the template shows.
type view struct {
	Version, Revision string
	Links             []link
	Shard             string // which of several processes; empty: it is alone
	Started, Now      instant
	Loaded            instant  // the configuration
	Troubles          []string // why the process is not healthy or not ready
	FailedReload      *reloadView
	Verdict           string
	Trust             trustView
	Conditions        []targetView // those of Targets whose condition is listed
	Targets           []targetView // in detail
	Rest              []targetView // a line each
	Of                string       // targets in all
	Findings          []Finding
	MoreFindings      int
	Churns            []churnView
	ByPhase           bool // whether a churn is tied to any of Targets
	Failing           bool // whether a request of any of Targets failed
	ByAddress         bool // whether any of Targets has figures by address
	ByBackend         bool // whether any of Targets has figures by backend
	Answered          bool // whether any of Targets was answered
	Promised          bool // whether any of Targets has an objective
	Plots             *plotViews
	Words             []word      // that nobody can do without
	MoreWords         []wordGroup // all others
}

type link struct{ Path, Text string }

// reloadView is a reload that has failed.
type reloadView struct {
	At       instant
	Problems []string
}

// maxProblems is how many problems of a configuration the page shows.
const maxProblems = 10

type trustView struct {
	OK      bool
	Self    string
	Reasons []string
}

// targetView is one target; figures are texts.
type targetView struct {
	Name, URL, Churn                        string
	State, Symbol, Reason                   string
	Since                                   instant
	Closed                                  bool
	Rate, Kept                              string
	Missed                                  bool // the rate is not kept
	Minute, Five                            []cell
	P99                                     string // of 5 minutes
	Recent, Failed                          string
	FailedRecently                          bool
	Open, Limit, Opened, ClosedBy           string
	InFlight, Backlog, Scheduled, Completed string
	Late50, Late99, Service50, Service99    string
	Failures                                []failureView
	Addresses                               []addressView
	Backends                                []backendView
	Answers                                 []answerView
	Objective                               *objectiveView
	Phases                                  []phaseView
}

// cell is a figure below a heading, which a narrow page repeats.
type cell struct{ Label, Text string }

type failureView struct{ Name, Meaning, Recent, Total string }

// answerView is the answers of one status.
type answerView struct {
	Status, Meaning, Count, Share string
	Unexpected                    bool
}

type objectiveView struct {
	Text, Within, Share string
	Missed              bool
}

type addressView struct {
	Name, Requests, Failed, P50, P99 string
	Failing                          bool
}

type backendView struct{ Name, Answers, Share string }

type phaseView struct {
	Name, Completed, Failed, Share, Reasons, P50, P99, P999 string
	Worst, Failing                                          bool
}

func newView(o *Options, p *plots) *view {
	s, targets := o.Status(), o.Targets()
	v := &view{
		Version: s.Version, Revision: s.Revision,
		Links:   []link{{pathMetrics, "Metrics"}, {pathConfig, "Configuration"}, {pathAPI + "targets", "All figures as JSON (API)"}, {pathHealthy, "Health"}, {pathReady, "Readiness"}},
		Shard:   shardText(s.Shard),
		Started: instantOf(s.Started, s.Now), Now: instantOf(s.Now, s.Now), Loaded: instantOf(s.Configuration.Loaded, s.Now),
		Trust: trustOf(&s.Trust), Verdict: verdict(targets), Of: count(uint64(len(targets))),
		Findings: Findings(targets), Plots: p.views(targets, &s),
		Words: firstWords(), MoreWords: moreWords(),
	}
	for _, of := range []func() (string, bool){o.Health.healthy, o.Health.ready} {
		if sentence, ok := of(); !ok {
			v.Troubles = append(v.Troubles, sentence)
		}
	}
	if f := s.Configuration.Failed; f != nil {
		v.FailedReload = &reloadView{At: instantOf(f.At, s.Now), Problems: strings.Split(f.Error, "\n")}
		if more := len(v.FailedReload.Problems) - maxProblems; more > 0 {
			v.FailedReload.Problems = append(v.FailedReload.Problems[:maxProblems], fmt.Sprintf("%d more, see the log.", more))
		}
	}
	if v.MoreFindings = len(v.Findings) - maxFindings; v.MoreFindings > 0 {
		v.Findings = v.Findings[:maxFindings]
	}
	for _, c := range o.Churns() {
		v.Churns = append(v.Churns, newChurnView(&c, s.Now))
	}
	shown := targets
	if len(targets) > maxDetailed {
		shown = byNeed(targets)
	}
	for i := range shown {
		t := newTargetView(&shown[i], s.Now)
		if i >= maxDetailed {
			v.Rest = append(v.Rest, t)
			continue
		}
		v.Targets = append(v.Targets, t)
		if len(targets) <= maxConditions || t.State != stateUp {
			v.Conditions = append(v.Conditions, t)
		}
		v.ByPhase = v.ByPhase || len(t.Phases) > 0
		v.Failing = v.Failing || len(t.Failures) > 0
		v.ByAddress = v.ByAddress || len(t.Addresses) > 0
		v.ByBackend = v.ByBackend || len(t.Backends) > 0
		v.Answered = v.Answered || len(t.Answers) > 0
		v.Promised = v.Promised || t.Objective != nil
	}
	return v
}

// Many reports whether not all targets are shown in detail.
func (v *view) Many() bool { return len(v.Rest) > 0 }

// AnyClosed reports whether a closed loop is among the targets in detail.
func (v *view) AnyClosed() bool {
	return slices.ContainsFunc(v.Targets, func(t targetView) bool { return t.Closed })
}

func trustOf(t *Trust) trustView {
	v := trustView{OK: t.Trustworthy, Reasons: t.Reasons}
	p50, p99 := t.SelfLatency.at(0.5), t.SelfLatency.at(0.99)
	if !math.IsNaN(float64(p50)) && !math.IsNaN(float64(p99)) {
		v.Self = fmt.Sprintf("Half of the time the probe itself adds at most %s to a figure, in 1 of 100 cases %s or more.", seconds(p50), seconds(p99))
	}
	return v
}

// need orders states by how much they need somebody to look.
func need(state string) int {
	return slices.Index([]string{stateDown, stateDegraded, stateStarting, stateUp}, state)
}

// byNeed returns targets in the order of need, those of one state by their p99.
func byNeed(targets []Target) []Target {
	sorted := slices.Clone(targets)
	p99 := func(t *Target) float64 {
		if v := float64(t.latency("5m").at(0.99)); !math.IsNaN(v) {
			return v
		}
		return 0
	}
	slices.SortStableFunc(sorted, func(a, b Target) int {
		return cmp.Or(cmp.Compare(need(a.Condition.State), need(b.Condition.State)), cmp.Compare(p99(&b), p99(&a)))
	})
	return sorted
}

// verdict says in a sentence how all targets are.
func verdict(targets []Target) string {
	if len(targets) == 0 {
		return "There are no targets."
	}
	var of [4]uint64
	for i := range targets {
		if n := need(targets[i].Condition.State); n >= 0 {
			of[n]++
		}
	}
	if len(targets) == 1 {
		return fmt.Sprintf("The target is %s.", targets[0].Condition.State)
	}
	all := count(uint64(len(targets)))
	if of[3] == uint64(len(targets)) {
		return fmt.Sprintf("All %s targets are up.", all)
	}
	var parts []string
	for i, state := range []string{stateDown, stateDegraded, stateStarting, stateUp} {
		if of[i] > 0 {
			parts = append(parts, count(of[i])+" "+state)
		}
	}
	return fmt.Sprintf("Of %s targets: %s.", all, strings.Join(parts, ", "))
}

// symbol returns a shape for a state, beside its word.
func symbol(state string) string {
	switch state {
	case stateUp:
		return "●"
	case stateDegraded:
		return "▲"
	case stateDown:
		return "✕"
	}
	return "○"
}

func newTargetView(t *Target, now time.Time) targetView {
	five := t.latency("5m")
	v := targetView{
		Name: t.Name, URL: t.URL, Churn: t.Churn,
		State: t.Condition.State, Symbol: symbol(t.Condition.State), Reason: t.named(t.Condition.Reason),
		Since: instantOf(t.Condition.Since, now), Closed: t.Loop == loopClosed,
		Rate: perSecond(t.Rate), Kept: rateKept(t), Missed: missed(t),
		Minute: cells(t.latency("1m"), "1 min"), Five: cells(five, "5 min"), P99: seconds(five.at(0.99)),
		Recent: count(t.recent()), Failed: count(t.Failed), FailedRecently: t.recent() > 0,
		Open: fmt.Sprint(t.Connections.Open), Limit: fmt.Sprint(t.Connections.Limit), Opened: count(t.Connections.Opened),
		ClosedBy: closedBy(t.Connections.Closed),
		InFlight: count(t.InFlight), Backlog: count(t.Backlog), Scheduled: count(t.Scheduled), Completed: count(t.Completed),
		Late50: seconds(t.Lateness.at(0.5)), Late99: seconds(t.Lateness.at(0.99)),
		Service50: seconds(t.ServiceTime.at(0.5)), Service99: seconds(t.ServiceTime.at(0.99)),
		Answers: answerViews(t), Objective: newObjectiveView(t), Phases: phaseViews(t),
	}
	if v.Closed {
		v.Rate = "closed loop"
	}
	for _, f := range t.Failures {
		v.Failures = append(v.Failures, failureView{t.named(f.name()), meaningOf(t, &f), count(f.Recent), count(f.Total)})
	}
	v.Addresses, v.Backends = addressViews(t), backendViews(t)
	return v
}

func addressViews(t *Target) (all []addressView) {
	for _, a := range t.Addresses {
		all = append(all, addressView{
			Name: a.Address, Requests: count(a.Requests), Failed: count(a.Failed), Failing: a.Failed > 0,
			P50: seconds(a.Latency.at(0.5)), P99: seconds(a.Latency.at(0.99)),
		})
	}
	return all
}

func backendViews(t *Target) (all []backendView) {
	var answers uint64
	for _, b := range t.Backends {
		answers += b.Answers
	}
	for _, b := range t.Backends {
		all = append(all, backendView{Name: b.Backend, Answers: count(b.Answers), Share: percent(b.Answers, answers)})
	}
	return all
}

// rateKept is a dash where a minute, which it is taken of, need not hold a request.
func rateKept(t *Target) string {
	if rate := float64(t.Rate); rate > 0 && rate*60 < 1 {
		return dash
	}
	return perSecond(t.RateKept)
}

func cells(q Quantiles, window string) []cell {
	return []cell{
		{"p50, " + window, seconds(q.at(0.5))}, {"p99, " + window, seconds(q.at(0.99))},
		{"p99.9, " + window, seconds(q.at(0.999))}, {"max, " + window, seconds(q.at(1))},
	}
}

// closedBy lists connections closed, the most frequent reason first.
func closedBy(closed map[string]uint64) string {
	if len(closed) == 0 {
		return "none"
	}
	reasons := slices.SortedFunc(maps.Keys(closed), func(a, b string) int {
		return cmp.Or(cmp.Compare(closed[b], closed[a]), strings.Compare(a, b))
	})
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%s %s", count(closed[r]), r)
	}
	return strings.Join(reasons, ", ")
}

// phaseViews marks the worst phase, where one stands out.
func phaseViews(t *Target) (all []phaseView) {
	settled, _ := t.phase(phaseSettled)
	worst, share, p99 := -1, 0.0, Number(0)
	for i, p := range t.Phases {
		v := p.Latency.at(0.99)
		bad := p.Failed > 0 || p.Phase != phaseSettled && worse(v, settled.Latency.at(0.99))
		if bad && (worst < 0 || p.share() > share || p.share() == share && v > p99) {
			worst, share, p99 = i, p.share(), v
		}
		all = append(all, phaseView{
			Name: words(p.Phase), Completed: count(p.Completed), Failed: count(p.Failed), Share: percent(p.Failed, p.Completed),
			Reasons: topReasons(t, p.Failures), Failing: p.Failed > 0,
			P50: seconds(p.Latency.at(0.5)), P99: seconds(v), P999: seconds(p.Latency.at(0.999)),
		})
	}
	if worst >= 0 {
		all[worst].Worst = true
	}
	return all
}

// topReasons lists the three most frequent failures.
func topReasons(t *Target, failures []Failure) string {
	if len(failures) == 0 {
		return "none"
	}
	var parts []string
	for _, f := range failures[:min(len(failures), 3)] {
		parts = append(parts, fmt.Sprintf("%s %s", count(f.Total), t.named(f.name())))
	}
	if more := len(failures) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// shardText says which of several processes this is.
func shardText(s Shard) string {
	if s.Shards <= 1 {
		return ""
	}
	return fmt.Sprintf("as shard %d of %d, counted from 0: rates and connections are those of its part", s.Index, s.Shards)
}

package web

import (
	"math"
	"strconv"
	"time"
)

// Number is a number, which JSON shows as null where it is NaN: there is none.
type Number float64

// MarshalJSON writes the shortest number that reads back as n.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// Status is the process as the page and the API show it. All of it is of one
// instant, but for counts that went on while it was put together.
type Status struct {
	Version  string    `json:"version"`
	Revision string    `json:"revision"` // of the source; empty where the build does not know it
	Started  time.Time `json:"started"`
	Now      time.Time `json:"now"`
	Ready    bool      `json:"ready"`
	// Configuration says how old the settings are that all else is of.
	Configuration Configuration `json:"configuration"`
	Shard         Shard         `json:"shard"`
	Trust         Trust         `json:"trust"`
}

// Shard says which of several processes with the same configuration this is,
// that probe the targets together.
type Shard struct {
	Index  int `json:"index"`  // from 0
	Shards int `json:"shards"` // 1: it is alone
}

// Configuration says since when a configuration holds, and what has come of the
// last attempt to replace it.
type Configuration struct {
	Loaded time.Time `json:"loaded"`
	// Failed is the last attempt to load another one; nil: it succeeded.
	Failed *FailedReload `json:"failed"`
}

// FailedReload is an attempt to load a configuration that has changed nothing.
type FailedReload struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"` // a line for each problem, with file, line and field
}

// Trust says whether the figures of the process are to be trusted.
type Trust struct {
	Trustworthy bool     `json:"trustworthy"`
	Reasons     []string `json:"reasons"` // a sentence each, empty where it is trustworthy
	// SelfLatency is what the probe itself added to every figure since it started.
	SelfLatency Quantiles `json:"self_latency"`
}

// Target is one target as the page and the API show it. Counts are since the
// process started, unless a field says otherwise.
type Target struct {
	Name        string            `json:"name"`
	URL         string            `json:"url"` // without user info and query
	Labels      map[string]string `json:"labels"`
	Loop        string            `json:"loop"`            // open or closed; a closed one has no rate and no latency
	Rate        Number            `json:"rate"`            // requests per second; null in a closed loop
	RateKept    Number            `json:"rate_kept"`       // requests per second that were completed in the last minute; null before 10 s have passed
	Churn       string            `json:"churn,omitempty"` // the churn that is tied to it
	Condition   Condition         `json:"condition"`
	Scheduled   uint64            `json:"scheduled"` // = Completed + InFlight + Backlog
	Completed   uint64            `json:"completed"`
	InFlight    uint64            `json:"in_flight"`
	Backlog     uint64            `json:"backlog"`
	Failed      uint64            `json:"failed"`
	Failures    []Failure         `json:"failures"`  // those that happened, most frequent first; Total adds up to Failed
	Responses   map[string]uint64 `json:"responses"` // answers by status: "200", "502", "other"; those that came
	Objective   *Objective        `json:"objective"` // null where none is set
	Connections Connections       `json:"connections"`
	Latency     []Window          `json:"latency"`      // of 1m, 5m and 1h; empty in a closed loop
	ServiceTime Quantiles         `json:"service_time"` // since the process started
	Lateness    Quantiles         `json:"lateness"`     // since the process started; empty in a closed loop
	Addresses   []Address         `json:"addresses"`    // present ones; empty where figures by address are not asked for
	Backends    []Backend         `json:"backends"`     // that answered within the last hour, by name; empty where nothing tells them apart
	Phases      []ChurnPhase      `json:"churn_phases"` // settled, scaling_up, scaling_down; empty where no churn is tied to it
}

// Condition says how a target fares. It follows the requests that were
// completed lately: in the last 10 s where these are 10 or more, else in the
// last minute.
type Condition struct {
	// State is "starting" before the first request is completed, "down" while
	// at least half fail lately, or one waits for its outcome for 10 s and none
	// is completed, "degraded" while some failed in the last minute, else "up".
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Reason is the most frequent failure of the last minute as STAGE/REASON,
	// empty where there is none.
	Reason string `json:"reason,omitempty"`
}

// Objective is what a user of the door is promised.
type Objective struct {
	Latency Number `json:"latency"` // in seconds
	Ratio   Number `json:"ratio"`   // of all requests that are to succeed within it; null where none is set
	Within  uint64 `json:"within"`  // successes within it, of Completed
}

// Failure counts the failures of one stage and reason.
type Failure struct {
	Stage  string `json:"failure_stage"`
	Reason string `json:"reason"`
	Total  uint64 `json:"total"`
	Recent uint64 `json:"last_5m"`
	// Codes are the statuses of the answers that were not expected, most
	// frequent first; of a target's response/status only.
	Codes []string `json:"codes,omitempty"`
}

// Connections counts connections.
type Connections struct {
	Open   int               `json:"open"`
	Limit  int               `json:"limit"`
	Opened uint64            `json:"opened"`
	Closed map[string]uint64 `json:"closed"` // by reason, those that happened
}

// Window is the latency of the requests completed in a sliding window:
// successes, timeouts and expired ones.
type Window struct {
	Window    string    `json:"window"` // 1m, 5m or 1h
	Quantiles Quantiles `json:"quantiles"`
}

// Quantiles are durations in seconds by quantile, ascending.
type Quantiles []Quantile

// Quantile is one of them.
type Quantile struct {
	Q       float64 `json:"q"`       // 0 to 1
	Seconds Number  `json:"seconds"` // null where there were fewer than 1/(1-q)
}

// Address is what came of the requests to one address.
type Address struct {
	Address  string    `json:"address"` // "other": all that have no place of their own
	Requests uint64    `json:"requests"`
	Failed   uint64    `json:"failed"`
	Latency  Quantiles `json:"latency"` // of all of them; empty in a closed loop
}

// Backend counts the answers of one backend.
type Backend struct {
	Backend string `json:"backend"` // "other": all that have no place of their own
	Answers uint64 `json:"answers"`
}

// ChurnPhase is what was measured while the backend of a target was in one
// churn phase.
type ChurnPhase struct {
	Phase     string    `json:"phase"` // settled, scaling_up or scaling_down
	Completed uint64    `json:"completed"`
	Failed    uint64    `json:"failed"`
	Failures  []Failure `json:"failures"` // their last_5m is 0
	// Latency is that of successes, timeouts and expired requests, up to
	// 2.2 % too high.
	Latency Quantiles `json:"latency"`
}

// Churn is one churn as the page and the API show it.
type Churn struct {
	Name     string   `json:"name"`
	Workload string   `json:"workload"` // what it scales, for people
	Targets  []string `json:"targets"`  // that name it
	State    string   `json:"state"`    // running, dry_run, standby, paused or stopped
	// Cause is why it does not run, or which error it meets at present, from a
	// closed list; empty where all is well, and where there is no error: somebody
	// asked for a pause, it is not the time. Reason says it in words.
	Cause          string    `json:"cause,omitempty"`
	Reason         string    `json:"reason,omitempty"`
	Phase          string    `json:"phase"`
	Since          time.Time `json:"since"` // of the phase
	Baseline       int       `json:"baseline_replicas"`
	Desired        int       `json:"desired_replicas"`
	Ready          int       `json:"ready_replicas"`
	ReadyEndpoints int       `json:"ready_endpoints"`
	Floor          int       `json:"floor_replicas"`   // 0 before it has begun
	Ceiling        int       `json:"ceiling_replicas"` // 0 before it has begun
	Steps          uint64    `json:"steps"`            // begun, those that kill included
	Kills          uint64    `json:"kills"`            // steps that stopped backends without drain
	Cycles         uint64    `json:"cycles"`           // times that all steps were gone through
	Leader         bool      `json:"leader"`           // this instance may change the workload
	LeaderName     string    `json:"leader_name"`      // who may, of several instances; empty where that is not known, or there is no other
	RestorePending bool      `json:"restore_pending"`  // the baseline is to be put back, and is not yet, or is not known to be
	LastBeat       Time      `json:"last_beat"`        // when it last looked at the workload; null before it did
	Next           *NextStep `json:"next_step"`        // null where none is due
	PausedByHand   bool      `json:"paused_by_hand"`   // and only a request resumes it
	PausedUntil    Time      `json:"paused_until"`     // when the pause ends by itself at the earliest; null where it does not, or nobody knows
	// Errors is what kept it from its steps by cause, those that happened.
	Errors map[string]uint64 `json:"errors"`
	// History is the phases of the last hour, oldest first; the last one is the
	// present one.
	History []PhaseChange `json:"history"`
}

// NextStep is what a churn does next.
type NextStep struct {
	At       time.Time `json:"at"`       // a step that has not settled by then is waited for
	Replicas int       `json:"replicas"` // to scale to, where none are killed
	Kill     int       `json:"kill"`     // how many backends are stopped without drain; 0: none
}

// Time is an instant, which JSON shows as null where it is zero: there is none.
type Time struct{ time.Time }

// MarshalJSON writes the instant as RFC 3339 has it.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return t.Time.MarshalJSON()
}

// PhaseChange is the begin of a churn phase.
type PhaseChange struct {
	Phase string    `json:"phase"`
	From  time.Time `json:"from"`
}

// Moment is what was completed within one span of a target's timeline.
type Moment struct {
	From      time.Time `json:"from"`
	Completed uint64    `json:"completed"`
	Failed    uint64    `json:"failed"`
	P50       Number    `json:"p50"` // null in spans of a second
	P99       Number    `json:"p99"` // null in spans of a second
	Max       Number    `json:"max"` // of successes, timeouts and expired requests; null where there were none
}

// Timeline is the past of a target: spans of equal length, oldest first, the
// present one left out.
type Timeline struct {
	Target  string   `json:"target"`
	Span    Number   `json:"span"` // of each
	Moments []Moment `json:"moments"`
}

// Cell counts latencies up to a value.
type Cell struct {
	Highest time.Duration // that is counted here
	Count   uint64
}

// States of a target.
const (
	stateStarting = "starting"
	stateUp       = "up"
	stateDegraded = "degraded"
	stateDown     = "down"
)

const (
	loopClosed   = "closed"
	phaseSettled = "settled"
)

// latency returns the quantiles of a window, none where there is none.
func (t *Target) latency(window string) Quantiles {
	for _, w := range t.Latency {
		if w.Window == window {
			return w.Quantiles
		}
	}
	return nil
}

// phase returns what was measured in a churn phase.
func (t *Target) phase(name string) (ChurnPhase, bool) {
	for _, p := range t.Phases {
		if p.Phase == name {
			return p, true
		}
	}
	return ChurnPhase{}, false
}

// recent returns how many requests failed in the last 5 minutes.
func (t *Target) recent() (n uint64) {
	for _, f := range t.Failures {
		n += f.Recent
	}
	return n
}

// at returns the duration at q, NaN where there is none.
func (all Quantiles) at(q float64) Number {
	for _, one := range all {
		if one.Q == q {
			return one.Seconds
		}
	}
	return none()
}

// share returns which share of the requests failed.
func (p *ChurnPhase) share() float64 {
	if p.Completed == 0 {
		return 0
	}
	return float64(p.Failed) / float64(p.Completed)
}

// unexpected returns the statuses of answers that count as failed, the most
// frequent first.
func (t *Target) unexpected() []string {
	for i := range t.Failures {
		if f := &t.Failures[i]; f.name() == responseStatus {
			return f.Codes
		}
	}
	return nil
}

// name returns STAGE/REASON.
func (f Failure) name() string { return f.Stage + "/" + f.Reason }

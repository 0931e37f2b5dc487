package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// Result is the report of one target. Its JSON form is part of the interface:
// names and their order may be added to, never changed; every field is always
// present, maps and lists are never null, and no number is NaN or infinite. It
// holds no secret. All times are in seconds.
type Result struct {
	Target          string  `json:"target"`
	URL             string  `json:"url"`  // without user info, query and fragment
	Rate            float64 `json:"rate"` // 0 in a closed loop
	Loop            string  `json:"loop"` // open or closed, as in the label of steadyprobe_target_info
	Pacing          string  `json:"pacing"`
	Arrival         string  `json:"arrival"`
	Connections     int     `json:"connections"`
	DurationSeconds float64 `json:"duration_seconds"` // the measured window, as long as it was
	Interrupted     bool    `json:"interrupted"`      // the run was ended before all that was asked for

	// scheduled = completed + in_flight + backlog, after the run has ended.
	Scheduled uint64 `json:"scheduled"`
	Completed uint64 `json:"completed"` // whatever the outcome
	InFlight  uint64 `json:"in_flight"`
	Backlog   uint64 `json:"backlog"`
	// Unfinished is what had no outcome when the window ended, WithinWindow what
	// had one, and its bytes. The rest came later.
	Unfinished   Unfinished   `json:"unfinished"`
	WithinWindow WithinWindow `json:"within_window"`

	Failures   uint64            `json:"failures"`
	FailuresBy map[string]uint64 `json:"failures_by"` // "stage/reason" → count; their sum is Failures
	Responses  map[string]uint64 `json:"responses"`   // status code, "tcp", "tls" or "other" → count

	// AnsweredRate is how many requests per second were answered within the
	// window, completely and with whatever status: the Requests/sec of wrk.
	AnsweredRate float64 `json:"answered_rate"`
	// AchievedRate is how many requests per second were begun within the
	// window: scheduled, less those that waited in the backlog when the
	// window ended and those that the schedule dropped (expired, shutdown). It
	// equals Rate while the door takes what is due, however long it takes and
	// whatever comes of it. In a closed loop it is how many were completed per
	// second of the window.
	AchievedRate float64 `json:"achieved_rate"`

	Latency     Summary `json:"latency"`      // corrected: from the intended time; empty in a closed loop
	ServiceTime Summary `json:"service_time"` // uncorrected: from the begun time
	Lateness    Summary `json:"lateness"`     // the probe's own; empty in a closed loop
	SelfLatency Summary `json:"self_latency"` // the probe's own, of the whole process
	Clamped     uint64  `json:"clamped"`      // latencies above the recordable range

	TLS                  TLS               `json:"tls"`
	ConnectionsOpened    uint64            `json:"connections_opened"`
	ConnectionsClosedBy  map[string]uint64 `json:"connections_closed_by"`  // reason → count
	ConnectionFailuresBy map[string]uint64 `json:"connection_failures_by"` // "stage/reason" → openings that no request was bound to
	SentBytes            uint64            `json:"sent_bytes"`             // above TCP
	ReceivedBytes        uint64            `json:"received_bytes"`         // above TCP

	Saturated    []string `json:"saturated"`     // the probe's resources that ran short
	Trustworthy  bool     `json:"trustworthy"`   // nothing is in Distrust
	Distrust     []string `json:"distrust"`      // why the figures are not to be trusted
	ScheduleKept bool     `json:"schedule_kept"` // every tick was begun within the window; a closed loop has no schedule to break
	Remarks      []string `json:"remarks"`       // what was not kept, dropped or cut, and how much
	Warnings     []string `json:"warnings"`

	// Of the text form only; absent in a result that was read from JSON.
	rateText        string
	latencySpectrum []hdrhistogram.Bracket
	serviceSpectrum []hdrhistogram.Bracket
}

// Unfinished counts ticks without an outcome.
type Unfinished struct {
	InFlight uint64 `json:"in_flight"`
	Backlog  uint64 `json:"backlog"`
}

// WithinWindow counts what was completed before the window ended. The bytes of
// a request count when it completes.
type WithinWindow struct {
	Completed     uint64 `json:"completed"` // whatever the outcome
	Answered      uint64 `json:"answered"`  // with a complete answer of whatever status
	SentBytes     uint64 `json:"sent_bytes"`
	ReceivedBytes uint64 `json:"received_bytes"`
}

// Summary describes a distribution, in seconds, exact to the three digits of
// an HDR histogram. All of it is 0 when Count is 0: an empty distribution is
// told by its count, so that no field needs null. With fewer than 1/(1−q)
// values the quantile q is the largest of them.
type Summary struct {
	Count  uint64  `json:"count"`
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"`
	Max    float64 `json:"max"`
	P50    float64 `json:"p50"`
	P75    float64 `json:"p75"`
	P90    float64 `json:"p90"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	P999   float64 `json:"p99_9"`
	P9999  float64 `json:"p99_99"`
	P99999 float64 `json:"p99_999"`
}

// TLS counts completed TLS handshakes.
type TLS struct {
	Handshakes uint64          `json:"handshakes"` // resumed ones included
	Resumed    uint64          `json:"resumed"`
	Kinds      []HandshakeKind `json:"kinds"` // by version, cipher, key exchange; full before resumed
}

// HandshakeKind counts the handshakes of one kind, named as in the labels of
// steadyprobe_tls_handshakes_total, but for a key exchange of "none".
type HandshakeKind struct {
	Version     string `json:"tls_version"`
	Cipher      string `json:"cipher"`
	KeyExchange string `json:"key_exchange"` // none where there was no group
	Resumed     bool   `json:"resumed"`
	Count       uint64 `json:"count"`
}

// New returns the report of one target.
func New(in Input) Result {
	l := &in.Ledger
	if in.AtEnd.Scheduled == 0 {
		in.AtEnd = in.Ledger
	}
	if in.Closed {
		in.Rate, in.Latency, in.Lateness, in.Clamped = 0, nil, nil, 0
	}
	url := maskURL(in.URL)
	r := Result{
		Target:          maskURL(in.Target),
		URL:             url,
		Rate:            finite(in.Rate),
		Loop:            choose(in.Closed, loopClosed, "open"),
		Pacing:          choose(in.Economy, pacingEconomy, "precise"),
		Arrival:         choose(in.Poisson, arrivalPoisson, "uniform"),
		Connections:     in.Connections,
		DurationSeconds: in.Duration.Seconds(),
		Interrupted:     in.Interrupted,

		Scheduled:  l.Scheduled,
		Completed:  l.Done(),
		InFlight:   l.InFlight,
		Backlog:    l.Backlog,
		Unfinished: Unfinished{InFlight: in.AtEnd.InFlight, Backlog: in.AtEnd.Backlog},

		WithinWindow: withinWindow(&in.AtEnd),

		Failures:   l.Failed(),
		FailuresBy: failuresBy(l),
		Responses:  record.ByStatus(in.Responses),

		Latency:     summarize(in.Latency),
		ServiceTime: summarize(in.ServiceTime),
		Lateness:    summarize(in.Lateness),
		SelfLatency: summarize(in.SelfLatency),
		Clamped:     in.Clamped,

		TLS:                  handshakes(in.Handshakes),
		ConnectionsOpened:    l.Opened,
		ConnectionsClosedBy:  closedBy(l),
		ConnectionFailuresBy: openingFailuresBy(l),
		SentBytes:            l.Bytes.Sent,
		ReceivedBytes:        l.Bytes.Received,

		Saturated: sorted(in.Saturated),
		Warnings:  append([]string{}, in.Warnings...),

		rateText:        in.RateText,
		latencySpectrum: spectrum(in.Latency),
		serviceSpectrum: spectrum(in.ServiceTime),
	}
	if r.Target == "" {
		r.Target = url
	}
	r.AnsweredRate, r.AchievedRate = r.answered(), r.achieved(&in.AtEnd)
	r.judge(l)
	return r
}

func withinWindow(atEnd *probe.Ledger) WithinWindow {
	return WithinWindow{
		Completed:     atEnd.Done(),
		Answered:      answered(atEnd),
		SentBytes:     atEnd.Bytes.Sent,
		ReceivedBytes: atEnd.Bytes.Received,
	}
}

// Values of a result's traffic that change what is said of it.
const (
	loopClosed     = "closed"
	pacingEconomy  = "economy"
	arrivalPoisson = "poisson"
)

func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

func (r *Result) closed() bool { return r.Loop == loopClosed }

// answered is the rate of the requests that were answered within the window.
func (r *Result) answered() float64 {
	if r.DurationSeconds <= 0 {
		return 0
	}
	return float64(r.WithinWindow.Answered) / r.DurationSeconds
}

// achieved is the rate of the requests that were begun within the window, in a
// closed loop of those that were completed. The account is that of its end.
func (r *Result) achieved(l *probe.Ledger) float64 {
	waited := l.Backlog + dropped(l)
	switch {
	case r.DurationSeconds <= 0:
		return 0
	case r.closed():
		return float64(l.Done()) / r.DurationSeconds
	case waited >= l.Scheduled:
		return 0
	}
	return float64(l.Scheduled-waited) / r.DurationSeconds
}

// due is how many ticks were due within the window: at a constant rate those
// with an intended time of t0 + i/rate before its end. A window shorter than a
// period has one.
func (r *Result) due() float64 {
	due := float64(r.Scheduled)
	if r.Arrival != arrivalPoisson {
		// The product may be above the whole number that it stands for.
		due = max(due, math.Ceil(finite(r.Rate*r.DurationSeconds)*(1-1e-9)))
	}
	return due
}

// achievedShare is the part of the ticks that were due that was begun within
// the window; 1 where none was due.
func (r *Result) achievedShare() float64 {
	due := r.due()
	if due <= 0 {
		return 1
	}
	return min(1, finite(r.AchievedRate*r.DurationSeconds)/due)
}

func summarize(h *hdrhistogram.Histogram) Summary {
	if h == nil || h.TotalCount() == 0 {
		return Summary{}
	}
	q := h.ValueAtPercentilesSlice([]float64{50, 75, 90, 95, 99, 99.9, 99.99, 99.999})
	return Summary{
		Count:  uint64(h.TotalCount()),
		Mean:   seconds(h.Mean()),
		StdDev: seconds(h.StdDev()),
		Max:    seconds(float64(h.Max())),
		P50:    seconds(float64(q[0])),
		P75:    seconds(float64(q[1])),
		P90:    seconds(float64(q[2])),
		P95:    seconds(float64(q[3])),
		P99:    seconds(float64(q[4])),
		P999:   seconds(float64(q[5])),
		P9999:  seconds(float64(q[6])),
		P99999: seconds(float64(q[7])),
	}
}

// spectrumTicks is wrk2's number of lines for each halving of the distance to
// 100 percent.
const spectrumTicks = 5

func spectrum(h *hdrhistogram.Histogram) []hdrhistogram.Bracket {
	if h == nil || h.TotalCount() == 0 {
		return nil
	}
	return h.CumulativeDistributionWithTicks(spectrumTicks)
}

func sorted(names []string) []string {
	s := append([]string{}, names...)
	slices.Sort(s)
	return slices.Compact(s)
}

// seconds converts nanoseconds.
func seconds(ns float64) float64 { return finite(ns / 1e9) }

// finite keeps out of the results what JSON cannot hold.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// rate returns the configured rate as the user wrote it.
func (r *Result) rate() string {
	if r.rateText != "" {
		return r.rateText
	}
	return fmt.Sprintf("%.10g", r.Rate)
}

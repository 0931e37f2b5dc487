package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// Churn is one churn as its series show it. Read is needed; it fills the
// state, which is empty but for the room of its slices, at every scrape, and is
// called concurrently with itself.
type Churn struct {
	Name    string
	Created time.Time // when counting began under this name
	Read    func(*ChurnState)
}

// Indexes of the arrays of a [ChurnState] by direction.
const (
	Up   = 0
	Down = 1
)

// ChurnState is what a churn does and has done.
type ChurnState struct {
	Baseline       int                    // replicas before the first change; 0: it has not begun
	Desired        int                    // replicas that the workload is asked to have
	Ready          int                    // replicas
	Endpoints      int                    // ready ones
	Phase          probe.ChurnPhase       // no series of the phase is 1 for probe.NoChurn
	State          string                 // running, dry_run, standby, paused or stopped; no series of the state is 1 for another
	Steps          [2]uint64              // of the plan whose scale call was accepted, by direction
	Errors         [NumChurnErrors]uint64 // by ChurnError
	Convergence    [2]record.Distribution // of the steps that have settled, by direction, on record.Bounds.Convergence
	FirstResponse  record.Distribution    // scale call to the first answer of a new backend, on the same boundaries
	LastResponse   record.Distribution    // scale call to the last answer of a removed backend, on the same boundaries
	Failover       record.Distribution    // from the stop of backends without drain to the last failure, on the same boundaries
	Leader         bool                   // this process churns, and no other
	RestorePending bool                   // the baseline is to be restored, and is not yet, or is not known to be
	LastBeat       time.Time              // when it last looked; zero: never
}

// ChurnError is a reason for which a churn did not do its step.
type ChurnError int

// The reasons.
const (
	ChurnExternalChange ChurnError = iota // somebody else changed the count
	ChurnConflict                         // a change lost against another one
	ChurnForbidden                        // it may not
	ChurnUnreachable                      // nobody answered
	ChurnNotFound                         // there is no such workload
	ChurnStuck                            // the step did not converge in time
	ChurnAborted                          // the targets failed too much
	ChurnRefused                          // a rule of safety forbids the step
	ChurnOther                            // anything else

	// NumChurnErrors is the number of reasons.
	NumChurnErrors = int(iota)
)

// String returns the reason label.
func (e ChurnError) String() string {
	return [NumChurnErrors]string{
		"external_change", "conflict", "forbidden", "unreachable", "not_found", "stuck", "aborted", "refused", "error",
	}[e]
}

const numChurnStates = 5

func churnStates() [numChurnStates]string {
	return [numChurnStates]string{"running", "dry_run", "standby", "paused", "stopped"}
}

// exposedChurn is a Churn with what all its series share.
type exposedChurn struct {
	Churn
	pairs   []*dto.LabelPair
	created *timestamppb.Timestamp
}

// exposeChurns returns the churns sorted by name, after checking that every
// series will be valid.
func exposeChurns(churns []Churn) ([]exposedChurn, error) {
	exposed := make([]exposedChurn, 0, len(churns))
	for _, c := range churns {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("exposing churn %q: %w", c.Name, err)
		}
		exposed = append(exposed, exposedChurn{Churn: c, pairs: []*dto.LabelPair{pair(labelChurn, c.Name)}, created: timestamp(c.Created)})
	}
	slices.SortFunc(exposed, func(a, b exposedChurn) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(exposed); i++ {
		if name := exposed[i].Name; name == exposed[i-1].Name {
			return nil, fmt.Errorf("exposing churn %q: there are two of that name", name)
		}
	}
	return exposed, nil
}

func (c *Churn) check() error {
	switch {
	case c.Read == nil:
		return errors.New("it has no function that reads its state")
	case !utf8.ValidString(c.Name):
		return fmt.Errorf("%q is not valid UTF-8", c.Name)
	}
	return nil
}

// clear empties s and keeps the room of its slices.
func (s *ChurnState) clear() {
	room := *s
	*s = ChurnState{}
	of := room.distributions()
	for i, d := range s.distributions() {
		d.Classic, d.Native = of[i].Classic[:0], of[i].Native[:0]
	}
}

// distributions returns all of them, each time in the same order.
func (s *ChurnState) distributions() [5]*record.Distribution {
	return [...]*record.Distribution{&s.Convergence[Up], &s.Convergence[Down], &s.FirstResponse, &s.LastResponse, &s.Failover}
}

// writeChurn writes all series of one churn.
func (p *page) writeChurn(c *exposedChurn) {
	s := &p.churn
	s.clear()
	c.Read(s)
	w := writer{page: p, base: c.pairs, created: c.created}
	w.gauge(churnBaseline, float64(s.Baseline))
	w.gauge(churnDesired, float64(s.Desired))
	w.gauge(churnReady, float64(s.Ready))
	w.gauge(churnEndpoints, float64(s.Endpoints))
	labels := &p.layout.labels
	for i, phase := range labels.churnPhase {
		if c := probe.ChurnPhase(i); c != probe.NoChurn {
			w.gauge(churnPhase, truth(c == s.Phase), phase)
		}
	}
	for _, state := range labels.churnState {
		w.gauge(churnState, truth(*state.Value == s.State), state)
	}
	for i, reason := range labels.churnError {
		w.count(churnErrors, s.Errors[i], reason)
	}
	for i, direction := range labels.direction {
		w.count(churnSteps, s.Steps[i], direction)
		w.histogram(churnConvergence, &s.Convergence[i], direction)
	}
	w.histogram(churnFirstResponse, &s.FirstResponse)
	w.histogram(churnLastResponse, &s.LastResponse)
	w.histogram(churnFailover, &s.Failover)
	w.gauge(churnLeader, truth(s.Leader))
	w.gauge(churnRestorePending, truth(s.RestorePending))
	w.gauge(churnLastBeat, unixSeconds(s.LastBeat))
}

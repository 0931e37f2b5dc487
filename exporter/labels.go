package exporter

import (
	"net/netip"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// labels are the label pairs of all closed lists. They are shared by all
// scrapes and never change.
type labels struct {
	stage, reason  [probe.NumOutcomes]*dto.LabelPair
	churn          [probe.NumChurnPhases]*dto.LabelPair
	outcome        [2]*dto.LabelPair // record.Succeeded, record.Failed
	phase          [probe.NumPhases]*dto.LabelPair
	quantile       [record.NumQuantiles]*dto.LabelPair
	window         [record.NumWindows]*dto.LabelPair
	closeReason    [probe.NumCloseReasons]*dto.LabelPair
	protocol       [probe.NumProtocols]*dto.LabelPair
	noCode         *dto.LabelPair
	resumed        [2]*dto.LabelPair // record.Full, record.Resumed
	lookupNotFound *dto.LabelPair
	lookupTimeout  *dto.LabelPair
	lookupError    *dto.LabelPair
	added, removed *dto.LabelPair
	churnPhase     [probe.NumChurnPhases]*dto.LabelPair
	churnState     [numChurnStates]*dto.LabelPair
	churnError     [NumChurnErrors]*dto.LabelPair
	direction      [2]*dto.LabelPair // Up, Down
}

func newLabels() (l labels) {
	for i := range l.stage {
		l.stage[i] = pair("failure_stage", probe.Outcome(i).Stage())
		l.reason[i] = pair("reason", probe.Outcome(i).Reason())
	}
	for i := range l.churn {
		l.churn[i] = pair("churn_phase", probe.ChurnPhase(i).String())
	}
	l.outcome[record.Succeeded] = pair("outcome", "success")
	l.outcome[record.Failed] = pair("outcome", "failure")
	for i := range l.phase {
		l.phase[i] = pair("phase", probe.Phase(i).String())
	}
	for i, q := range record.Quantiles {
		l.quantile[i] = pair("q", strconv.FormatFloat(q, 'f', -1, 64))
	}
	for i, w := range record.Windows {
		l.window[i] = pair("window", model.Duration(w).String())
	}
	for i := range l.closeReason {
		l.closeReason[i] = pair("reason", probe.CloseReason(i).String())
	}
	for i := range l.protocol {
		l.protocol[i] = pair("protocol", probe.Protocol(i).String())
	}
	l.noCode = pair("code", "")
	l.resumed[record.Full] = pair("resumed", "false")
	l.resumed[record.Resumed] = pair("resumed", "true")
	l.lookupNotFound = pair("reason", "not_found")
	l.lookupTimeout = pair("reason", "timeout")
	l.lookupError = pair("reason", "error")
	l.added = pair("direction", "added")
	l.removed = pair("direction", "removed")
	for i := range l.churnPhase {
		l.churnPhase[i] = pair("phase", probe.ChurnPhase(i).String())
	}
	for i, state := range churnStates() {
		l.churnState[i] = pair("state", state)
	}
	for i := range l.churnError {
		l.churnError[i] = pair("reason", ChurnError(i).String())
	}
	l.direction[Up] = pair("direction", "up")
	l.direction[Down] = pair("direction", "down")
	return l
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// timestamp returns t for a created timestamp, nil where it is not known.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// codeLabel returns the pair of a status, 0 standing for all unknown ones.
func codeLabel(code uint16) *dto.LabelPair {
	if code == 0 {
		return pair("code", "other")
	}
	return pair("code", strconv.Itoa(int(code)))
}

// handshakeLabels returns the pairs of one kind of handshake, sorted by name.
func handshakeLabels(h record.HandshakeCount) []*dto.LabelPair {
	return []*dto.LabelPair{
		pair("cipher", h.CipherName()),
		pair("key_exchange", h.KeyExchange()),
		pair("resumed", strconv.FormatBool(h.Resumed)),
		pair("tls_version", h.TLSVersion()),
	}
}

func resourceLabel(name string) *dto.LabelPair { return pair("resource", name) }

// addressLabel returns the pair of an address, the zero one standing for all
// that have no place.
func addressLabel(a netip.Addr) *dto.LabelPair {
	if !a.IsValid() {
		return pair("address", "other")
	}
	return pair("address", a.String())
}

func backendLabel(name string) *dto.LabelPair { return pair("backend", name) }

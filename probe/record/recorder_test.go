package record

import (
	"crypto/tls"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

var _ probe.Recorder = (*Recorder)(nil)

const ms = probe.Instant(time.Millisecond)

// checkHolds checks that d holds the durations and nothing else.
func checkHolds(t *testing.T, what string, d *Distribution, want ...time.Duration) {
	t.Helper()
	h := NewHistogram(DefaultBounds().Latency)
	for _, v := range want {
		h.Observe(v)
	}
	var w Distribution
	h.Snapshot(&w)
	if d.Count != w.Count || d.Sum != w.Sum || d.Zero != w.Zero || !slices.Equal(d.Native, w.Native) {
		t.Errorf("%s: %d, sum %v, native %v, want %v", what, d.Count, d.Sum, d.Native, want)
	}
	checkConsistent(t, d)
}

// Instants of the samples below, from second 1: intended at 0 ms, dealt with at
// 1 ms, begun at 1 or 3 ms, sent at 8 ms, first byte at 10 ms, end at 14 ms.
const start = second

func okSample() probe.Sample {
	return probe.Sample{
		Tick: probe.Tick{Intended: start}, Begun: start + ms, Sent: start + ms, FirstByte: start + 10*ms, End: start + 14*ms,
		Protocol: probe.HTTP11, Code: 200,
	}
}

func openingSample() probe.Sample {
	s := okSample()
	s.Taken, s.Begun, s.Sent = start+ms, start+3*ms, start+8*ms
	s.Churn = probe.ScalingUp
	s.Resolve, s.Connect, s.TLS = time.Millisecond, 0, 4*time.Millisecond
	s.Did = probe.PhaseSet(0).With(probe.PhaseResolve).With(probe.PhaseConnect).With(probe.PhaseTLS)
	s.Handshake = probe.Handshake{
		Version: tls.VersionTLS13, Cipher: tls.TLS_AES_128_GCM_SHA256, Group: uint16(tls.X25519),
		Verified: true, NotBefore: 100, NotAfter: 200,
	}
	return s
}

func TestRecordSuccess(t *testing.T) {
	r := New(Options{Clock: probe.NewClock()})
	s := okSample()
	r.Record(&s)
	var got Snapshot
	r.snapshot(s.End, &got)
	checkHolds(t, "latency", &got.Latency[Succeeded][probe.NoChurn], 14*time.Millisecond)
	checkHolds(t, "service time", &got.ServiceTime[Succeeded], 13*time.Millisecond)
	checkHolds(t, "processing", &got.Phases[probe.PhaseProcessing], 9*time.Millisecond)
	checkHolds(t, "transfer", &got.Phases[probe.PhaseTransfer], 4*time.Millisecond)
	checkHolds(t, "lateness", &got.Lateness, time.Millisecond)
	for _, p := range []probe.Phase{probe.PhaseWait, probe.PhaseResolve, probe.PhaseConnect, probe.PhaseTLS} {
		checkHolds(t, p.String(), &got.Phases[p])
	}
	checkHolds(t, "handshake", &got.HandshakeTime[Full])
	if want := []ResponseCount{{200, probe.HTTP11, 1}}; !slices.Equal(got.Responses, want) {
		t.Errorf("responses %v, want %v", got.Responses, want)
	}
	if len(got.Handshakes) != 0 || got.Certificate.Seen || got.Clamped != 0 {
		t.Errorf("handshakes %v, certificate %v, clamped %d", got.Handshakes, got.Certificate, got.Clamped)
	}
	for i := range got.Windows {
		// 14 ms are 1,708.9 × 2^13 ns, in the cell that ends at 1,709 × 2^13 - 1.
		if max := got.Windows[i][NumQuantiles-1]; max != 0.014000127 {
			t.Errorf("%v: maximum %v", Windows[i], max)
		}
	}
	if len(got.Lateness.Classic) != 10 || len(got.ServiceTime[Failed].Classic) != 17 {
		t.Errorf("boundaries of lateness %v", got.Lateness.Classic)
	}
}

func TestRecordTickThatOpened(t *testing.T) {
	r := New(Options{})
	s := openingSample()
	r.Record(&s)
	var got Snapshot
	r.snapshot(s.End, &got)
	checkHolds(t, "latency", &got.Latency[Succeeded][probe.ScalingUp], 14*time.Millisecond)
	checkHolds(t, "latency without churn", &got.Latency[Succeeded][probe.NoChurn])
	checkHolds(t, "service time", &got.ServiceTime[Succeeded], 11*time.Millisecond)
	checkHolds(t, "wait", &got.Phases[probe.PhaseWait], 2*time.Millisecond)
	checkHolds(t, "resolve", &got.Phases[probe.PhaseResolve], time.Millisecond)
	checkHolds(t, "connect", &got.Phases[probe.PhaseConnect], 0)
	checkHolds(t, "tls", &got.Phases[probe.PhaseTLS], 4*time.Millisecond)
	// From begun at 3 ms, less 5 ms of opening, to 10 ms.
	checkHolds(t, "processing", &got.Phases[probe.PhaseProcessing], 2*time.Millisecond)
	checkHolds(t, "handshake", &got.HandshakeTime[Full], 4*time.Millisecond)
	want := HandshakeCount{Version: tls.VersionTLS13, Cipher: tls.TLS_AES_128_GCM_SHA256, Group: uint16(tls.X25519), Count: 1}
	if !slices.Equal(got.Handshakes, []HandshakeCount{want}) {
		t.Errorf("handshakes %v, want %v", got.Handshakes, want)
	}
	if want := (Certificate{Seen: true, Verified: true, NotBefore: 100, NotAfter: 200}); got.Certificate != want {
		t.Errorf("certificate %v, want %v", got.Certificate, want)
	}
}

// Of a closed loop everything is kept but what counts from the intended time.
func TestRecordClosedLoop(t *testing.T) {
	r, open := New(Options{}), New(Options{})
	for _, s := range []probe.Sample{okSample(), openingSample()} {
		s.End += 2 * 3600 * second // above the recordable range
		open.Record(&s)
		s.Closed = true
		r.Record(&s)
	}
	opening := openingSample()
	r.RecordOpening(&opening)
	open.RecordOpening(&opening)
	var got, want Snapshot
	r.snapshot(start+4*3600*second, &got)
	open.snapshot(start+4*3600*second, &want)
	for i := range got.Latency {
		for j := range got.Latency[i] {
			checkHolds(t, "latency", &got.Latency[i][j])
		}
	}
	checkHolds(t, "lateness", &got.Lateness)
	checkHolds(t, "wait", &got.Phases[probe.PhaseWait])
	if got.Clamped != 0 || want.Clamped != 2 {
		t.Errorf("clamped %d, %d in an open loop", got.Clamped, want.Clamped)
	}
	for i := range got.Windows {
		for j, q := range got.Windows[i] {
			if !math.IsNaN(q) {
				t.Errorf("quantile %v of %v is %v", Quantiles[j], Windows[i], q)
			}
		}
	}
	// 2 h and 13 ms, and 2 h and 11 ms.
	checkHolds(t, "service time", &got.ServiceTime[Succeeded], 2*time.Hour+13*time.Millisecond, 2*time.Hour+11*time.Millisecond)
	for _, p := range []probe.Phase{probe.PhaseResolve, probe.PhaseConnect, probe.PhaseTLS, probe.PhaseProcessing, probe.PhaseTransfer} {
		if n := got.Phases[p].Count; n == 0 || n != want.Phases[p].Count {
			t.Errorf("%v: %d, %d in an open loop", p, n, want.Phases[p].Count)
		}
	}
	if !slices.Equal(got.Handshakes, want.Handshakes) || !slices.Equal(got.Responses, want.Responses) || got.Certificate != want.Certificate ||
		got.HandshakeTime[Full].Count != 2 || len(got.Responses) == 0 {
		t.Errorf("handshakes %v, responses %v, certificate %v", got.Handshakes, got.Responses, got.Certificate)
	}
}

func TestRecordFailures(t *testing.T) {
	refused := probe.Sample{
		Tick: probe.Tick{Intended: start}, Begun: start + ms, End: start + 2*ms, Outcome: probe.ConnectRefused,
		Connect: time.Millisecond, Did: probe.PhaseSet(0).With(probe.PhaseConnect),
	}
	expired := probe.Sample{
		Tick: probe.Tick{Intended: start, Taken: start + ms}, End: start + 31*second, Outcome: probe.ScheduleExpired,
	}
	timeout := okSample()
	timeout.Outcome, timeout.FirstByte, timeout.End, timeout.Code = probe.ReadTimeout, 0, start+5*second+ms, 0
	late := timeout
	late.End = start + 2*3600*second
	for _, tc := range []struct {
		name     string
		sample   probe.Sample
		latency  time.Duration
		service  []time.Duration
		phases   map[probe.Phase]time.Duration
		inWindow bool
		clamped  uint64
	}{
		{"refused", refused, 2 * time.Millisecond, []time.Duration{time.Millisecond},
			map[probe.Phase]time.Duration{probe.PhaseConnect: time.Millisecond}, false, 0},
		{"expired", expired, 31 * time.Second, nil,
			map[probe.Phase]time.Duration{probe.PhaseWait: 31*time.Second - time.Millisecond}, true, 0},
		{"timeout", timeout, 5*time.Second + time.Millisecond, []time.Duration{5 * time.Second},
			map[probe.Phase]time.Duration{probe.PhaseProcessing: 5 * time.Second}, true, 0},
		{"longer than an hour", late, 2 * time.Hour, []time.Duration{2*time.Hour - time.Millisecond},
			map[probe.Phase]time.Duration{probe.PhaseProcessing: 2*time.Hour - time.Millisecond}, true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := New(Options{})
			r.Record(&tc.sample)
			var got Snapshot
			r.snapshot(tc.sample.End, &got)
			checkHolds(t, "latency", &got.Latency[Failed][probe.NoChurn], tc.latency)
			checkHolds(t, "service time", &got.ServiceTime[Failed], tc.service...)
			checkHolds(t, "latency of successes", &got.Latency[Succeeded][probe.NoChurn])
			checkHolds(t, "lateness", &got.Lateness, time.Millisecond)
			for p := range got.Phases {
				var want []time.Duration
				if d, there := tc.phases[probe.Phase(p)]; there {
					want = append(want, d)
				}
				checkHolds(t, probe.Phase(p).String(), &got.Phases[p], want...)
			}
			if max := got.Windows[0][NumQuantiles-1]; math.IsNaN(max) == tc.inWindow {
				t.Errorf("maximum %v, want it in the window: %v", max, tc.inWindow)
			} else if tc.inWindow && max < min(tc.latency, time.Hour).Seconds() {
				t.Errorf("maximum %v", max)
			}
			if got.Clamped != tc.clamped || len(got.Responses) != 0 {
				t.Errorf("clamped %d, responses %v", got.Clamped, got.Responses)
			}
		})
	}
}

func TestRecordOpening(t *testing.T) {
	r := New(Options{})
	s := openingSample()
	s.Handshake.Resumed = true
	r.RecordOpening(&s)
	var got Snapshot
	r.snapshot(s.End, &got)
	checkHolds(t, "tls", &got.Phases[probe.PhaseTLS], 4*time.Millisecond)
	checkHolds(t, "resumed handshake", &got.HandshakeTime[Resumed], 4*time.Millisecond)
	checkHolds(t, "full handshake", &got.HandshakeTime[Full])
	checkHolds(t, "lateness", &got.Lateness)
	checkHolds(t, "wait", &got.Phases[probe.PhaseWait])
	checkHolds(t, "processing", &got.Phases[probe.PhaseProcessing])
	checkHolds(t, "latency", &got.Latency[Succeeded][probe.ScalingUp])
	if len(got.Handshakes) != 1 || len(got.Responses) != 0 || !math.IsNaN(got.Windows[0][NumQuantiles-1]) {
		t.Errorf("handshakes %v, responses %v", got.Handshakes, got.Responses)
	}
}

func TestSnapshotIsUsedAgain(t *testing.T) {
	busy, idle := New(Options{}), New(Options{})
	s := openingSample()
	busy.Record(&s)
	var got Snapshot
	busy.snapshot(s.End, &got)
	if n := testing.AllocsPerRun(100, func() { busy.snapshot(s.End, &got) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	idle.snapshot(s.End, &got)
	checkHolds(t, "latency", &got.Latency[Succeeded][probe.ScalingUp])
	checkHolds(t, "handshake", &got.HandshakeTime[Full])
	if len(got.Handshakes) != 0 || len(got.Responses) != 0 || got.Certificate.Seen || !math.IsNaN(got.Windows[2][NumQuantiles-1]) {
		t.Errorf("left over: %+v", got)
	}
}

// TestRecordConcurrently has every sample in exactly one place, and scrapes in
// between that are consistent in themselves.
func TestRecordConcurrently(t *testing.T) {
	r := New(Options{Clock: probe.NewClock()})
	const workers, each = 4, 5000
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				s := openingSample()
				s.End += probe.Instant(i) * 10 * ms
				s.Churn = probe.ChurnPhase(i % probe.NumChurnPhases)
				if i%2 == 1 {
					s.Outcome = probe.ReadTimeout
				}
				r.Record(&s)
				if w == 0 {
					r.RecordOpening(&s)
				}
			}
		})
	}
	count := func() (n uint64) {
		var got Snapshot
		r.Snapshot(&got)
		for i := range got.Latency {
			for j := range got.Latency[i] {
				checkConsistent(t, &got.Latency[i][j])
				n += got.Latency[i][j].Count
			}
		}
		if got.Lateness.Count != n || got.Responses != nil && got.Responses[0].Count != n {
			t.Errorf("%d latencies, %d latenesses, responses %v", n, got.Lateness.Count, got.Responses)
		}
		if tls := got.Phases[probe.PhaseTLS].Count; got.HandshakeTime[Full].Count != tls || tls < n {
			t.Errorf("%d handshakes, %d tls phases", got.HandshakeTime[Full].Count, tls)
		}
		return n
	}
	for range 20 {
		count()
	}
	wg.Wait()
	if n := count(); n != workers*each {
		t.Errorf("%d of %d", n, workers*each)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := New(Options{})
		s := openingSample()
		s.Closed = closed
		r.Record(&s)
		if n := testing.AllocsPerRun(1000, func() { r.Record(&s); r.RecordOpening(&s) }); n != 0 {
			t.Errorf("closed loop %v: %v allocations", closed, n)
		}
	}
}

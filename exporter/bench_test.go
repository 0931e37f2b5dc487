package exporter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// busyTarget has HTTPS figures as a day of probing leaves them: every
// histogram with two to three octaves, 100 and more native buckets of the
// finest schema.
func busyTarget(i int) Target {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	spread := func(b *record.Boundaries, around time.Duration) record.Distribution {
		h := record.NewHistogram(b)
		for range 2_000 {
			h.Observe(time.Duration(math.Exp(random.NormFloat64()/2) * float64(around)))
		}
		var d record.Distribution
		h.Snapshot(&d)
		return d
	}
	b := record.DefaultBounds()
	f := &fakeTarget{snapshot: emptySnapshot()}
	l, s := &f.ledger, &f.snapshot
	l.Scheduled = 2_000
	l.Completed[probe.NoChurn][probe.Success] = 2_000
	s.Latency[record.Succeeded][probe.NoChurn] = spread(b.Latency, 2*time.Millisecond)
	s.ServiceTime[record.Succeeded] = spread(b.ServiceTime, 2*time.Millisecond)
	for p := range s.Phases {
		if probe.Phase(p) != probe.PhaseWait {
			s.Phases[p] = spread(b.Phase, time.Millisecond)
		}
	}
	s.Lateness = spread(b.Lateness, 50*time.Microsecond)
	s.HandshakeTime[record.Resumed] = spread(b.Handshake, time.Millisecond)
	s.Handshakes = []record.HandshakeCount{{Version: 0x0304, Cipher: 0x1301, Group: 29, Resumed: true, Count: 2_000}}
	s.Responses = []record.ResponseCount{{Code: 200, Protocol: probe.HTTP11, Count: 2_000}}
	s.Certificate = record.Certificate{Seen: true, Verified: true}
	for w := range s.Windows {
		for q := range s.Windows[w] {
			s.Windows[w][q] = 0.001 * random.Float64()
		}
	}
	return f.fill(Target{
		Name: fmt.Sprintf("door-%04d", i), URL: "https://shop.example.com/healthz", Rate: 1,
		Labels: map[string]string{"front": "ingress", "site": "fra1"},
		TLS:    true, Named: true, Objective: time.Second, ObjectiveRatio: 0.99,
	})
}

// BenchmarkScrape measures one scrape, from reading the targets to the last
// byte of the exposition, without compression.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		targets := make([]Target, n)
		for i := range targets {
			targets[i] = busyTarget(i)
		}
		for _, kind := range []struct {
			name            string
			classic, native bool
			format          expfmt.FormatType
		}{
			{"gather", true, true, expfmt.TypeUnknown},
			{"text", true, true, expfmt.TypeTextPlain},
			{"openmetrics", true, true, expfmt.TypeOpenMetrics},
			{"protobuf", true, true, expfmt.TypeProtoDelim},
			{"protobuf-native", false, true, expfmt.TypeProtoDelim},
		} {
			b.Run(fmt.Sprintf("targets=%d/%s", n, kind.name), func(b *testing.B) {
				o := testOptions()
				o.Histograms.Classic, o.Histograms.Native = kind.classic, kind.native
				e := newExporter(b, o, targets...)
				b.ReportAllocs()
				var size int64
				for b.Loop() {
					if kind.format == expfmt.TypeUnknown {
						_, done, err := e.Gather()
						if err != nil {
							b.Fatal(err)
						}
						done()
						continue
					}
					size = scrape(b, e, expfmt.NewFormat(kind.format))
				}
				b.ReportMetric(float64(size), "bytes/scrape")
			})
		}
	}
}

// BenchmarkPageMemory reports what the memory of one scrape takes.
func BenchmarkPageMemory(b *testing.B) {
	const n = 1000
	targets := make([]Target, n)
	for i := range targets {
		targets[i] = busyTarget(i)
	}
	e := newExporter(b, testOptions(), targets...)
	set := e.targets.Load()
	for b.Loop() {
		heap := func() float64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return float64(m.HeapAlloc)
		}
		before := heap()
		p := newPage(e.layout)
		for i := range set.targets {
			p.writeTarget(&set.targets[i])
		}
		b.ReportMetric((heap()-before)/n, "bytes/target")
		runtime.KeepAlive(p)
	}
}

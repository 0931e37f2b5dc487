package kubebed

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

// How the workloads of these tests are churned: fast, from a baseline that none
// of the steps asks for.
const (
	baseline  = 3
	quickHold = 2 * time.Second
	lease     = 5 * time.Second // the shortest that is allowed
	quickRate = 50
)

// quick returns how a shop is churned in little time.
func quick() bed.Churning {
	return bed.Churning{Rate: quickRate, Connections: 5, Hold: quickHold, Settle: 500 * time.Millisecond, Lease: lease}
}

// history notes every replica count that a workload is asked to have.
type history struct {
	mutex  sync.Mutex
	counts []int
}

// newHistory begins a history with the count that there is. It ends with the
// test.
func newHistory(t *testing.T, b *bed.Bed, namespace string) *history {
	t.Helper()
	h := &history{counts: []int{b.Replicas(namespace, "web")}}
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		for ctx.Err() == nil {
			h.watch(ctx, b, namespace)
			time.Sleep(20 * time.Millisecond) // the API server may be away, and then nothing changes
		}
	})
	t.Cleanup(func() {
		cancel()
		over.Wait()
		if t.Failed() {
			t.Logf("replicas over time: %v", h.since(0))
		}
	})
	return h
}

// watch notes every count until the watch, or ctx, ends. The first one is that
// which there is.
func (h *history) watch(ctx context.Context, b *bed.Bed, namespace string) {
	w, err := b.Client.AppsV1().Deployments(namespace).Watch(ctx, meta.ListOptions{FieldSelector: "metadata.name=web"})
	if err != nil {
		return
	}
	defer w.Stop()
	for {
		select {
		case e, more := <-w.ResultChan():
			if !more {
				return
			}
			if d, ok := e.Object.(*apps.Deployment); ok {
				h.note(int(*d.Spec.Replicas))
			}
		case <-ctx.Done():
			return
		}
	}
}

func (h *history) note(n int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.counts[len(h.counts)-1] != n {
		h.counts = append(h.counts, n)
	}
}

// mark returns a mark of now for since.
func (h *history) mark() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return len(h.counts) - 1
}

// since returns the counts since a mark, the one at the mark first.
func (h *history) since(mark int) []int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.counts[mark:])
}

// ended returns a mark of now when nobody asks for anything any more: what was
// asked for last may not be noted yet.
func (s *stand) ended() int {
	s.t.Helper()
	testbed.WaitFor(s.t, "the last change to be noted", limit, func() bool {
		counts := s.since(s.mark())
		return counts[0] == s.b.Replicas(s.Namespace, "web")
	})
	return s.mark()
}

// restored waits until the baseline was there after the mark, and checks that
// nothing else was asked for before.
func (h *history) restored(t *testing.T, mark int) {
	t.Helper()
	testbed.WaitFor(t, "the baseline to be restored", limit, func() bool { return slices.Contains(h.since(mark), baseline) })
	if counts := h.since(mark); counts[0] != baseline && counts[1] != baseline {
		t.Errorf("replicas went %v, want the baseline %d first", counts, baseline)
	}
}

// stand is a shop with one door, a front before the API server for its probes,
// and the history of its workload.
type stand struct {
	*bed.Shop
	t     *testing.T
	b     *bed.Bed
	front *bed.Front
	*history
}

func newStand(t *testing.T, b *bed.Bed) *stand {
	t.Helper()
	shop := b.Shop(baseline, bed.HAProxyRuntime)
	return &stand{Shop: shop, t: t, b: b, front: b.Front(), history: newHistory(t, b, shop.Namespace)}
}

// start starts a probe that goes through the front.
func (s *stand) start(c bed.Churning, flags ...string) *testbed.ProbeServer {
	s.t.Helper()
	c.Kubeconfig = s.front.Kubeconfig(s.Kubeconfig)
	return s.b.Probe(s.Configuration(c), flags...)
}

// scrape returns what a probe says.
func (s *stand) scrape(p *testbed.ProbeServer) testbed.Scrape {
	s.t.Helper()
	now, err := p.Scrape()
	if err != nil {
		s.t.Fatal(err)
	}
	return now
}

// waitFor waits until a probe says something.
func (s *stand) waitFor(p *testbed.ProbeServer, what string, said func(testbed.Scrape) bool) {
	s.t.Helper()
	for began := time.Now(); !said(s.scrape(p)); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > limit {
			s.t.Fatalf("waiting for %s: not within %v", what, limit)
		}
	}
}

// errors returns how many errors of a reason a probe's churn has met, empty: of
// all.
func (s *stand) errors(now testbed.Scrape, reason string) float64 {
	const name = "steadyprobe_churn_errors_total"
	if reason == "" {
		return now.Sum(name)
	}
	return now.Sum(name, "reason", reason)
}

// back checks that the workload has what it had before.
func (s *stand) back() {
	s.t.Helper()
	if got := s.b.Replicas(s.Namespace, "web"); got != baseline {
		s.t.Errorf("replicas after the end = %d, want the baseline %d", got, baseline)
	}
}

// scaling returns which requests of probes change the workload.
func scaling(r *http.Request) bool {
	return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/scale")
}

// in returns a condition: the churn is in this state.
func in(state string) func(testbed.Scrape) bool {
	return func(s testbed.Scrape) bool { return s.Sum("steadyprobe_churn_state", "state", state) == 1 }
}

// phase returns the churn phase that a probe says.
func phase(s testbed.Scrape) string {
	for _, m := range s["steadyprobe_churn_phase"].GetMetric() {
		if m.GetGauge().GetValue() == 1 {
			return testbed.Label(m, "phase")
		}
	}
	return ""
}

// desired returns the count that a probe has last seen.
func desired(s testbed.Scrape) int { return int(s.Sum("steadyprobe_churn_desired_replicas")) }

// leads reports whether a probe says that it leads.
func leads(s testbed.Scrape) bool { return s.Sum("steadyprobe_churn_leader") == 1 }

// goodProbing checks that a probe has probed as if nothing else were: its account
// adds up and no request failed.
func (s *stand) goodProbing(p *testbed.ProbeServer, before testbed.Scrape) testbed.Scrape {
	s.t.Helper()
	now := s.scrape(p)
	name := s.Doors[0].Kind.String()
	if err := now.CheckAccount(name, before); err != nil {
		s.t.Error(err)
	}
	if failures := now.Failures(name); len(failures) > 0 {
		s.t.Errorf("requests failed: %v, want none", failures)
	}
	return now
}

// kept checks that ticks were scheduled at their rate for a while.
func (s *stand) kept(p *testbed.ProbeServer, d time.Duration) {
	s.t.Helper()
	begun := time.Now()
	before := s.scrape(p)
	began := time.Now()
	time.Sleep(d)
	ended := time.Now()
	now := s.scrape(p)
	// Of a scrape it is only known when it was asked for, and when it was there.
	// A tick is counted when the probe deals with it: on a busy machine that may be late.
	const late = quickRate / 2
	got := s.ticks(now) - s.ticks(before)
	least, most := quickRate*ended.Sub(began).Seconds()-late, quickRate*time.Since(begun).Seconds()+late
	if got < least || got > most {
		s.t.Errorf("%v ticks in %v, want %v to %v", got, d, least, most)
	}
}

func (s *stand) ticks(of testbed.Scrape) float64 {
	return of.Sum("steadyprobe_requests_scheduled_total")
}

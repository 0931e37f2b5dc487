package kubebed

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/kube"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

// apart checks that nobody led while somebody else did.
func apart(t *testing.T, terms ...*term) {
	t.Helper()
	for i, a := range terms {
		for _, b := range terms[i+1:] {
			for _, x := range a.spans() {
				for _, y := range b.spans() {
					xEnds := x.to.IsZero() || x.to.After(y.from)
					yEnds := y.to.IsZero() || y.to.After(x.from)
					if xEnds && yEnds {
						t.Errorf("two lead at once: one from %v to %v, one from %v to %v", x.from, x.to, y.from, y.to)
					}
				}
			}
		}
	}
}

// kubeElection lets three stand, and each give up in turn.
func kubeElection(t *testing.T, r *rig) {
	terms := make([]*term, 3)
	for i := range terms {
		c := r.cluster(kube.ClusterOptions{Identity: fmt.Sprintf("probe-%d", i)})
		terms[i] = r.campaign(r.open(c, r.options()))
	}
	standing := append([]*term(nil), terms...)
	for len(standing) > 0 {
		leader := -1
		testbed.WaitFor(t, "one to be elected", limit, func() bool {
			for i, e := range standing {
				if e.leads() {
					leader = i
				}
			}
			return leader >= 0
		})
		identity := standing[leader].w.Identity()
		for _, e := range standing {
			testbed.WaitFor(t, "all to know who leads", limit, func() bool { return e.w.Leader() == identity })
		}
		began := time.Now()
		standing[leader].end()
		if holder := *r.lease().Spec.HolderIdentity; holder == identity {
			t.Errorf("%s still holds the lease after it has ended", identity)
		}
		standing = append(standing[:leader], standing[leader+1:]...)
		if len(standing) > 0 {
			testbed.WaitFor(t, "another one to be elected", limit, func() bool {
				for _, e := range standing {
					if e.leads() {
						return true
					}
				}
				return false
			})
			// The lease lasts 3 s, and they try every 0.4 s.
			if took := time.Since(began); took >= 3*time.Second {
				t.Errorf("hand-over took %v, as long as if it had vanished", took)
			}
		}
	}
	apart(t, terms...)

	// lead is waited for before the lease is given up.
	w := r.open(r.cluster(kube.ClusterOptions{Identity: "slow"}), r.options())
	ctx, cancel := context.WithCancel(t.Context())
	began, holder := make(chan struct{}), ""
	done := make(chan error)
	go func() {
		done <- w.Campaign(ctx, func(ctx context.Context) {
			close(began)
			<-ctx.Done()
			time.Sleep(4 * time.Second) // it restores for longer than the lease lasts
			holder = *r.lease().Spec.HolderIdentity
		})
	}()
	<-began
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if holder != "slow" {
		t.Errorf("while it restores the lease is of %q, want it kept", holder)
	}
	if got := *r.lease().Spec.HolderIdentity; got != "" {
		t.Errorf("afterwards the lease is of %q, want nobody's", got)
	}

	// Two of one process, as when a churn is changed, are two as well.
	c := r.cluster(kube.ClusterOptions{})
	ending := r.campaign(r.open(c, r.options()))
	r.elected(ending)
	begun := r.campaign(r.open(c, r.options()))
	time.Sleep(time.Second) // it tries every 0.4 s
	ending.end()
	r.elected(begun)
	begun.end()
	apart(t, ending, begun)

	// lead that ends by itself gives the lease up, and is called again.
	ctx, cancel = context.WithCancel(t.Context())
	calls := 0
	if err := w.Campaign(ctx, func(context.Context) {
		if calls++; calls == 2 {
			cancel()
		}
	}); err != nil || calls != 2 {
		t.Errorf("%v after %d calls, want 2", err, calls)
	}
}

// kubeLostLease cuts the leader off: it must stop before another one begins,
// write nothing more, and stand again when it can.
func kubeLostLease(t *testing.T, r *rig) {
	for _, tc := range []struct {
		name      string
		behaviour bed.Behaviour
	}{
		{"cut", bed.Behaviour{Cut: true}},
		{"hanging", bed.Behaviour{Hang: true}},
		{"refused", bed.Behaviour{Status: http.StatusForbidden}},
		{"answers lost", bed.Behaviour{LoseAnswer: true, Only: func(r *http.Request) bool { return r.Method != http.MethodGet }}},
	} {
		front := r.Front()
		first := r.open(r.cluster(kube.ClusterOptions{Identity: "first", Kubeconfig: front.Kubeconfig(r.kubeconfig)}), r.options())
		second := r.open(r.cluster(kube.ClusterOptions{Identity: "second"}), r.options())
		one := r.campaign(first)
		r.elected(one)
		r.await(first, all(2))
		two := r.campaign(second)
		r.await(second, all(2))
		front.Set(tc.behaviour)
		cut := time.Now()
		if tc.name == "answers lost" {
			// Its renewals are done although they fail, so that it cannot be sure to
			// lead, and gives the lease up. All that counts is that both never do.
			testbed.WaitFor(t, "the first one to have doubts", limit, func() bool { return !one.leads() })
			time.Sleep(3 * time.Second)
		} else {
			testbed.WaitFor(t, "the other one to be elected", limit, two.leads)
			t.Logf("%s: the other one is elected after %v", tc.name, time.Since(cut).Round(time.Millisecond))
			if one.leads() {
				t.Errorf("%s: the first one still leads", tc.name)
			}
			fails(t, tc.name+", scaling", r.scale(first, 4), churn.Conflict, "this instance does not hold the lease")
			fails(t, tc.name+", saving", r.save(first, churn.Note{Held: true, Set: 9}), churn.Conflict, "this instance does not hold the lease")
		}
		front.Set(bed.Behaviour{})
		if tc.name != "answers lost" {
			fails(t, tc.name+", scaling when it can again", r.scale(first, 4), churn.Conflict, "this instance does not hold the lease")
			two.end()
			r.elected(one) // it stands again
			r.await(first, all(2))
			if err := r.save(first, churn.Note{}); err != nil {
				t.Errorf("%s: saving after it was elected again: %v", tc.name, err)
			}
		}
		one.end()
		two.end()
		apart(t, one, two)
		if got := r.Replicas(r.shop, "web"); got != 2 {
			t.Fatalf("%s: %d replicas, want nobody to have scaled", tc.name, got)
		}
	}
}

// kubeNotebook proves that the note and the election, which share the Lease,
// leave each other alone.
func kubeNotebook(t *testing.T, r *rig) {
	w := r.open(r.cluster(kube.ClusterOptions{Identity: "first"}), r.options())
	if n, err := w.Load(t.Context()); err != nil || n != (churn.Note{}) {
		t.Errorf("without a Lease the note is %+v, %v, want none", n, err)
	}
	r.await(w, all(2))
	one := r.campaign(w)
	r.elected(one)
	want := churn.Note{Held: true, Baseline: 2, Set: 4, Before: 3, Original: "o", Deadline: time.Now().Add(time.Hour).UTC().Round(0), Paused: true}
	if err := r.save(w, want); err != nil {
		t.Fatal(err)
	}
	// Over several renewals, a foreign hand and another hundred notes.
	renewed := func() string { return r.lease().Spec.RenewTime.String() }
	for range 3 {
		before := renewed()
		testbed.WaitFor(t, "a renewal", limit, func() bool { return renewed() != before })
	}
	r.Kubectl("-n", r.own, "annotate", "lease", "steadyprobe-churn-shop", "note=by hand")
	before := renewed()
	testbed.WaitFor(t, "a renewal", limit, func() bool { return renewed() != before })
	for i := range 100 {
		n := want
		n.Set = i
		if err := r.save(w, n); err != nil {
			t.Fatalf("note %d: %v", i, err)
		}
	}
	r.Kubectl("-n", r.own, "annotate", "--overwrite", "lease", "steadyprobe-churn-shop", "note=by hand again")
	if err := r.save(w, want); err != nil { // the resource version is another one now
		t.Fatal(err)
	}
	if spans := one.spans(); len(spans) != 1 || !one.leads() {
		t.Errorf("it has led %d times, want once and on", len(spans))
	}
	l := r.lease()
	if l.Annotations["note"] != "by hand again" || l.Labels["steadyprobe.io/churn"] != "true" || l.Annotations["steadyprobe.io/churn-name"] != "shop" {
		t.Errorf("the Lease is %s", pretty(l.ObjectMeta))
	}
	if got, want := l.Annotations["steadyprobe.io/workload"], r.shop+"/apps/v1/deployments/Deployment/web"; got != want {
		t.Errorf("it tells of workload %q, want %q", got, want)
	}
	if *l.Spec.LeaseTransitions != 0 {
		t.Errorf("%d transitions, want none", *l.Spec.LeaseTransitions)
	}
	one.end()
	// The note outlives who wrote it, word for word.
	other := r.open(r.cluster(kube.ClusterOptions{Identity: "second"}), r.options())
	got, err := other.Load(t.Context())
	if err != nil || !got.Deadline.Equal(want.Deadline) {
		t.Errorf("deadline %v, %v, want %v", got.Deadline, err, want.Deadline)
	}
	got.Deadline = want.Deadline
	if got != want {
		t.Errorf("the note is %+v, want %+v", got, want)
	}
	r.elected(r.campaign(other))
	r.await(other, all(2))
	if err := r.save(other, churn.Note{Paused: true}); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Load(t.Context()); err != nil || n != (churn.Note{Paused: true}) {
		t.Errorf("after it was released the note is %+v, %v, want paused only", n, err)
	}
	// One that was broken by hand is not taken for none.
	r.Kubectl("-n", r.own, "annotate", "lease", "steadyprobe-churn-shop", "steadyprobe.io/baseline=two")
	_, err = w.Load(t.Context())
	fails(t, "a broken note", err, churn.Other, `annotation steadyprobe.io/baseline: strconv.ParseUint: parsing "two": invalid syntax`)
	// One whose Lease is deleted makes it anew, with its note.
	if err := r.save(other, want); err != nil {
		t.Fatal(err)
	}
	r.Kubectl("-n", r.own, "delete", "lease", "steadyprobe-churn-shop")
	testbed.WaitFor(t, "the Lease to be there again", limit, func() bool {
		_, err := r.Client.CoordinationV1().Leases(r.own).Get(t.Context(), "steadyprobe-churn-shop", meta.GetOptions{})
		return err == nil
	})
	if n, err := w.Load(t.Context()); err != nil || n.Baseline != want.Baseline || n.Set != want.Set || !n.Held {
		t.Errorf("after its Lease was deleted the note is %+v, %v, want %+v", n, err, want)
	}
	if err := r.save(other, churn.Note{}); err != nil {
		t.Errorf("saving to the new Lease: %v", err)
	}
}

// kubeForeignNote is about a crash after which the churn's name stands for
// another workload.
func kubeForeignNote(t *testing.T, r *rig) {
	r.Deploy(bed.App{Namespace: r.shop, Name: "other", Replicas: 1, Annotations: r.annotation()})
	front := r.Front()
	w := r.open(r.cluster(kube.ClusterOptions{Identity: "crashed", Kubeconfig: front.Kubeconfig(r.kubeconfig)}), r.options())
	r.await(w, all(2))
	r.elected(r.campaign(w))
	if err := r.save(w, churn.Note{Held: true, Baseline: 2, Set: 4, Before: 2, Deadline: time.Now().Add(time.Hour), Paused: true}); err != nil {
		t.Fatal(err)
	}
	if err := r.scale(w, 4); err != nil {
		t.Fatal(err)
	}
	front.Set(bed.Behaviour{Cut: true})

	r.Apply(fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: %s, name: other}, rules: ["+
		"{apiGroups: [apps], resources: [deployments, deployments/scale], resourceNames: [other], verbs: [get, patch]}]}", r.shop))
	r.Kubectl("-n", r.shop, "create", "rolebinding", "other", "--role=other", "--serviceaccount="+r.own+":steadyprobe")
	o := r.options()
	o.Workload, o.Service = "deployment/other", "other"
	successor := r.open(r.cluster(kube.ClusterOptions{Identity: "successor"}), o)
	r.await(successor, all(1))
	_, err := successor.Load(t.Context())
	fails(t, "a foreign note while another one is elected", err, churn.Conflict, "/apps/v1/deployments/Deployment/web, which it is about: conflict: this instance does not hold the lease")
	r.elected(r.campaign(successor))
	n, err := successor.Load(t.Context())
	if err != nil || n != (churn.Note{Paused: true}) {
		t.Errorf("the note is %+v, %v, want it released", n, err)
	}
	r.WaitEndpoints(r.shop, "web", 2)
	if got := r.Replicas(r.shop, "other"); got != 1 {
		t.Errorf("the other workload has %d replicas, want its 1", got)
	}
	if got, want := r.lease().Annotations["steadyprobe.io/workload"], r.shop+"/apps/v1/deployments/Deployment/other"; got != want {
		t.Errorf("the Lease tells of %q, want %q", got, want)
	}
	testbed.WaitFor(t, "an Event beside the first workload", limit, func() bool {
		for _, e := range r.events() {
			if e.InvolvedObject.Name == "web" && strings.Contains(e.Message, "its baseline of 2 replicas is restored from 4") {
				return true
			}
		}
		return false
	})
}

// kubeTrouble is about an API server that is slow or unwilling.
func kubeTrouble(t *testing.T, r *rig) {
	front := r.Front()
	agents := make(chan string, 1000)
	front.Set(bed.Behaviour{Only: func(q *http.Request) bool {
		select {
		case agents <- q.UserAgent():
		default:
		}
		return false
	}})
	w := r.open(r.cluster(kube.ClusterOptions{Kubeconfig: front.Kubeconfig(r.kubeconfig)}), r.options())
	r.await(w, all(2))
	for len(agents) > 0 {
		if got := <-agents; got != "steadyprobe/1.2.3" {
			t.Fatalf("a request is of %q, want steadyprobe/1.2.3", got)
		}
	}
	failing := func(b bed.Behaviour) error {
		t.Helper()
		front.Set(b)
		var err error
		testbed.WaitFor(t, "the trouble to be seen", limit, func() bool { _, err = r.look(w); return err != nil })
		return err
	}
	healed := func() {
		t.Helper()
		front.Set(bed.Behaviour{})
		began := time.Now()
		r.await(w, all(2))
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it is seen again after %v", took)
		}
	}
	fails(t, "403", failing(bed.Behaviour{Status: http.StatusForbidden}), churn.Forbidden, "the front of the test bed answers with 403")
	healed()
	fails(t, "500", failing(bed.Behaviour{Status: http.StatusInternalServerError}), churn.Unreachable, "cluster https://127.0.0.1:")
	healed()
	fails(t, "cut", failing(bed.Behaviour{Cut: true}), churn.Unreachable, "cluster https://127.0.0.1:")
	healed()

	// 429 is heeded: in 3 s there is one call, and what is told meanwhile is why.
	err := failing(bed.Behaviour{Status: http.StatusTooManyRequests, RetryAfter: 3})
	fails(t, "429", err, churn.Unreachable, "cluster https://127.0.0.1:") // this call had it, or another one
	before := sum(front.Requests())
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, err = r.look(w)
	}
	fails(t, "after 429", err, churn.Unreachable, "the server asked to be left alone for another")
	if n := sum(front.Requests()) - before; n > 0 {
		t.Errorf("%d calls although the server asked for none", n)
	}
	healed()

	// Slow is slow, and that is all.
	front.Set(bed.Behaviour{Delay: 300 * time.Millisecond})
	if o := r.observe(w); o != all(2) {
		t.Errorf("a slow server has %+v", o)
	}
	// One that does not answer is not waited for longer than the caller does.
	front.Set(bed.Behaviour{Hang: true})
	time.Sleep(time.Second) // what is known is too old
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = w.Observe(ctx)
	fails(t, "hanging", err, churn.Unreachable, "context deadline exceeded")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("a call with half a second returns after %v", took)
	}
	healed()

	// An answer that is lost leaves open whether it was done: the next look says.
	r.elected(r.campaign(w))
	scaling := func(q *http.Request) bool { return q.Method == http.MethodPatch }
	front.Set(bed.Behaviour{LoseAnswer: true, Only: scaling})
	fails(t, "an answer that is lost", r.scale(w, 3), churn.Unreachable, "EOF")
	front.Set(bed.Behaviour{})
	if o := r.observe(w); o.Desired != 3 {
		t.Errorf("afterwards %+v, want 3 desired", o)
	}
	r.await(w, all(3))
	front.Set(bed.Behaviour{Status: http.StatusConflict, Only: scaling})
	fails(t, "conflict without end", r.scale(w, 2), churn.Conflict, "answers with 409")
	front.Set(bed.Behaviour{Status: http.StatusForbidden, Only: scaling})
	fails(t, "scaling is forbidden", r.scale(w, 2), churn.Forbidden, "answers with 403")
	front.Set(bed.Behaviour{})
	// Endpoints are followed, or it is said that they are not.
	watching := func(q *http.Request) bool { return strings.Contains(q.URL.Path, "endpointslices") }
	front.Set(bed.Behaviour{Status: http.StatusForbidden, Only: watching})
	other := r.open(r.cluster(kube.ClusterOptions{Kubeconfig: front.Kubeconfig(r.kubeconfig)}), r.options())
	_, err = r.look(other)
	fails(t, "endpoints are forbidden", err, churn.Forbidden, "following EndpointSlices kubernetes.io/service-name=web: forbidden")
	front.Set(bed.Behaviour{})
	r.await(other, all(3))
	listing := func(q *http.Request) bool { return strings.Contains(q.URL.Path, "horizontalpodautoscalers") }
	front.Set(bed.Behaviour{Status: http.StatusForbidden, Only: listing})
	_, err = r.look(r.open(r.cluster(kube.ClusterOptions{Kubeconfig: front.Kubeconfig(r.kubeconfig)}), r.options()))
	fails(t, "autoscalers are forbidden", err, churn.Forbidden, "answers with 403")
	front.Set(bed.Behaviour{})
}

func sum(of map[string]int) int {
	total := 0
	for _, n := range of {
		total += n
	}
	return total
}

// kubeOutage kills the API server.
func kubeOutage(t *testing.T, r *rig) {
	logger, logged := record()
	w := r.open(r.cluster(kube.ClusterOptions{Logger: logger}), r.options())
	r.await(w, all(2))
	e := r.campaign(w)
	r.elected(e)
	if err := r.save(w, churn.Note{Held: true, Baseline: 2, Set: 3, Before: 2, Deadline: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	r.KillAPIServer()
	var err error
	testbed.WaitFor(t, "the outage to be seen", limit, func() bool { _, err = r.look(w); return err != nil })
	fails(t, "observing", err, churn.Unreachable, "cluster https://127.0.0.1:")
	testbed.WaitFor(t, "the lease to be lost", limit, func() bool { return !e.leads() })
	// What was begun may be ended until the lease is over; it lasts 3 s.
	testbed.WaitFor(t, "scaling to be refused", limit, func() bool { err = r.scale(w, 3); return !strings.Contains(err.Error(), "unreachable") })
	fails(t, "scaling", err, churn.Conflict, "this instance does not hold the lease")
	r.StartAPIServer()
	began := time.Now()
	r.await(w, all(2))
	r.elected(e)
	t.Logf("observed and elected again %v after the server is ready", time.Since(began).Round(time.Millisecond))
	if err := r.scale(w, 3); err != nil {
		t.Errorf("scaling after the outage: %v", err)
	}
	r.await(w, all(3))
	// It stops answering, and comes back.
	r.PauseAPIServer()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	testbed.WaitFor(t, "the pause to be seen", limit, func() bool { _, err = w.Observe(ctx); return err != nil })
	fails(t, "observing", err, churn.Unreachable, "")
	testbed.WaitFor(t, "the lease to be lost", limit, func() bool { return !e.leads() })
	r.ContinueAPIServer()
	r.await(w, all(3))
	r.elected(e)
	if err := r.scale(w, 2); err != nil {
		t.Errorf("restoring after the pause: %v", err)
	}
	r.await(w, all(2))
	if text := logged.String(); !strings.Contains(text, "standing for election fails") || strings.Contains(text, "Bearer") {
		t.Errorf("the log is %s", text)
	}
}

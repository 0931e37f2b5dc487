package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steadyprobe/steadyprobe/churn"
)

const (
	askSettled     = time.Second            // between two looks at the scale subresource
	askScaling     = 200 * time.Millisecond // while what is seen is not what is desired
	askChanged     = 50 * time.Millisecond  // when the endpoints have changed meanwhile
	askFailing     = 500 * time.Millisecond // after a look that failed
	askUnknown     = 10 * time.Second       // for a kind that there is not, or that cannot be scaled
	askAutoscalers = 10 * time.Second
	resolveAgain   = 30 * time.Second // after which a workload that is not found may be of another version
	suspectAfter   = 2 * time.Second  // the watch is asked for, when endpoints are not what is ready
	suspectAgain   = 5 * time.Second
)

// view is what was read of a workload.
type view struct {
	scale     scaleState
	workload  workloadState
	endpoints int // when it was read
	ready     int
	known     bool
	unsure    bool // a call of ours may have been done since
	asked     time.Time
	err       error // of the latest look

	observed bool // by the cycle
	desired  int  // as it was told
}

// verdict is what was said of a workload, and when.
type verdict struct {
	asked time.Time
	err   error
}

// suspicion is since when endpoints are not what is ready, and when the server
// was asked for them directly.
type suspicion struct{ since, asked time.Time }

// Observe returns the desired and ready replicas and the ready endpoints. Most
// of it is not older than a second, and what Scale has done is in it. Its error
// is a [churn.Error]; beside [churn.Refused] what is returned is true.
func (w *Workload) Observe(ctx context.Context) (churn.Observation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices, err := w.endpoints.await(ctx)
	if err != nil {
		return churn.Observation{}, w.client.explain("following", "EndpointSlices "+w.endpoints.selector, err)
	}
	o := churn.Observation{Endpoints: readyEndpoints(slices)}
	if err := w.look(ctx, o.Endpoints); err != nil {
		return churn.Observation{}, w.explain("observing", err)
	}
	v := &w.view
	o.Desired, o.Ready = v.scale.desired, v.ready
	if o.Endpoints, err = w.verify(ctx, o); err != nil {
		return churn.Observation{}, w.client.explain("listing", "EndpointSlices "+w.endpoints.selector, err)
	}
	if err := w.allowed(ctx, slices, o); err != nil {
		if reasonOf(err) != churn.Refused {
			return churn.Observation{}, w.explain("observing", err)
		}
		v.observed, v.desired = true, o.Desired
		return o, w.explain("observing", err)
	}
	v.observed, v.desired = true, o.Desired
	return o, nil
}

// explain says which workload an error is about.
func (w *Workload) explain(doing string, err error) error {
	what := fmt.Sprintf("%s in %q", w.reference, w.o.Namespace)
	if w.found != nil {
		what = w.found.object.String()
	}
	return w.client.explain(doing, what, err)
}

// look reads the workload where it is time to.
func (w *Workload) look(ctx context.Context, endpoints int) error {
	v := &w.view
	patience := v.patience(endpoints)
	if reason := reasonOf(v.err); v.err != nil && w.found == nil && (reason == churn.NotFound || reason == churn.Refused) {
		patience = askUnknown
	}
	if time.Since(v.asked) < patience {
		return v.err
	}
	v.asked, v.endpoints = time.Now(), endpoints
	v.err = w.read(ctx)
	if ended(ctx, v.err) {
		v.asked = time.Time{}
		return v.err
	}
	if v.err == nil {
		v.unsure = false
	}
	return v.err
}

// patience returns how long what was read is good enough.
func (v *view) patience(endpoints int) time.Duration {
	switch {
	case v.err != nil:
		return askFailing
	case !v.known, v.unsure:
		return 0
	case v.scale.desired == v.ready && v.scale.desired == v.endpoints && v.scale.desired == endpoints:
		return askSettled
	case v.endpoints != endpoints:
		return askChanged
	default:
		return askScaling
	}
}

// read asks the server for the scale subresource, and for the workload where it
// has changed.
func (w *Workload) read(ctx context.Context) error {
	if err := w.find(ctx); err != nil {
		return err
	}
	scale, err := w.readScale(ctx)
	if err != nil {
		if reasonOf(err) == churn.NotFound && time.Since(w.foundAt) > resolveAgain {
			w.found = nil
		}
		return err
	}
	v := &w.view
	if !v.known || scale.version == "" || scale.version != v.workload.version {
		if err := w.readWorkload(ctx); err != nil {
			return err
		}
	}
	v.scale, v.known = scale, true
	v.ready = readyReplicas(w.found.object.resource.Group, v.workload, scale)
	w.target.Store(&target{object: w.found.object, uid: scale.uid})
	if err := v.workload.deleted(); err != nil {
		return err
	}
	return nil
}

// find resolves the reference once.
func (w *Workload) find(ctx context.Context) error {
	if w.found != nil {
		return nil
	}
	found, err := w.client.resolve(ctx, w.reference, w.o.Namespace)
	if err != nil {
		return err
	}
	w.found, w.foundAt = &found, time.Now()
	return nil
}

func (w *Workload) readScale(ctx context.Context) (scaleState, error) {
	body, err := w.client.get(ctx, w.found.object.path("scale"))
	if err != nil {
		return scaleState{}, err
	}
	return decodeScale(body)
}

func (w *Workload) readWorkload(ctx context.Context) error {
	body, err := w.client.get(ctx, w.found.object.path())
	if err != nil {
		return err
	}
	state, err := decodeWorkload(body)
	if err != nil {
		return err
	}
	w.view.workload = state
	return nil
}

// verify asks the server for the endpoints when those of the watch have not
// been what is ready for a while: a watch may have died in silence.
func (w *Workload) verify(ctx context.Context, o churn.Observation) (int, error) {
	now, s := time.Now(), &w.suspect
	if o.Ready == o.Endpoints {
		s.since = time.Time{}
		return o.Endpoints, nil
	}
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < suspectAfter || now.Sub(s.asked) < suspectAgain {
		return o.Endpoints, nil
	}
	s.asked = now
	list, err := w.endpoints.list(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	slices := make([]*discoveryv1.EndpointSlice, len(list.Items))
	for i := range list.Items {
		slices[i] = &list.Items[i]
	}
	n := readyEndpoints(slices)
	if n != readyEndpoints(w.endpoints.seen()) {
		w.logger.Debug("the watch of the endpoints is behind, and begun anew", "seen", o.Endpoints, "there", n)
		w.endpoints.renew()
	}
	return n, nil
}

// allowed says why the workload must not be churned at present.
func (w *Workload) allowed(ctx context.Context, slices []*discoveryv1.EndpointSlice, o churn.Observation) error {
	if err := checkAnnotation(w.view.workload.annotations, w.owner); err != nil {
		return err
	}
	// Kubernetes keeps a slice for every Service with a selector, also an empty one.
	if len(slices) == 0 && o.Ready > 0 {
		return wrong(churn.Refused, "no EndpointSlice in %q has the labels %s: is there such a Service, with a selector?", w.o.Namespace, w.endpoints.selector)
	}
	if w.o.AllowAutoscaler {
		return nil
	}
	a := &w.autoscalers
	patience := askAutoscalers
	if a.err != nil {
		patience = askSettled // so that it goes on soon after it may
	}
	if time.Since(a.asked) >= patience {
		a.asked, a.err = time.Now(), w.askAutoscalers(ctx)
	}
	return a.err
}

// askAutoscalers says which autoscaler scales the workload.
func (w *Workload) askAutoscalers(ctx context.Context) error {
	for _, of := range []struct {
		kind  string
		path  []string
		there bool
	}{
		{"HorizontalPodAutoscaler", groupPath(horizontal.GroupVersion(), w.o.Namespace, horizontal.Resource), true},
		{"ScaledObject", groupPath(keda.GroupVersion(), w.o.Namespace, keda.Resource), w.found.keda},
	} {
		if !of.there {
			continue
		}
		body, err := w.client.do(ctx, request{verb: http.MethodGet, path: of.path})
		if err != nil {
			return err
		}
		var all autoscalers
		if err := json.Unmarshal(body, &all); err != nil {
			return wrong(churn.Other, "reading a list of %s: %w", of.kind, err)
		}
		if err := checkAutoscalers(of.kind, all.Items, w.found.object); err != nil {
			return err
		}
	}
	return nil
}

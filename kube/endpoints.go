package kube

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const (
	watchFor     = time.Minute      // a watch lasts as long, and up to half of that longer
	watchAnswer  = 10 * time.Second // until the server has begun it
	watchGrace   = 5 * time.Second  // after which a watch that should have ended is ended from here
	toleratedGap = 3 * time.Second  // without a watch, what was seen last is still taken for true
)

// endpoints follows the EndpointSlices of a Service in a watch. All methods may
// be called concurrently.
type endpoints struct {
	client    *client
	namespace string
	selector  string
	store     cache.Store

	mu     sync.Mutex
	synced bool
	change chan struct{} // closed when synced or trouble change
	err    error         // why there is no watch at present
	since  time.Time     // when it was lost
	watch  watch.Interface
}

func newEndpoints(c *client, namespace, selector string) *endpoints {
	return &endpoints{
		client: c, namespace: namespace, selector: selector,
		store: cache.NewStore(cache.MetaNamespaceKeyFunc), change: make(chan struct{}),
	}
}

// run follows the slices until ctx ends.
func (e *endpoints) run(ctx context.Context, logger klog.Logger) {
	r := cache.NewReflectorWithOptions(e, &discoveryv1.EndpointSlice{}, follower{e.store, e}, cache.ReflectorOptions{
		Logger: &logger,
		Name:   "steadyprobe",
		// It may take as long until a server that was away is seen again.
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 2 * time.Second},
	})
	r.RunWithContext(klog.NewContext(ctx, logger))
}

// follower tells when the store is complete.
type follower struct {
	cache.Store
	endpoints *endpoints
}

// Replace is called with all slices that there are.
func (f follower) Replace(list []any, version string) error {
	err := f.Store.Replace(list, version)
	f.endpoints.report(func(e *endpoints) { e.synced = true })
	return err
}

// report changes what is known of the watch, and wakes who waits for that.
func (e *endpoints) report(change func(*endpoints)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
	close(e.change)
	e.change = make(chan struct{})
}

func (e *endpoints) path() []string {
	return groupPath(discoveryv1.SchemeGroupVersion, e.namespace, "endpointslices")
}

// list asks for all slices.
func (e *endpoints) list(ctx context.Context, o metav1.ListOptions) (*discoveryv1.EndpointSliceList, error) {
	o.LabelSelector = e.selector
	body, err := e.client.do(ctx, request{verb: http.MethodGet, path: e.path(), list: &o})
	if err != nil {
		return nil, err
	}
	list, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	slices, ok := list.(*discoveryv1.EndpointSliceList)
	if !ok {
		return nil, errors.New("the server answers with something else than EndpointSlices")
	}
	return slices, nil
}

// ListWithContext is what the reflector lists with.
func (e *endpoints) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := e.list(ctx, o)
	if err != nil {
		e.lost(ctx, err)
		return nil, err // not the typed nil
	}
	return list, nil
}

// List and Watch are there because the reflector wants them, and are not used.
func (e *endpoints) List(o metav1.ListOptions) (runtime.Object, error) {
	return e.ListWithContext(context.Background(), o)
}

// Watch is WatchWithContext without an end.
func (e *endpoints) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return e.WatchWithContext(context.Background(), o)
}

// WatchWithContext begins a watch that ends from either side, whatever the
// other one does.
func (e *endpoints) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if err := e.client.courtesy.held(); err != nil {
		e.lost(ctx, err)
		return nil, err
	}
	lasts := watchFor + rand.N(watchFor/2)
	o.LabelSelector, o.Watch = e.selector, true
	o.TimeoutSeconds = ptr.To(int64(lasts / time.Second))
	within, cancel := context.WithCancel(ctx)
	answer := time.AfterFunc(watchAnswer, cancel)
	w, err := e.client.rest.Get().AbsPath(e.path()...).MaxRetries(0).
		SpecificallyVersionedParams(&o, scheme.ParameterCodec, listVersion).Watch(within)
	if !answer.Stop() && err == nil {
		w.Stop()
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		e.lost(ctx, err)
		return nil, err
	}
	bound := &boundWatch{Interface: w, cancel: cancel}
	bound.end = time.AfterFunc(lasts+watchGrace, bound.Stop)
	e.report(func(e *endpoints) { e.err, e.watch = nil, bound })
	return bound, nil
}

// lost takes note that there is no watch.
func (e *endpoints) lost(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	e.report(func(e *endpoints) {
		if e.err == nil {
			e.since = time.Now()
		}
		e.err = err
	})
}

// renew ends the watch, so that another one is begun from where it was.
func (e *endpoints) renew() {
	e.mu.Lock()
	w := e.watch
	e.mu.Unlock()
	if w != nil {
		w.Stop()
	}
}

// boundWatch is a watch that can be ended from outside, however often.
type boundWatch struct {
	watch.Interface
	cancel context.CancelFunc
	end    *time.Timer
}

// Stop ends the watch.
func (b *boundWatch) Stop() {
	b.cancel()
	b.end.Stop()
	b.Interface.Stop()
}

// await returns the slices. It waits for the first ones until ctx ends, or
// until it is known why there are none.
func (e *endpoints) await(ctx context.Context) ([]*discoveryv1.EndpointSlice, error) {
	for {
		e.mu.Lock()
		synced, err, since, change := e.synced, e.err, e.since, e.change
		e.mu.Unlock()
		if err != nil && (!synced || time.Since(since) > toleratedGap) {
			return nil, err
		}
		if synced {
			return e.seen(), nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (e *endpoints) seen() []*discoveryv1.EndpointSlice {
	all := e.store.List()
	out := make([]*discoveryv1.EndpointSlice, 0, len(all))
	for _, one := range all {
		if slice, ok := one.(*discoveryv1.EndpointSlice); ok {
			out = append(out, slice)
		}
	}
	return out
}

// readyEndpoints counts the ready endpoints of slices. One that stands in
// several of them, because it has several ports or addresses of both families,
// is one. An endpoint that does not say whether it is ready is
// (https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#ready).
func readyEndpoints(slicesOf []*discoveryv1.EndpointSlice) int {
	type identity struct{ family, id string }
	seen := map[identity]bool{}
	families := map[string]int{}
	for _, slice := range slicesOf {
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if !ptr.Deref(endpoint.Conditions.Ready, true) || ptr.Deref(endpoint.Conditions.Terminating, false) {
				continue
			}
			id := identity{family: string(slice.AddressType)}
			switch ref := endpoint.TargetRef; {
			case ref != nil:
				id.id = ref.Kind + "/" + ref.Namespace + "/" + ref.Name
			case len(endpoint.Addresses) > 0: // more than one is not meant to be
				id.id = slices.Min(endpoint.Addresses)
			}
			if !seen[id] {
				seen[id] = true
				families[id.family]++
			}
		}
	}
	most := 0
	for _, n := range families {
		most = max(most, n)
	}
	return most
}

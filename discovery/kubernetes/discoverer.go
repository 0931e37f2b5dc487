package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const (
	// askAgain is after how long an API is asked again whether it has a resource.
	askAgain = 30 * time.Second
	// gather is how long events are gathered before groups are made of them.
	gather = 200 * time.Millisecond
)

// gatewayAPI and openshift are the versions of the APIs that are watched.
func gatewayAPI() schema.GroupVersion {
	return schema.GroupVersion{Group: "gateway.networking.k8s.io", Version: "v1"}
}

func openshift() schema.GroupVersion {
	return schema.GroupVersion{Group: "route.openshift.io", Version: "v1"}
}

// resources returns what is watched for a role: its own objects first.
func resources(role string) []schema.GroupVersionResource {
	gateways := gatewayAPI().WithResource("gateways")
	switch role {
	case RoleGateway:
		return []schema.GroupVersionResource{gateways}
	case RoleHTTPRoute:
		return []schema.GroupVersionResource{gatewayAPI().WithResource("httproutes"), gateways}
	default:
		return []schema.GroupVersionResource{openshift().WithResource("routes")}
	}
}

// discoverer is what finds the targets of one role.
type discoverer struct {
	config     *Config
	client     *client
	namespaces []string
	metrics    *metrics
	logger     *slog.Logger
}

// NewDiscoverer returns what finds the targets. It reads the files that the
// settings name, and connects to nothing.
func (c *Config) NewDiscoverer(o sd.DiscovererOptions) (sd.Discoverer, error) {
	m, ok := o.Metrics.(*metrics)
	if !ok {
		return nil, errors.New("the metrics are not those of this mechanism")
	}
	client, err := c.newClient("steadyprobe")
	if err != nil {
		return nil, err
	}
	namespaces, err := c.namespaces()
	if err != nil {
		return nil, err
	}
	d := &discoverer{config: c, client: client, namespaces: namespaces, metrics: m, logger: o.Logger.With("role", c.Role)}
	return &guard{Discoverer: d, api: client.api, failed: d.fail}, nil
}

// Run implements [sd.Discoverer]. It waits until the API has what is looked for.
func (d *discoverer) Run(ctx context.Context, updates chan<- []*targetgroup.Group) {
	all := resources(d.config.Role)
	if !d.await(ctx, all) {
		return
	}
	events := make(chan struct{}, 1)
	stores := make([][]cache.Store, len(all))
	var (
		running sync.WaitGroup
		synced  []cache.InformerSynced
	)
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, resource := range all {
		for _, namespace := range d.namespaces {
			informer, registration, err := d.watch(resource, namespace, events)
			if err != nil {
				d.fail("Watching is not possible", err)
				return
			}
			stores[i], synced = append(stores[i], informer.GetStore()), append(synced, registration.HasSynced)
			running.Go(func() { informer.RunWithContext(ctx) })
		}
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return
	}
	d.follow(ctx, stores, events, updates)
}

// await waits until the API has the resources, and reports whether it does: else
// the context is done.
func (d *discoverer) await(ctx context.Context, all []schema.GroupVersionResource) bool {
	for {
		err := d.missing(all)
		if err == nil {
			return true
		}
		d.fail("The API does not have what is looked for", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(askAgain):
		}
	}
}

// missing returns why the resources cannot be watched, or nil.
func (d *discoverer) missing(all []schema.GroupVersionResource) error {
	for _, r := range all {
		list, err := d.client.api.ServerResourcesForGroupVersion(r.GroupVersion().String())
		if err != nil {
			return fmt.Errorf("asking for %s: %w", r.GroupVersion(), err)
		}
		if !slices.ContainsFunc(list.APIResources, func(has metav1.APIResource) bool { return has.Name == r.Resource }) {
			return fmt.Errorf("asking for %s: it has no %s; install their definitions", r.GroupVersion(), r.Resource)
		}
	}
	return nil
}

func (d *discoverer) fail(message string, err error) {
	d.metrics.failures.Inc()
	d.logger.Error(message, "err", err.Error())
}

// watch returns what keeps the objects of a resource, not yet running.
func (d *discoverer) watch(r schema.GroupVersionResource, namespace string, events chan<- struct{}) (cache.SharedIndexInformer, cache.ResourceEventHandlerRegistration, error) {
	selector := d.selector(r.Resource)
	tweak := func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = selector.Label, selector.Field }
	informer := dynamicinformer.NewFilteredDynamicInformer(d.client.objects, r, namespace, 0, cache.Indexers{}, tweak).Informer()
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		d.fail("Watching failed", fmt.Errorf("%s: %w", r.Resource, err))
	})
	if err != nil {
		return nil, nil, err
	}
	noticed := func() {
		select {
		case events <- struct{}{}:
		default:
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { noticed() },
		UpdateFunc: func(any, any) { noticed() },
		DeleteFunc: func(any) { noticed() },
	})
	return informer, registration, err
}

// selector returns what limits a resource.
func (d *discoverer) selector(resource string) Selector {
	for _, s := range d.config.Selectors {
		if s.Role+"s" == resource {
			return s
		}
	}
	return Selector{}
}

// follow sends what the objects make, and then what has changed, until the
// context is done.
func (d *discoverer) follow(ctx context.Context, stores [][]cache.Store, events <-chan struct{}, updates chan<- []*targetgroup.Group) {
	sent := map[string]*targetgroup.Group{}
	for first := true; ; first = false {
		groups := groupsOf(d.config.Role, objects(stores))
		if changed := changes(sent, groups); first || len(changed) > 0 {
			select {
			case <-ctx.Done():
				return
			case updates <- changed:
			}
		}
		sent = groups
		select {
		case <-ctx.Done():
			return
		case <-events:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gather):
		}
	}
}

// objects returns all objects of each resource, by namespace and name.
func objects(stores [][]cache.Store) [][]*unstructured.Unstructured {
	all := make([][]*unstructured.Unstructured, len(stores))
	for i, of := range stores {
		for _, store := range of {
			for _, o := range store.List() {
				if u, ok := o.(*unstructured.Unstructured); ok {
					all[i] = append(all[i], u)
				}
			}
		}
	}
	return all
}

// changes returns the groups that are others than before, empty ones for those
// that are gone.
func changes(before, after map[string]*targetgroup.Group) (changed []*targetgroup.Group) {
	for _, source := range slices.Sorted(maps.Keys(after)) {
		if !reflect.DeepEqual(before[source], after[source]) {
			changed = append(changed, after[source])
		}
	}
	for _, source := range slices.Sorted(maps.Keys(before)) {
		if after[source] == nil {
			changed = append(changed, &targetgroup.Group{Source: source})
		}
	}
	return changed
}

// groupsOf returns the targets of a role, a group for each of its objects. The
// objects are those of [resources].
func groupsOf(role string, objects [][]*unstructured.Unstructured) map[string]*targetgroup.Group {
	all := map[string]*targetgroup.Group{}
	var gateways map[string]*gateway
	if role == RoleHTTPRoute {
		gateways = gatewaysOf(objects[1])
	}
	for _, o := range objects[0] {
		g := &targetgroup.Group{Source: role + "/" + o.GetNamespace() + "/" + o.GetName(), Labels: objectLabels(o, role)}
		switch role {
		case RoleGateway:
			g.Targets = gatewayTargets(o)
		case RoleHTTPRoute:
			g.Targets = httpRouteTargets(o, gateways)
		case RoleRoute:
			g.Targets = routeTargets(o)
		}
		all[g.Source] = g
	}
	return all
}

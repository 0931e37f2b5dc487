package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/steadyprobe/steadyprobe/churn"
)

// resolved is what the server knows of a reference.
type resolved struct {
	object object
	keda   bool // the cluster has KEDA
}

// resolve asks the server which resource a reference means, and whether it can
// be scaled.
func (c *client) resolve(ctx context.Context, r reference, namespace string) (resolved, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.courtesy.held(); err != nil {
		return resolved{}, err
	}
	cached := memory.NewMemCacheClientWithContext(c.discovery)
	mapper := restmapper.NewShortcutExpanderWithContext(restmapper.NewDeferredDiscoveryRESTMapperWithContext(cached), cached, nil)
	// The mapper takes a server that cannot be reached for one that knows nothing.
	if _, err := cached.ServerGroupsWithContext(ctx); err != nil {
		return resolved{}, err
	}
	gvr, err := mapper.ResourceForWithContext(ctx, r.partial())
	if meta.IsNoMatchError(err) {
		return resolved{}, wrong(churn.NotFound, "the server knows no kind %q", schema.GroupResource{Group: r.group, Resource: r.kind})
	}
	if err != nil {
		return resolved{}, err
	}
	kinds, err := mapper.KindForWithContext(ctx, gvr)
	if err != nil {
		return resolved{}, err
	}
	list, err := cached.ServerResourcesForGroupVersionWithContext(ctx, gvr.GroupVersion().String())
	if err != nil {
		return resolved{}, err
	}
	if err := scalable(list, gvr, kinds.Kind); err != nil {
		return resolved{}, err
	}
	out := resolved{object: object{resource: gvr, kind: kinds.Kind, namespace: namespace, name: r.name}}
	if out.keda, err = has(ctx, cached, keda); err != nil {
		return resolved{}, err
	}
	return out, nil
}

// scalable says why a resource cannot be scaled.
func scalable(list *metav1.APIResourceList, gvr schema.GroupVersionResource, kind string) error {
	namespaced := false
	for i := range list.APIResources {
		switch r := &list.APIResources[i]; r.Name {
		case gvr.Resource:
			namespaced = r.Namespaced
		case gvr.Resource + "/scale":
			return nil
		}
	}
	if !namespaced {
		return wrong(churn.Refused, "a %s is in no namespace, and cannot be scaled", kind)
	}
	return wrong(churn.Refused, "a %s cannot be scaled: it has no scale subresource", kind)
}

// has reports whether the server knows a resource.
func has(ctx context.Context, d discovery.CachedDiscoveryInterfaceWithContext, gvr schema.GroupVersionResource) (bool, error) {
	groups, err := d.ServerGroupsWithContext(ctx)
	if err != nil {
		return false, fmt.Errorf("asking for group %q: %w", gvr.Group, err)
	}
	for i := range groups.Groups {
		if groups.Groups[i].Name == gvr.Group {
			return true, nil
		}
	}
	return false, nil
}

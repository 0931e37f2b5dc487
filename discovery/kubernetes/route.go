package kubernetes

import (
	"cmp"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// route is what is read of a Route (route.openshift.io/v1).
type route struct {
	Spec struct {
		Host string `json:"host"`
		Path string `json:"path"`
		TLS  *struct {
			Termination string `json:"termination"`
			Insecure    string `json:"insecureEdgeTerminationPolicy"`
		} `json:"tls"`
		To struct {
			Name string `json:"name"`
		} `json:"to"`
		WildcardPolicy string `json:"wildcardPolicy"`
	} `json:"spec"`
	Status struct {
		Ingress []routeIngress `json:"ingress"`
	} `json:"status"`
}

// routeIngress is what one router says of a Route.
type routeIngress struct {
	Host       string      `json:"host"`
	RouterName string      `json:"routerName"`
	Canonical  string      `json:"routerCanonicalHostname"`
	Conditions []condition `json:"conditions"`
}

// routeTargets returns a target for each router that knows a Route, or one where
// none does yet.
func routeTargets(o *unstructured.Unstructured) (targets []model.LabelSet) {
	r := new(route)
	if !into(o, r) {
		return nil
	}
	routers := r.Status.Ingress
	if len(routers) == 0 {
		routers = []routeIngress{{}}
	}
	for _, router := range routers {
		host := cmp.Or(router.Host, r.Spec.Host)
		if host == "" {
			continue // no router has given it one
		}
		scheme, termination, insecure := "http", "", ""
		if r.Spec.TLS != nil {
			scheme, termination, insecure = "https", r.Spec.TLS.Termination, cmp.Or(r.Spec.TLS.Insecure, "None")
		}
		set := model.LabelSet{model.AddressLabel: model.LabelValue(host)}
		add(set, RoleRoute, "scheme", scheme)
		add(set, RoleRoute, "host", host)
		add(set, RoleRoute, "path", cmp.Or(r.Spec.Path, "/"))
		add(set, RoleRoute, "tls_termination", termination)
		add(set, RoleRoute, "insecure_policy", insecure)
		add(set, RoleRoute, "service", r.Spec.To.Name)
		add(set, RoleRoute, "wildcard_policy", cmp.Or(r.Spec.WildcardPolicy, "None"))
		add(set, RoleRoute, "router_name", router.RouterName)
		add(set, RoleRoute, "router_canonical_hostname", router.Canonical)
		add(set, RoleRoute, "admitted", isTrue(router.Conditions, "Admitted"))
		targets = append(targets, set)
	}
	return targets
}

package kubernetes

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// gateway is what is read of a Gateway (gateway.networking.k8s.io/v1).
type gateway struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		ClassName string     `json:"gatewayClassName"`
		Listeners []listener `json:"listeners"`
	} `json:"spec"`
	Status struct {
		Addresses []struct {
			Type  string `json:"type"`
			Value string `json:"value"`
		} `json:"addresses"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type listener struct {
	Name     string `json:"name"`
	Hostname string `json:"hostname"`
	Port     int32  `json:"port"`
	Protocol string `json:"protocol"`
}

// scheme returns what a listener is spoken to by, empty where that is nothing
// that can be probed.
func (l *listener) scheme() string {
	switch l.Protocol {
	case "HTTP":
		return "http"
	case "HTTPS":
		return "https"
	case "TLS":
		return "tls"
	case "TCP":
		return "tcp"
	}
	return ""
}

func (g *gateway) address() (value, kind string) {
	if len(g.Status.Addresses) == 0 {
		return "", ""
	}
	first := g.Status.Addresses[0]
	return first.Value, cmp.Or(first.Type, "IPAddress")
}

// gatewaysOf returns the Gateways by namespace and name.
func gatewaysOf(objects []*unstructured.Unstructured) map[string]*gateway {
	all := map[string]*gateway{}
	for _, o := range objects {
		g := new(gateway)
		if into(o, g) {
			all[o.GetNamespace()+"/"+o.GetName()] = g
		}
	}
	return all
}

// gatewayTargets returns a target for each listener of a Gateway that can be
// probed, at its hostname or else at the address of the Gateway.
func gatewayTargets(o *unstructured.Unstructured) (targets []model.LabelSet) {
	g := new(gateway)
	if !into(o, g) {
		return nil
	}
	value, kind := g.address()
	for i := range g.Spec.Listeners {
		l := &g.Spec.Listeners[i]
		host := cmp.Or(l.Hostname, value)
		if l.scheme() == "" || host == "" {
			continue
		}
		set := model.LabelSet{model.AddressLabel: model.LabelValue(net.JoinHostPort(host, strconv.Itoa(int(l.Port))))}
		add(set, RoleGateway, "class_name", g.Spec.ClassName)
		add(set, RoleGateway, "scheme", l.scheme())
		add(set, RoleGateway, "address", value)
		add(set, RoleGateway, "address_type", kind)
		add(set, RoleGateway, "accepted", isTrue(g.Status.Conditions, "Accepted"))
		add(set, RoleGateway, "programmed", isTrue(g.Status.Conditions, "Programmed"))
		add(set, RoleGateway, "listener_name", l.Name)
		add(set, RoleGateway, "listener_protocol", l.Protocol)
		add(set, RoleGateway, "listener_port", strconv.Itoa(int(l.Port)))
		add(set, RoleGateway, "listener_hostname", l.Hostname)
		targets = append(targets, set)
	}
	return targets
}

// httpRoute is what is read of an HTTPRoute (gateway.networking.k8s.io/v1).
type httpRoute struct {
	Spec struct {
		ParentRefs []parentRef `json:"parentRefs"`
		Hostnames  []string    `json:"hostnames"`
		Rules      []struct {
			Matches []struct {
				Path *path `json:"path"`
			} `json:"matches"`
		} `json:"rules"`
	} `json:"spec"`
	Status struct {
		Parents []struct {
			ParentRef  parentRef   `json:"parentRef"`
			Conditions []condition `json:"conditions"`
		} `json:"parents"`
	} `json:"status"`
}

type parentRef struct {
	Group       *string `json:"group"`
	Kind        *string `json:"kind"`
	Namespace   string  `json:"namespace"`
	Name        string  `json:"name"`
	SectionName string  `json:"sectionName"`
	Port        int32   `json:"port"`
}

type path struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// isGateway reports whether the parent is a Gateway, which it is where nothing
// else is said.
func (p *parentRef) isGateway() bool {
	return (p.Group == nil || *p.Group == gatewayAPI().Group) && (p.Kind == nil || *p.Kind == "Gateway")
}

// same reports whether two references in objects of one namespace are to the
// same.
func (p parentRef) same(o parentRef, namespace string) bool {
	return p.isGateway() == o.isGateway() && cmp.Or(p.Namespace, namespace) == cmp.Or(o.Namespace, namespace) &&
		p.Name == o.Name && p.SectionName == o.SectionName && p.Port == o.Port
}

// listeners returns those of a Gateway that a route asks for and that speak
// HTTP.
func (p *parentRef) listeners(g *gateway) (all []*listener) {
	for i := range g.Spec.Listeners {
		l := &g.Spec.Listeners[i]
		named := p.SectionName == "" || p.SectionName == l.Name
		if s := l.scheme(); named && (p.Port == 0 || p.Port == l.Port) && (s == "http" || s == "https") {
			all = append(all, l)
		}
	}
	return all
}

// paths returns what the rules of the route match, each once; / where they match
// all.
func (r *httpRoute) paths() []path {
	var all []path
	for _, rule := range r.Spec.Rules {
		if len(rule.Matches) == 0 {
			all = append(all, path{})
		}
		for _, m := range rule.Matches {
			if m.Path == nil {
				m.Path = &path{}
			}
			all = append(all, *m.Path)
		}
	}
	if len(all) == 0 {
		all = append(all, path{})
	}
	var unique []path
	for _, p := range all {
		p.Type, p.Value = cmp.Or(p.Type, "PathPrefix"), cmp.Or(p.Value, "/")
		if !slices.Contains(unique, p) {
			unique = append(unique, p)
		}
	}
	return unique
}

// httpRouteTargets returns a target for each listener, hostname and path of a
// route. Where its Gateway is not known, scheme and port are not either.
func httpRouteTargets(o *unstructured.Unstructured, gateways map[string]*gateway) (targets []model.LabelSet) {
	r := new(httpRoute)
	if !into(o, r) {
		return nil
	}
	for i := range r.Spec.ParentRefs {
		if parent := &r.Spec.ParentRefs[i]; parent.isGateway() {
			targets = append(targets, r.targetsOf(parent, o.GetNamespace(), gateways)...)
		}
	}
	return targets
}

// targetsOf returns those that one Gateway makes of a route in this namespace.
func (r *httpRoute) targetsOf(parent *parentRef, own string, gateways map[string]*gateway) (targets []model.LabelSet) {
	accepted := "false"
	for _, s := range r.Status.Parents {
		if s.ParentRef.same(*parent, own) {
			accepted = isTrue(s.Conditions, "Accepted")
		}
	}
	namespace := cmp.Or(parent.Namespace, own)
	g := gateways[namespace+"/"+parent.Name]
	listeners := []*listener{{}}
	if g == nil {
		g = new(gateway)
	} else {
		listeners = parent.listeners(g)
	}
	for _, l := range listeners {
		for _, host := range hosts(r.Spec.Hostnames, l.Hostname) {
			for _, p := range r.paths() {
				set := routeTarget(g, l, host, p)
				add(set, RoleHTTPRoute, "accepted", accepted)
				add(set, RoleHTTPRoute, "gateway_namespace", namespace)
				add(set, RoleHTTPRoute, "gateway_name", parent.Name)
				if set[model.AddressLabel] != "" {
					targets = append(targets, set)
				}
			}
		}
	}
	return targets
}

func routeTarget(g *gateway, l *listener, host string, p path) model.LabelSet {
	value, kind := g.address()
	port := ""
	if l.Port != 0 {
		port = strconv.Itoa(int(l.Port))
	}
	set := model.LabelSet{model.AddressLabel: model.LabelValue(hostPort(cmp.Or(host, value), l))}
	add(set, RoleHTTPRoute, "scheme", l.scheme())
	add(set, RoleHTTPRoute, "host", host)
	add(set, RoleHTTPRoute, "path", p.Value)
	add(set, RoleHTTPRoute, "path_type", p.Type)
	add(set, RoleHTTPRoute, "gateway_class_name", g.Spec.ClassName)
	add(set, RoleHTTPRoute, "gateway_address", value)
	add(set, RoleHTTPRoute, "gateway_address_type", kind)
	add(set, RoleHTTPRoute, "listener_name", l.Name)
	add(set, RoleHTTPRoute, "listener_port", port)
	return set
}

// hostPort returns the address of a listener: the host alone where the port is
// that of the scheme.
func hostPort(host string, l *listener) string {
	usual := map[string]int32{"http": 80, "https": 443, "": 0}
	if host != "" && l.Port != usual[l.scheme()] {
		return net.JoinHostPort(host, strconv.Itoa(int(l.Port)))
	}
	if address, err := netip.ParseAddr(host); err == nil && address.Is6() {
		return "[" + host + "]"
	}
	return host
}

// hosts returns the hostnames that both a route and a listener have: those of the
// one that is narrower. None means all to either; to both, one that is empty is
// returned.
func hosts(route []string, listener string) []string {
	if len(route) == 0 {
		return []string{listener}
	}
	var all []string
	for _, host := range route {
		switch {
		case listener == "" || host == listener || below(host, listener):
			all = append(all, host)
		case below(listener, host):
			all = append(all, listener)
		}
	}
	return all
}

// below reports whether a hostname is one that a wildcard stands for.
func below(host, wildcard string) bool {
	suffix, ok := strings.CutPrefix(wildcard, "*")
	return ok && strings.HasSuffix(host, suffix) && host != wildcard
}

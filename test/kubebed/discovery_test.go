package kubebed

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

// TestDiscovery lets a daemon discover doors in a cluster, with the rights that
// docs/DISCOVERY.md asks for and no others, each role in a namespace of its own.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	b := bed.Start(t)
	t.Run("in peace", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *discoverer){
			"pods of a service": discoversPods,
			"services":          discoversServices,
			"ingresses":         discoversIngresses,
			"Gateway API":       discoversGateways,
			"routes":            discoversRoutes,
			"without rights":    discoversNothing,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t, newDiscoverer(t, b.In(t))) })
		}
	})
	t.Run("outage", func(t *testing.T) { discoversInAnOutage(t, newDiscoverer(t, b.In(t)), b) })
}

// discoverer is a daemon that discovers, and where.
type discoverer struct {
	*bed.Bed
	t         *testing.T
	namespace string
	probe     *testbed.ProbeServer
}

func newDiscoverer(t *testing.T, b *bed.Bed) *discoverer {
	return &discoverer{Bed: b, t: t, namespace: b.Namespace("doors")}
}

// allow lets the account of the daemon list and watch these resources of the
// namespace, each with its API group.
func (d *discoverer) allow(resources ...string) {
	d.t.Helper()
	rules := ""
	for _, r := range resources {
		name, group, _ := strings.Cut(r, ".")
		rules += fmt.Sprintf("  - {apiGroups: [%q], resources: [%s], verbs: [list, watch]}\n", group, name)
	}
	d.Apply(fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: discovery, namespace: %[1]s}
rules:
%[2]s---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: discovery, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: discovery}
subjects: [{kind: ServiceAccount, name: probe, namespace: %[1]s}]
`, d.namespace, rules))
}

// start starts the daemon with one source, of a role and with these settings.
func (d *discoverer) start(role, settings string) {
	d.t.Helper()
	d.startWith(fmt.Sprintf(`profiles: [{name: gentle, rate: 20, connections: 2}]
discovery:
  - name: doors
    kubernetes_sd_configs: [{role: %s, kubeconfig_file: KUBECONFIG, namespaces: {names: [NAMESPACE]}}]
    profile: gentle
%s`, role, settings))
}

func (d *discoverer) startWith(configuration string) {
	d.t.Helper()
	d.probe = d.Probe(strings.NewReplacer("KUBECONFIG", d.Kubeconfig(d.namespace, "probe"), "NAMESPACE", d.namespace).Replace(configuration))
}

// example starts the daemon with an example of the documentation, for the
// namespace alone.
func (d *discoverer) example(name, settings string) {
	d.t.Helper()
	text, err := os.ReadFile("../../examples/discovery/" + name)
	if err != nil {
		d.t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), settings)
	if !found {
		d.t.Fatalf("the example %s does not have %q", name, settings)
	}
	d.startWith(before + settings + "\n        kubeconfig_file: KUBECONFIG\n        namespaces: {names: [NAMESPACE]}" + after)
}

// shownSource is what the API says of a source.
type shownSource struct {
	Targets  int
	Held     bool
	Failures int
	Refused  map[string]int
	Failure  struct{ Error string }                  `json:"last_failure"`
	Listed   []struct{ Target, Reason, Text string } `json:"refused_targets"`
}

// shownTarget is what the API says of a target.
type shownTarget struct {
	Name, URL string
	Rate      float64
	Labels    map[string]string
	Completed int
	Condition struct{ State string }
}

// question asks the daemon for a list. It returns none where the daemon does not
// answer.
func question[T any](d *discoverer, path string) (all []T) {
	answer, err := http.Get("http://" + d.probe.Address + "/api/v1/" + path)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var envelope struct{ Data []T }
	if json.NewDecoder(answer.Body).Decode(&envelope) != nil {
		return nil
	}
	return envelope.Data
}

// source returns what is shown of the source.
func (d *discoverer) source() (s shownSource) {
	if all := question[shownSource](d, "discovery"); len(all) == 1 {
		s = all[0]
	}
	return s
}

// has waits until the daemon has exactly these targets.
func (d *discoverer) has(want ...string) []shownTarget {
	d.t.Helper()
	slices.Sort(want)
	var targets []shownTarget
	var names []string
	testbed.WaitFor(d.t, fmt.Sprintf("the targets %q", want), limit, func() bool {
		targets, names = question[shownTarget](d, "targets"), nil
		for _, t := range targets {
			names = append(names, t.Name)
		}
		slices.Sort(names)
		return slices.Equal(names, want)
	})
	return targets
}

// refuses waits until so many targets are refused for a reason.
func (d *discoverer) refuses(reason string, want int) {
	d.t.Helper()
	testbed.WaitFor(d.t, fmt.Sprintf("%d targets to be refused (%s)", want, reason), limit, func() bool { return d.source().Refused[reason] == want })
}

// discoversPods follows a workload that is scaled. Requests of a pod that stays
// do not fail.
func discoversPods(t *testing.T, d *discoverer) {
	d.allow("endpointslices.discovery.k8s.io", "services", "pods")
	d.Deploy(bed.App{Namespace: d.namespace, Name: "web", Replicas: 2, StopAfter: 10 * time.Second})
	d.start("endpointslice", `    relabel_configs:
      - {action: keep, source_labels: [__meta_kubernetes_endpointslice_endpoint_conditions_ready], regex: true}
      - {source_labels: [__meta_kubernetes_pod_name], target_label: __probe_name__}
      - {source_labels: [__meta_kubernetes_service_name], target_label: service}
    allow: {networks: [10.244.0.0/16]}
`)
	pods := func() []string {
		return strings.Fields(d.Kubectl("-n", d.namespace, "get", "pods", "-l", "app=web", "--field-selector=status.phase=Running", "-o", `jsonpath={range .items[?(@.status.conditions[0].status=="True")]}{.metadata.name} {end}`))
	}
	for _, n := range []int{2, 4, 1} {
		d.Kubectl("-n", d.namespace, "scale", "deployment/web", fmt.Sprintf("--replicas=%d", n))
		d.WaitEndpoints(d.namespace, "web", n)
		var want []string
		testbed.WaitFor(t, "the pods that are ready", limit, func() bool { want = pods(); return len(want) >= n })
		if n == 1 {
			testbed.WaitFor(t, "one pod to be left", limit, func() bool { want = pods(); return len(want) == n })
		}
		targets := d.has(want...)
		if targets[0].Labels["service"] != "web" {
			t.Errorf("labels are %v", targets[0].Labels)
		}
		testbed.WaitFor(t, "all of them to answer", limit, func() bool {
			return !slices.ContainsFunc(question[shownTarget](d, "targets"), func(s shownTarget) bool { return s.Condition.State != "up" || s.Completed < 20 })
		})
	}
	scrape, err := d.probe.Scrape()
	if err != nil {
		t.Fatal(err)
	}
	if failed := scrape.Sum("steadyprobe_request_failures_total"); failed != 0 {
		t.Errorf("%v requests of the pod that has stayed failed", failed)
	}
}

func discoversServices(t *testing.T, d *discoverer) {
	d.allow("services")
	d.Deploy(bed.App{Namespace: d.namespace, Name: "web", Replicas: 1})
	address := d.Kubectl("-n", d.namespace, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	d.start("service", `    relabel_configs:
      - {source_labels: [__meta_kubernetes_service_cluster_ip], target_label: __address__}
      - {source_labels: [__meta_kubernetes_service_name], target_label: __probe_name__}
    allow: {networks: [10.96.0.0/16]}
`)
	if targets := d.has("web"); targets[0].URL != "http://"+address+"/" {
		t.Errorf("the URL is %s, want that of %s", targets[0].URL, address)
	}
	d.Apply(fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: outside, namespace: %s}\nspec: {type: ExternalName, externalName: example.com, ports: [{port: 80}]}\n", d.namespace))
	d.refuses("invalid", 1) // it has no address in the cluster
	d.Kubectl("-n", d.namespace, "delete", "service", "outside")
	d.refuses("invalid", 0)
	d.has("web")
}

// discoversIngresses runs the example, and has the owner of an Ingress try more
// than he may.
func discoversIngresses(t *testing.T, d *discoverer) {
	d.allow("ingresses.networking.k8s.io")
	ingress := func(name, annotations string, hosts ...string) {
		text := fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: %s, namespace: %s, labels: {probe.example.com/enabled: \"true\"}, annotations: {%s}}\nspec:\n  tls: [{hosts: [shop.apps.example.com]}]\n  rules:\n", name, d.namespace, annotations)
		for _, h := range hosts {
			text += fmt.Sprintf("    - {host: %q, http: {paths: [{path: /cart, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}\n", h)
		}
		d.Apply(text)
	}
	ingress("shop", `probe.example.com/path: /healthz, probe.example.com/rate: "3"`, "shop.apps.example.com", "*.apps.example.com")
	ingress("evil", `probe.example.com/host: shop.apps.example.com, probe.example.com/name: shop`, "evil.example.org", "169.254.169.254.nip.io")
	d.example("ingress.yml", "- role: ingress # of the cluster that the probe runs in")
	const name = "ingresses/https://shop.apps.example.com/healthz"
	target := d.has(name)[0]
	if target.Rate != 3 || target.Labels["namespace"] != d.namespace || target.Labels["ingress"] != "shop" {
		t.Errorf("the target is %+v", target)
	}
	d.refuses("host", 2)
	ingress("shop", `probe.example.com/path: /healthz, probe.example.com/rate: "100"`, "shop.apps.example.com")
	d.refuses("load", 1) // its last targets are kept for a time
	if s := d.source(); !s.Held || s.Targets != 1 {
		t.Errorf("the source is %+v, want it to be held", s)
	}
	ingress("shop", "", "shop.apps.example.com")
	if targets := d.has("ingresses/https://shop.apps.example.com/"); targets[0].Rate != 1 {
		t.Errorf("the target is %+v", targets[0])
	}
	d.Kubectl("-n", d.namespace, "delete", "ingress", "shop")
	testbed.WaitFor(t, "the source to be held", limit, func() bool { return d.source().Held })
}

// discoversGateways runs the example before the API has Gateways.
func discoversGateways(t *testing.T, d *discoverer) {
	d.allow("gateways.gateway.networking.k8s.io", "httproutes.gateway.networking.k8s.io")
	text, err := os.ReadFile("../../examples/discovery/gateway.yml")
	if err != nil {
		t.Fatal(err)
	}
	d.startWith(strings.Replace(string(text), "kubeconfig_file: kubeconfig # relative to this file's folder", "kubeconfig_file: KUBECONFIG\n        namespaces: {names: [NAMESPACE]}", 1))
	testbed.WaitFor(t, "the lack to be told", limit, func() bool {
		return strings.Contains(d.source().Failure.Error, "the server could not find the requested resource")
	})
	d.GatewayAPI()
	d.Apply(fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front, namespace: %[1]s}
spec:
  gatewayClassName: nginx
  listeners:
    - {name: http, port: 80, protocol: HTTP}
    - {name: https, port: 8443, protocol: HTTPS, hostname: "*.example.com", tls: {certificateRefs: [{name: x}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: %[1]s}
spec:
  parentRefs: [{name: front}]
  hostnames: [shop.example.com, shop.example.org]
  rules: [{matches: [{path: {type: Exact, value: /healthz}}, {path: {value: /}}], backendRefs: [{name: web, port: 80}]}]
`, d.namespace))
	d.Kubectl("-n", d.namespace, "patch", "gateway", "front", "--subresource=status", "--type=merge", "-p", `{"status":{"addresses":[{"type":"IPAddress","value":"203.0.113.7"}]}}`)
	accept := func(status string) {
		d.Kubectl("-n", d.namespace, "patch", "httproute", "shop", "--subresource=status", "--type=merge", "-p",
			`{"status":{"parents":[{"parentRef":{"name":"front"},"controllerName":"example.com/nginx","conditions":[{"type":"Accepted","status":"`+status+`","reason":"x","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}]}}`)
	}
	accept("True")
	const name = "httproutes/https://shop.example.com:8443/healthz"
	if target := d.has(name)[0]; target.Labels["namespace"] != d.namespace {
		t.Errorf("the target is %+v", target)
	}
	d.Kubectl("-n", d.namespace, "patch", "httproute", "shop", "--type=merge", "-p", `{"spec":{"hostnames":["shop.example.com","cart.example.com"]}}`)
	d.has(name, "httproutes/https://cart.example.com:8443/healthz")
	accept("False")
	testbed.WaitFor(t, "the source to be held", limit, func() bool { return d.source().Held })
	accept("True")
	testbed.WaitFor(t, "the source to have targets again", limit, func() bool { return !d.source().Held })
	d.Kubectl("-n", d.namespace, "patch", "gateway", "front", "--subresource=status", "--type=merge", "-p", `{"status":{"addresses":[{"type":"IPAddress","value":"127.0.0.1"}]}}`)
	d.refuses("network", 2)
}

// routeDefinition is as much of OpenShift's as an API server must know.
const routeDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: routes.route.openshift.io}
spec:
  group: route.openshift.io
  scope: Namespaced
  names: {plural: routes, singular: route, kind: Route}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func discoversRoutes(t *testing.T, d *discoverer) {
	d.allow("routes.route.openshift.io")
	d.Apply(routeDefinition)
	d.Established("routes.route.openshift.io")
	text, err := os.ReadFile("../../examples/discovery/route.yml")
	if err != nil {
		t.Fatal(err)
	}
	d.startWith(strings.Replace(string(text), "namespaces: {names: [shop, search]}", "kubeconfig_file: KUBECONFIG\n        namespaces: {names: [NAMESPACE]}", 1))
	route := func(name, host string) {
		d.Apply(fmt.Sprintf("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %s, namespace: %s}\nspec: {host: %s, path: /cart, tls: {termination: edge}, to: {kind: Service, name: web}}\n", name, d.namespace, host))
		d.Kubectl("-n", d.namespace, "patch", "route", name, "--subresource=status", "--type=merge", "-p",
			`{"status":{"ingress":[{"host":"`+host+`","routerName":"default","conditions":[{"type":"Admitted","status":"True"}]}]}}`)
	}
	route("shop", "shop.apps.example.com")
	route("evil", "evil.example.org")
	target := d.has(d.namespace + "/shop")[0]
	if target.URL != "https://shop.apps.example.com/cart" || target.Labels["route"] != "shop" {
		t.Errorf("the target is %+v", target)
	}
	d.refuses("host", 1)
	route("search", "search.apps.example.com")
	d.has(d.namespace+"/shop", d.namespace+"/search")
	d.Kubectl("-n", d.namespace, "delete", "route", "shop")
	d.has(d.namespace + "/search")
}

// discoversNothing may not look, which is a failure of the source and is logged.
func discoversNothing(t *testing.T, d *discoverer) {
	d.start("ingress", "    allow: {hosts: [example.com]}\n")
	testbed.WaitFor(t, "failures", limit, func() bool { return d.source().Failures > 1 })
	if out := d.probe.Output(); !strings.Contains(out, "A source cannot watch objects of a cluster") || !strings.Contains(out, "forbidden") {
		t.Errorf("the log does not say what is wrong:\n%s", out)
	}
}

// discoversInAnOutage keeps its targets while the API server is away, and
// follows it again.
func discoversInAnOutage(t *testing.T, d *discoverer, b *bed.Bed) {
	d.allow("services")
	d.Deploy(bed.App{Namespace: d.namespace, Name: "web", Replicas: 1})
	d.start("service", `    relabel_configs:
      - {source_labels: [__meta_kubernetes_service_cluster_ip], target_label: __address__}
      - {source_labels: [__meta_kubernetes_service_name], target_label: __probe_name__}
    allow: {networks: [10.96.0.0/16]}
`)
	d.has("web")
	before := d.source().Failures
	b.In(t).KillAPIServer()
	testbed.WaitFor(t, "failures", limit, func() bool { return d.source().Failures > before })
	if s := d.source(); !strings.Contains(s.Failure.Error, "The API server does not answer") {
		t.Errorf("the source has failed by %q", s.Failure.Error)
	}
	if s := d.source(); s.Targets != 1 || s.Held {
		t.Errorf("the source is %+v while the API server is away", s)
	}
	b.In(t).StartAPIServer()
	d.Deploy(bed.App{Namespace: d.namespace, Name: "more", Replicas: 1})
	d.has("web", "more")
}

package kubebed

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/kube"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

// TestKube proves package kube on a real control plane, as the ServiceAccount
// with the shipped Roles.
func TestKube(t *testing.T) {
	t.Parallel()
	b := bed.Start(t)
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *rig)
	}{
		{"scales and observes", kubeScales},
		{"rights", kubeRights},
		{"load", kubeLoad},
		{"conflict", kubeConflict},
		{"annotation", kubeAnnotation},
		{"autoscalers", kubeAutoscalers},
		{"budgets", kubeBudgets},
		{"endpoints", kubeEndpoints},
		{"kinds", kubeKinds},
		{"own workload", kubeOwn},
		{"custom resource", kubeCustomResource},
		{"deleted", kubeDeleted},
		{"events", kubeEvents},
		{"election", kubeElection},
		{"lost lease", kubeLostLease},
		{"notebook", kubeNotebook},
		{"foreign note", kubeForeignNote},
		{"trouble", kubeTrouble},
		{"frozen connections", kubeFrozen},
		{"outage", kubeOutage},
		{"sweeper", kubeSweeper},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, newRig(t, b.In(t))) })
	}
}

// kubeScales goes 2, 4, 2 as a churn does.
func kubeScales(t *testing.T, r *rig) {
	w := r.open(r.cluster(kube.ClusterOptions{}), r.options())
	r.await(w, all(2))
	r.elected(r.campaign(w))
	for _, n := range []int{4, 2, 0, 2} {
		if err := r.save(w, churn.Note{Held: true, Baseline: 2, Set: n, Before: 2, Deadline: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		if err := r.scale(w, n); err != nil {
			t.Fatalf("scaling to %d: %v", n, err)
		}
		if o := r.observe(w); o.Desired != n {
			t.Errorf("right after scaling to %d: %+v, want it desired", n, o)
		}
		began := time.Now()
		r.await(w, all(n))
		t.Logf("%d replicas and endpoints are seen %v after the call", n, time.Since(began).Round(time.Millisecond))
		if got := r.Replicas(r.shop, "web"); got != n {
			t.Errorf("the server has %d replicas, want %d", got, n)
		}
	}
	// What somebody else does is seen, too.
	r.Kubectl("-n", r.shop, "scale", "deployment/web", "--replicas=3")
	began := time.Now()
	testbed.WaitFor(t, "somebody else's change to be seen", limit, func() bool { return r.observe(w).Desired == 3 })
	t.Logf("somebody else's change is seen after %v", time.Since(began).Round(time.Millisecond))
}

// kubeRights proves that the shipped Roles are enough, and are not more. What
// all other tests do is the first half.
func kubeRights(t *testing.T, r *rig) {
	r.Deploy(bed.App{Namespace: r.shop, Name: "other", Replicas: 1})
	for _, tc := range []struct {
		verb, resource string
		namespace      string
		allowed        bool
	}{
		{"get", "deployments.apps/web", r.shop, true},
		{"get", "deployments.apps/web --subresource=scale", r.shop, true},
		{"patch", "deployments.apps/web --subresource=scale", r.shop, true},
		{"list", "horizontalpodautoscalers.autoscaling", r.shop, true},
		{"list", "poddisruptionbudgets.policy", r.shop, true},
		{"get", "endpointslices.discovery.k8s.io", r.shop, true},
		{"list", "endpointslices.discovery.k8s.io", r.shop, true},
		{"watch", "endpointslices.discovery.k8s.io", r.shop, true},
		{"create", "events", r.shop, true},
		{"get", "leases.coordination.k8s.io", r.own, true},
		{"list", "leases.coordination.k8s.io", r.own, true},
		{"create", "leases.coordination.k8s.io", r.own, true},
		{"update", "leases.coordination.k8s.io", r.own, true},

		{"patch", "deployments.apps/web", r.shop, false},
		{"update", "deployments.apps/web", r.shop, false},
		{"update", "deployments.apps/web --subresource=scale", r.shop, false},
		{"delete", "deployments.apps/web", r.shop, false},
		{"list", "deployments.apps", r.shop, false},
		{"watch", "deployments.apps", r.shop, false},
		{"create", "deployments.apps", r.shop, false},
		{"get", "deployments.apps/other", r.shop, false},
		{"patch", "deployments.apps/other --subresource=scale", r.shop, false},
		{"get", "deployments.apps/web", r.own, false},
		{"patch", "deployments.apps/web --subresource=scale", r.own, false},
		{"get", "pods", r.shop, false},
		{"list", "pods", r.shop, false},
		{"delete", "pods", r.shop, false},
		{"get", "secrets", r.shop, false},
		{"get", "secrets", r.own, false},
		{"get", "configmaps", r.own, false},
		{"list", "services", r.shop, false},
		{"patch", "events", r.shop, false},
		{"list", "events", r.shop, false},
		{"create", "horizontalpodautoscalers.autoscaling", r.shop, false},
		{"delete", "horizontalpodautoscalers.autoscaling", r.shop, false},
		{"delete", "poddisruptionbudgets.policy", r.shop, false},
		{"update", "endpointslices.discovery.k8s.io", r.shop, false},
		{"get", "leases.coordination.k8s.io", r.shop, false},
		{"create", "leases.coordination.k8s.io", r.shop, false},
		{"delete", "leases.coordination.k8s.io", r.own, false},
		{"create", "roles.rbac.authorization.k8s.io", r.own, false},
		{"create", "serviceaccounts --subresource=token", r.own, false},
		{"list", "namespaces", "default", false},
		{"list", "nodes", "default", false},
		{"patch", "deployments.apps --subresource=scale", "kube-system", false},
	} {
		args := append([]string{"-n", tc.namespace, "auth", "can-i", tc.verb}, strings.Fields(tc.resource)...)
		out, err := r.TryKubectl(r.kubeconfig, "", args...)
		if got := strings.HasPrefix(out, "yes"); got != tc.allowed {
			t.Errorf("%s %s in %q is allowed: %v, want %v (%q, %v)", tc.verb, tc.resource, tc.namespace, got, tc.allowed, out, err)
		}
	}
	// Not only by what the server says of itself.
	if out, err := r.TryKubectl(r.kubeconfig, "", "-n", r.shop, "annotate", "deployment", "web", "a=b"); err == nil {
		t.Errorf("the workload could be annotated: %s", out)
	}
	if out, err := r.TryKubectl(r.kubeconfig, "", "-n", r.shop, "set", "image", "deployment/web", "*=evil"); err == nil {
		t.Errorf("the workload could be changed: %s", out)
	}
	// A workload that the Role does not name is said to be forbidden.
	o := r.options()
	o.Workload = "deployment/other"
	w := r.open(r.cluster(kube.ClusterOptions{}), o)
	_, err := r.look(w)
	fails(t, "another workload", err, churn.Forbidden, `observing deployments.apps/other in "`+r.shop+`": forbidden: `)
}

// kubeLoad counts what a settled workload costs the API server.
func kubeLoad(t *testing.T, r *rig) {
	front := r.Front()
	w := r.open(r.cluster(kube.ClusterOptions{Kubeconfig: front.Kubeconfig(r.kubeconfig)}), r.options())
	r.await(w, all(2))
	r.observe(w) // the first look that may be called settled
	before := front.Requests()
	const seconds = 4
	for end := time.Now().Add(seconds * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if o := r.observe(w); o != all(2) {
			t.Fatalf("it has become %+v", o)
		}
	}
	total := 0
	for call, n := range front.Requests() {
		n -= before[call]
		total += n
		most := 1 // autoscalers, once in 10 s
		switch {
		case strings.HasSuffix(call, "/deployments/web/scale"):
			most = seconds + 1
		case strings.HasSuffix(call, "/deployments/web"):
			most = 0 // nothing changes
		}
		if n > most {
			t.Errorf("%d times %s in %d s, want at most %d", n, call, seconds, most)
		}
	}
	t.Logf("%d calls in %d s of a settled workload that was observed 200 times a second", total, seconds)
}

// kubeConflict proves that a change that comes between looking and scaling is
// never overwritten, and that a mere change of the status is none.
func kubeConflict(t *testing.T, r *rig) {
	w := r.open(r.cluster(kube.ClusterOptions{}), r.options())
	r.await(w, all(2))
	r.elected(r.campaign(w))
	r.Kubectl("-n", r.shop, "scale", "deployment/web", "--replicas=3")
	fails(t, "scaling what somebody else has scaled", r.scale(w, 4), churn.Conflict, "3 replicas are desired, and not 2 any more")
	if got := r.Replicas(r.shop, "web"); got != 3 {
		t.Errorf("%d replicas, want somebody else's 3", got)
	}
	r.await(w, all(3))
	r.Kubectl("-n", r.shop, "label", "deployment/web", "changed=true") // another resource version, the same count
	if err := r.scale(w, 2); err != nil {
		t.Errorf("scaling a workload of which something else has changed: %v", err)
	}
	r.await(w, all(2))
	kubeOvertaken(t, r)
	// Both at once, again and again: somebody's change is undone only by what has
	// seen it.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		for i := 0; ctx.Err() == nil; i++ {
			time.Sleep(5 * time.Millisecond)
			patch := fmt.Sprintf(`{"metadata":{"labels":{"busy":"%d"}}}`, i)
			_, _ = r.Client.AppsV1().Deployments(r.shop).Patch(ctx, "web", "application/merge-patch+json", []byte(patch), meta.PatchOptions{})
		}
	}()
	done := 0
	const calls = 20
	for i := range calls {
		r.observe(w)
		if err := r.scale(w, 2+i%2); err == nil {
			done++
		} else {
			fails(t, "scaling a busy workload", err, churn.Conflict, "")
		}
	}
	cancel()
	<-busy
	if done == 0 {
		t.Errorf("none of %d calls went through although the count was ours", calls)
	}
	t.Logf("%d of %d calls went through while another client wrote 200 times a second", done, calls)
}

// kubeOvertaken proves that a call which is held up between the probe and the
// server does nothing once somebody else has scaled.
func kubeOvertaken(t *testing.T, r *rig) {
	front := r.Front()
	o := r.options()
	o.Churn = "shop2"
	r.annotate("deployment/web", r.own+"/shop2")
	defer r.annotate("deployment/web", r.owner)
	w := r.open(r.cluster(kube.ClusterOptions{Kubeconfig: front.Kubeconfig(r.kubeconfig)}), o)
	r.await(w, all(2))
	e := r.campaign(w)
	defer e.end()
	r.elected(e)
	arrived := make(chan struct{}, 1)
	front.Set(bed.Behaviour{Delay: time.Minute, Only: func(q *http.Request) bool {
		if q.Method == http.MethodPatch {
			arrived <- struct{}{}
		}
		return q.Method == http.MethodPatch
	}})
	done := make(chan error)
	go func() { done <- r.scale(w, 4) }()
	<-arrived
	r.Kubectl("-n", r.shop, "scale", "deployment/web", "--replicas=3")
	front.Set(bed.Behaviour{}) // it goes on its way
	fails(t, "a call that was overtaken", <-done, churn.Conflict, "3 replicas are desired, and not 2 any more")
	if got := r.Replicas(r.shop, "web"); got != 3 {
		t.Errorf("%d replicas, want somebody else's 3", got)
	}
	r.Kubectl("-n", r.shop, "scale", "deployment/web", "--replicas=2")
	r.await(w, all(2))
}

func kubeAnnotation(t *testing.T, r *rig) {
	w := r.open(r.cluster(kube.ClusterOptions{}), r.options())
	r.await(w, all(2))
	r.elected(r.campaign(w))
	if err := r.save(w, churn.Note{Held: true, Baseline: 2, Set: 4, Before: 2, Deadline: time.Now().Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if err := r.scale(w, 4); err != nil {
		t.Fatal(err)
	}
	r.await(w, all(4))
	for _, tc := range []struct{ name, value, says string }{
		{"taken away", "", "it has no annotation steadyprobe.io/churn=" + r.owner},
		{"another churn's", r.own + "/other", `says "` + r.own + `/other"`},
		{"another namespace's", "other/shop", `says "other/shop"`},
	} {
		r.annotate("deployment/web", tc.value)
		// Before it was seen: a step is refused, because it asks anew.
		fails(t, tc.name+", a step", r.scale(w, 3), churn.Refused, tc.says)
		began := time.Now()
		var err error
		var o churn.Observation
		testbed.WaitFor(t, "the brake to be seen", limit, func() bool { o, err = r.look(w); return err != nil })
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%s: seen after %v", tc.name, took)
		}
		fails(t, tc.name, err, churn.Refused, tc.says)
		if o != all(4) {
			t.Errorf("%s: observed %+v beside the error, want what is there, to put it back", tc.name, o)
		}
		// But the baseline may always be put back.
		if err := r.scale(w, 2); err != nil {
			t.Errorf("%s: restoring: %v", tc.name, err)
		}
		testbed.WaitFor(t, "the baseline", limit, func() bool { o, err = r.look(w); return o == all(2) })
		fails(t, tc.name+", restored", err, churn.Refused, tc.says)
		r.annotate("deployment/web", r.owner)
		r.await(w, all(2))
		if err := r.scale(w, 4); err != nil {
			t.Fatalf("scaling after the annotation is back: %v", err)
		}
		r.await(w, all(4))
	}
}

const scaledObjects = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaledobjects.keda.sh}
spec:
  group: keda.sh
  names: {kind: ScaledObject, plural: scaledobjects, singular: scaledobject}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func kubeAutoscalers(t *testing.T, r *rig) {
	r.Apply(scaledObjects)
	r.Kubectl("wait", "--for=condition=Established", "crd/scaledobjects.keda.sh")
	t.Cleanup(func() { r.Kubectl("delete", "crd", "scaledobjects.keda.sh") })
	hpa := func(name, of string) string {
		return fmt.Sprintf(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: %s, name: %s}, spec: {
			minReplicas: 2, maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s},
			metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}`, r.shop, name, of)
	}
	keda := fmt.Sprintf(`{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {namespace: %s, name: queue}, spec: {scaleTargetRef: {name: web}}}`, r.shop)
	r.Apply(hpa("others", "another"))
	for _, tc := range []struct{ name, manifest, resource, says string }{
		{"HPA", hpa("cpu", "web"), "hpa/cpu", `HorizontalPodAutoscaler "cpu" scales it`},
		{"KEDA", keda, "scaledobject.keda.sh/queue", `ScaledObject "queue" scales it`},
	} {
		w := r.open(r.cluster(kube.ClusterOptions{}), r.options())
		r.await(w, all(2))
		r.Apply(tc.manifest)
		var err error
		var o churn.Observation
		testbed.WaitFor(t, "the autoscaler to be seen", limit, func() bool { o, err = r.look(w); return err != nil })
		fails(t, tc.name, err, churn.Refused, tc.says)
		if o != all(2) {
			t.Errorf("%s: observed %+v beside the error, want what is there", tc.name, o)
		}
		allowed := r.options()
		allowed.AllowAutoscaler = true
		r.observe(r.open(r.cluster(kube.ClusterOptions{}), allowed))
		r.Kubectl("-n", r.shop, "delete", tc.resource)
		r.await(w, all(2))
	}
}

func kubeBudgets(t *testing.T, r *rig) {
	w := r.open(r.cluster(kube.ClusterOptions{}), r.options())
	_, err := w.Floor(t.Context(), 2)
	fails(t, "before it was observed", err, churn.Unreachable, "it was not observed yet")
	r.await(w, all(2))
	for _, tc := range []struct {
		name, least, selector string
		want                  int
	}{
		{"none", "", "", 0},
		{"a number", "1", "{matchLabels: {app: web}}", 1},
		{"a share of a baseline of 5, rounded up", `"50%"`, "{matchLabels: {app: web}}", 3}, // 2.5
		{"all pods", "4", "{}", 4},
		{"another's", "4", "{matchLabels: {app: other}}", 0},
	} {
		if tc.least != "" {
			r.Apply(fmt.Sprintf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: %s, name: web}, spec: {minAvailable: %s, selector: %s}}",
				r.shop, tc.least, tc.selector))
		}
		got, err := w.Floor(t.Context(), 5)
		if err != nil || got != tc.want {
			t.Errorf("%s: floor %d, %v, want %d", tc.name, got, err, tc.want)
		}
		if tc.least != "" {
			r.Kubectl("-n", r.shop, "delete", "pdb", "web")
		}
	}
}

// kubeEndpoints is about Services that are not as they should be.
func kubeEndpoints(t *testing.T, r *rig) {
	o := r.options()
	o.Service = "wep"
	w := r.open(r.cluster(kube.ClusterOptions{}), o)
	got, err := r.look(w)
	fails(t, "no such Service", err, churn.Refused, "kubernetes.io/service-name=wep: is there such a Service, with a selector?")
	if want := (churn.Observation{Desired: 2, Ready: 2}); got != want {
		t.Errorf("beside that it is %+v, want %+v", got, want)
	}
	// By the labels of the slices; a label of a Service is one of them.
	r.Kubectl("-n", r.shop, "label", "service/web", "tier=front")
	o = r.options()
	o.Service, o.Selector = "", "tier in (front,back)"
	r.await(r.open(r.cluster(kube.ClusterOptions{}), o), all(2))
	// A Service that selects nothing has none, and that is no error: it may come.
	r.Apply(fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {namespace: %s, name: empty}, spec: {selector: {app: nothing}, ports: [{port: 80}]}}", r.shop))
	o = r.options()
	o.Service = "empty"
	r.await(r.open(r.cluster(kube.ClusterOptions{}), o), churn.Observation{Desired: 2, Ready: 2})
	// Pods that never become ready are desired, and that is all.
	r.Deploy(bed.App{Namespace: r.shop, Name: "never", Replicas: 2, ReadyAfter: -1, Annotations: r.annotation()})
	r.grant("deployments", "apps", "never")
	o = r.options()
	o.Workload, o.Service = "deployment/never", "never"
	r.await(r.open(r.cluster(kube.ClusterOptions{}), o), churn.Observation{Desired: 2})
}

// kubeKinds scales other kinds, however they are written, and refuses what
// cannot be scaled.
func kubeKinds(t *testing.T, r *rig) {
	for i, kind := range []string{"StatefulSet", "ReplicaSet"} {
		name := fmt.Sprintf("other%d", i)
		r.Deploy(bed.App{Namespace: r.shop, Name: name, Kind: kind, Replicas: 1, Annotations: r.annotation()})
		r.grant(strings.ToLower(kind)+"s", "apps", name)
		o := r.options()
		o.Churn, o.Service = "shop", name
		o.Workload = strings.ToLower(kind) + "/" + name
		w := r.open(r.cluster(kube.ClusterOptions{}), o)
		r.await(w, all(1))
		e := r.campaign(w)
		r.elected(e)
		if err := r.scale(w, 2); err != nil {
			t.Errorf("scaling a %s: %v", kind, err)
		}
		r.await(w, all(2))
		e.end()
	}
	r.grant("deployments", "apps", "web")
	for _, way := range []string{"deploy/web", "Deployment/web", "deployments/web", "deployments.apps/web", "Deployment.v1.apps/web"} {
		o := r.options()
		o.Workload = way
		got, err := r.look(r.open(r.cluster(kube.ClusterOptions{}), o))
		if way == "Deployment.v1.apps/web" { // a version is not said: the server prefers one
			fails(t, way, err, churn.NotFound, "the server knows no kind")
			continue
		}
		if err != nil || got != all(2) {
			t.Errorf("%s: %+v, %v, want %+v", way, got, err, all(2))
		}
	}
	for _, tc := range []struct {
		workload string
		reason   churn.Reason
		says     string
	}{
		{"configmap/web", churn.Refused, "a ConfigMap cannot be scaled: it has no scale subresource"},
		{"pod/web", churn.Refused, "a Pod cannot be scaled: it has no scale subresource"},
		{"node/bed", churn.Refused, "a Node is in no namespace, and cannot be scaled"},
		{"deploymnt/web", churn.NotFound, `the server knows no kind "deploymnt"`},
		{"deploymentconfig.apps.openshift.io/web", churn.NotFound, `the server knows no kind "deploymentconfig.apps.openshift.io"`},
	} {
		o := r.options()
		o.Workload = tc.workload
		_, err := r.look(r.open(r.cluster(kube.ClusterOptions{}), o))
		fails(t, tc.workload, err, tc.reason, tc.says)
	}
	r.Kubectl("-n", r.shop, "delete", "deployment", "web")
	_, err := r.look(r.open(r.cluster(kube.ClusterOptions{}), r.options()))
	fails(t, "no such workload", err, churn.NotFound, `observing deployments.apps/web in "`+r.shop+`": not_found: `)
}

// kubeOwn looks from pods, named by the real controllers, at the workloads that
// they belong to and at others.
func kubeOwn(t *testing.T, r *rig) {
	workloads := map[string]string{ // and their kinds
		"web": "deployment", "set": "statefulset", "replicas": "replicaset", strings.Repeat("long", 15): "deployment",
	}
	pods := map[string]string{}
	for name, kind := range workloads {
		if name != "web" {
			r.Deploy(bed.App{Namespace: r.shop, Name: name, Kind: map[string]string{"statefulset": "StatefulSet", "replicaset": "ReplicaSet"}[kind], Replicas: 1})
		}
		pods[name] = r.Kubectl("-n", r.shop, "get", "pods", "-l", "app="+name, "-o", "jsonpath={.items[0].metadata.name}")
	}
	for of, pod := range pods {
		for name, kind := range workloads {
			o := r.options()
			o.Workload, o.Service = kind+"/"+name, name
			w, err := r.cluster(kube.ClusterOptions{Namespace: r.shop, Pod: pod}).Workload(o)
			if w != nil {
				w.Close()
			}
			if of == name && (err == nil || !strings.Contains(err.Error(), "it seems to be our own, we are pod \""+pod+"\"")) || of != name && err != nil {
				t.Errorf("pod %q is to churn %s: %v, want an error if, and only if, it is its own", pod, o.Workload, err)
			}
		}
	}
}

// fleets is a custom resource that says how many replicas are ready only where
// that is asked for.
const fleets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.example.com}
spec:
  group: example.com
  names: {kind: Fleet, plural: fleets, singular: fleet, shortNames: [fl]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 5}}},
      status: {type: object, properties: {size: {type: integer}, readyReplicas: {type: integer}, selector: {type: string}}}}}}
`

func kubeCustomResource(t *testing.T, r *rig) {
	r.Apply(fleets)
	r.Kubectl("wait", "--for=condition=Established", "crd/fleets.example.com")
	t.Cleanup(func() { r.Kubectl("delete", "crd", "fleets.example.com") })
	r.grant("fleets", "example.com", "web")
	r.Apply(fmt.Sprintf("{apiVersion: example.com/v1, kind: Fleet, metadata: {namespace: %s, name: web, annotations: {%s: %s}}, spec: {size: 2}}",
		r.shop, kube.ChurnAnnotation, r.owner))
	status := func(text string) {
		r.Kubectl("-n", r.shop, "patch", "fleet", "web", "--subresource=status", "--type=merge", "-p", `{"status":`+text+`}`)
	}
	status(`{"size":2,"selector":"app=web"}`)
	for _, way := range []string{"fleet/web", "fleet.example.com/web", "fl/web"} {
		o := r.options()
		o.Workload = way
		w := r.open(r.cluster(kube.ClusterOptions{}), o)
		r.await(w, all(2))
	}
	o := r.options()
	o.Workload = "fleets.example.com/web"
	w := r.open(r.cluster(kube.ClusterOptions{}), o)
	r.await(w, all(2))
	r.elected(r.campaign(w))
	if err := r.scale(w, 3); err != nil {
		t.Fatal(err)
	}
	if got := r.Kubectl("-n", r.shop, "get", "fleet", "web", "-o", "jsonpath={.spec.size}"); got != "3" {
		t.Errorf("it was scaled to %s, want 3", got)
	}
	status(`{"size":3,"readyReplicas":1}`)
	r.await(w, churn.Observation{Desired: 3, Ready: 1, Endpoints: 2})
	r.Apply(fmt.Sprintf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: %s, name: web}, spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}}", r.shop))
	if n, err := w.Floor(t.Context(), 3); err != nil || n != 1 {
		t.Errorf("floor %d, %v, want 1, by its selector", n, err)
	}
	// What the resource itself does not take is refused, and changes nothing.
	fails(t, "more than the resource takes", r.scale(w, 9), churn.Refused, "")
	if got := r.Kubectl("-n", r.shop, "get", "fleet", "web", "-o", "jsonpath={.spec.size}"); got != "3" {
		t.Errorf("it was scaled to %s, want 3", got)
	}
}

func kubeDeleted(t *testing.T, r *rig) {
	w := r.open(r.cluster(kube.ClusterOptions{}), r.options())
	r.await(w, all(2))
	r.elected(r.campaign(w))
	r.Kubectl("-n", r.shop, "delete", "deployment", "web")
	fails(t, "scaling what is deleted", r.scale(w, 4), churn.NotFound, `"web" not found`)
	var err error
	testbed.WaitFor(t, "the deletion to be seen", limit, func() bool { _, err = r.look(w); return err != nil })
	fails(t, "observing what is deleted", err, churn.NotFound, `"web" not found`)
	// Another one of that name is observed anew.
	r.Deploy(bed.App{Namespace: r.shop, Name: "web", Replicas: 1, Annotations: r.annotation()})
	r.await(w, all(1))
	// One that waits for a finalizer is as good as gone.
	r.Kubectl("-n", r.shop, "patch", "deployment", "web", "-p", `{"metadata":{"finalizers":["example.com/wait"]}}`)
	r.Kubectl("-n", r.shop, "delete", "deployment", "web", "--wait=false")
	testbed.WaitFor(t, "the deletion to be seen", limit, func() bool { _, err = r.look(w); return err != nil })
	fails(t, "being deleted", err, churn.NotFound, "it is being deleted")
	r.Kubectl("-n", r.shop, "patch", "deployment", "web", "-p", `{"metadata":{"finalizers":null}}`)
}

func kubeEvents(t *testing.T, r *rig) {
	w, err := r.cluster(kube.ClusterOptions{Identity: "me"}).Workload(r.options())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.Announce(churn.Announcement{Reason: churn.AnnounceScaledUp, Message: "lost, because the workload was not seen yet"})
	r.await(w, all(2))
	const same = 5 // a recorder would make one of them, by a patch
	for range same {
		w.Announce(churn.Announcement{Reason: churn.AnnounceScaledUp, Message: "Scaled from 2 to 4 replicas."})
	}
	w.Announce(churn.Announcement{Reason: churn.AnnounceAborted, Warning: true, Message: strings.Repeat("x", 2000)})
	began := time.Now()
	w.Close() // waits for them
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("closing took %v, want at most 3 s", took)
	}
	uid := r.Kubectl("-n", r.shop, "get", "deployment", "web", "-o", "jsonpath={.metadata.uid}")
	count := map[string]int{}
	for _, e := range r.events() {
		count[e.Reason]++
		if o := e.InvolvedObject; o.Kind != "Deployment" || o.APIVersion != "apps/v1" || o.Name != "web" || o.Namespace != r.shop || string(o.UID) != uid {
			t.Errorf("it is about %s", pretty(o))
		}
		if e.Source.Host != "me" || e.ReportingInstance != "me" || e.FirstTimestamp.IsZero() || e.Count != 1 {
			t.Errorf("it is %s", pretty(e))
		}
		if warning := e.Type == core.EventTypeWarning; warning != (e.Reason == churn.AnnounceAborted) {
			t.Errorf("%s is of type %s", e.Reason, e.Type)
		}
	}
	if count[churn.AnnounceScaledUp] != same || count[churn.AnnounceAborted] != 1 || len(count) != 2 {
		t.Errorf("Events %v, want %d and one", count, same)
	}
	if out := r.Kubectl("-n", r.shop, "describe", "deployment", "web"); !strings.Contains(out, "Scaled from 2 to 4 replicas.") {
		t.Errorf("kubectl describe does not show them: %s", out)
	}
}

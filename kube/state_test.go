package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/steadyprobe/steadyprobe/churn"
)

func TestDecodeScale(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       scaleState
		err        string
	}{
		{"autoscaling/v1", `{"kind":"Scale","metadata":{"name":"web","uid":"u","resourceVersion":"7"},"spec":{"replicas":4},"status":{"replicas":3,"selector":"app=web"}}`,
			scaleState{"7", "u", 4, 3, "app=web"}, ""},
		{"none", `{"metadata":{"name":"web","resourceVersion":"7"},"spec":{},"status":{"replicas":0}}`, scaleState{version: "7"}, ""},
		{"extensions/v1beta1", `{"metadata":{"name":"web","resourceVersion":"7"},"spec":{"replicas":2},"status":{"replicas":2,"selector":{"app":"web"},"targetSelector":"app=web"}}`,
			scaleState{"7", "", 2, 2, "app=web"}, ""},
		{"no object", `[]`, scaleState{}, "error: reading the scale subresource: json"},
		{"no answer of an API server", `{"status":"ok"}`, scaleState{}, "error: reading the scale subresource: json"},
		{"empty", `{}`, scaleState{}, "error: reading the scale subresource: it has no name"},
		{"less than none", `{"metadata":{"name":"web"},"spec":{"replicas":-1}}`, scaleState{}, "error: reading the scale subresource: -1 replicas"},
		{"text", `{"metadata":{"name":"web"},"spec":{"replicas":"4"}}`, scaleState{}, "error: reading the scale subresource: json"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := decodeScale([]byte(tc.body))
			if !begins(err, tc.err) || got != tc.want {
				t.Errorf("%+v, %v, want %+v, %s", got, err, tc.want, tc.err)
			}
		})
	}
}

// begins reports whether an error begins with a text, none being no error.
func begins(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	return strings.HasPrefix(err.Error(), text)
}

func TestDecodeWorkload(t *testing.T) {
	for _, tc := range []struct {
		name, body  string
		group       string
		scale       scaleState
		ready       int
		pods        labels.Set
		deleting    bool
		annotations map[string]string
	}{
		{
			"a Deployment", `{"metadata":{"annotations":{"a":"b"}},"spec":{"template":{"metadata":{"labels":{"app":"web"}}}},"status":{"replicas":4,"readyReplicas":3}}`,
			"apps", scaleState{replicas: 4, selector: "app=other"}, 3, labels.Set{"app": "web"}, false, map[string]string{"a": "b"},
		},
		{"a Deployment of which none is ready", `{"status":{"replicas":4}}`, "apps", scaleState{replicas: 4}, 0, labels.Set{}, false, nil},
		{"a ReplicationController of which none is ready", `{"status":{"replicas":4}}`, "", scaleState{replicas: 4}, 0, labels.Set{}, false, nil},
		{"a custom resource that does not say", `{"status":{}}`, "example.com", scaleState{replicas: 4, selector: "app=web,tier in (a,b),x!=y"}, 4, labels.Set{"app": "web"}, false, nil},
		{"a custom resource that says", `{"status":{"readyReplicas":0}}`, "example.com", scaleState{replicas: 4, selector: "?!"}, 0, labels.Set{}, false, nil},
		{"being deleted", `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`, "apps", scaleState{}, 0, labels.Set{}, true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := decodeWorkload([]byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if n := readyReplicas(tc.group, got, tc.scale); n != tc.ready {
				t.Errorf("%d are ready, want %d", n, tc.ready)
			}
			if pods := podLabels(got, tc.scale); !cmp.Equal(pods, tc.pods) {
				t.Errorf("pods have labels %v, want %v", pods, tc.pods)
			}
			if err := got.deleted(); (err != nil) != tc.deleting || (err != nil && err.Reason != churn.NotFound) {
				t.Errorf("being deleted: %v, want %v", err, tc.deleting)
			}
			if !cmp.Equal(got.annotations, tc.annotations) {
				t.Errorf("annotations %v, want %v", got.annotations, tc.annotations)
			}
		})
	}
	if _, err := decodeWorkload([]byte("<html>")); reasonOf(err) != churn.Other {
		t.Errorf("what is no object: %v, want reason %v", err, churn.Other)
	}
}

func TestFloor(t *testing.T) {
	pods := labels.Set{"app": "web", "tier": "front"}
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	budget := func(selector *metav1.LabelSelector, least *intstr.IntOrString) policyv1.PodDisruptionBudget {
		b := policyv1.PodDisruptionBudget{}
		b.Name, b.Spec.Selector, b.Spec.MinAvailable = "b", selector, least
		return b
	}
	number := func(n int) *intstr.IntOrString { return ptr.To(intstr.FromInt(n)) }
	text := func(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }
	most := budget(app, nil)
	most.Spec.MaxUnavailable = number(1)
	for _, tc := range []struct {
		name     string
		budgets  []policyv1.PodDisruptionBudget
		baseline int
		want     int
		err      string
	}{
		{"none", nil, 4, 0, ""},
		{"a number", []policyv1.PodDisruptionBudget{budget(app, number(3))}, 4, 3, ""},
		{"a share", []policyv1.PodDisruptionBudget{budget(app, text("50%"))}, 4, 2, ""},
		{"a share, rounded up", []policyv1.PodDisruptionBudget{budget(app, text("50%"))}, 5, 3, ""}, // 2.5
		{"all", []policyv1.PodDisruptionBudget{budget(app, text("100%"))}, 5, 5, ""},
		{"more than there are", []policyv1.PodDisruptionBudget{budget(app, number(9))}, 4, 9, ""},
		{"the greatest of several", []policyv1.PodDisruptionBudget{budget(app, number(1)), budget(app, text("75%")), budget(app, number(2))}, 4, 3, ""},
		{"of every pod", []policyv1.PodDisruptionBudget{budget(&metav1.LabelSelector{}, number(2))}, 4, 2, ""},
		{"of no pod", []policyv1.PodDisruptionBudget{budget(nil, number(2))}, 4, 0, ""},
		{"of others", []policyv1.PodDisruptionBudget{budget(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}, number(2))}, 4, 0, ""},
		{"by an expression", []policyv1.PodDisruptionBudget{budget(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"front", "back"}}}}, number(2))}, 4, 2, ""},
		{"maxUnavailable", []policyv1.PodDisruptionBudget{most}, 4, 0, ""},
		{"no share", []policyv1.PodDisruptionBudget{budget(app, text("half"))}, 4, 0, `reading minAvailable of PodDisruptionBudget "b": `},
		{"no selector", []policyv1.PodDisruptionBudget{budget(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}}, number(2))},
			4, 0, `reading the selector of PodDisruptionBudget "b": `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := floor(tc.budgets, pods, tc.baseline)
			if got != tc.want || !begins(err, tc.err) {
				t.Errorf("floor %d, %v, want %d, %s", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestAutoscalers(t *testing.T) {
	web := object{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment", "shop", "web"}
	for _, tc := range []struct {
		name, version, kind, of string
		want                    bool
	}{
		{"the same", "apps/v1", "Deployment", "web", true},
		{"another version", "apps/v1beta2", "Deployment", "web", true},
		{"no group", "", "Deployment", "web", true},
		{"KEDA's short form", "", "", "web", true},
		{"a version that cannot be read", "a/b/c", "Deployment", "web", true},
		{"another name", "apps/v1", "Deployment", "web2", false},
		{"another kind", "apps/v1", "StatefulSet", "web", false},
		{"another group", "example.com/v1", "Deployment", "web", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var a autoscaler
			a.Name = "auto"
			a.Spec.ScaleTargetRef.APIVersion, a.Spec.ScaleTargetRef.Kind, a.Spec.ScaleTargetRef.Name = tc.version, tc.kind, tc.of
			err := checkAutoscalers("ScaledObject", []autoscaler{{}, a}, web)
			if (err != nil) != tc.want {
				t.Fatalf("%v, want an error: %v", err, tc.want)
			}
			if err != nil && (err.Reason != churn.Refused || !strings.Contains(err.Error(), `ScaledObject "auto" scales it`)) {
				t.Errorf("%v, want it refused with the autoscaler's name", err)
			}
		})
	}
}

func TestNamespacesAndAnnotations(t *testing.T) {
	allowed := []string{"shop", "kube-system", "openshift-ingress"}
	for _, tc := range []struct{ namespace, err string }{
		{"shop", ""},
		{"shop2", `namespace "shop2": it is not among the allowed namespaces`},
		{"kube-system", `namespace "kube-system": it belongs to the platform`},
		{"kube-public", `namespace "kube-public": it belongs to the platform`},
		{"kube-node-lease", `namespace "kube-node-lease": it belongs to the platform`},
		{"openshift-ingress", `namespace "openshift-ingress": it belongs to the platform`},
		{"openshift", `namespace "openshift": it belongs to the platform`},
		{"", "namespace: want that of the workload"},
	} {
		if err := checkNamespace(tc.namespace, allowed); !begins(err, tc.err) {
			t.Errorf("namespace %q: %v, want %s", tc.namespace, err, tc.err)
		}
	}
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		err         string
	}{
		{"ours", map[string]string{ChurnAnnotation: "probes/shop"}, ""},
		{"none", nil, "refused: it has no annotation steadyprobe.io/churn=probes/shop"},
		{"another churn's", map[string]string{ChurnAnnotation: "probes/other"}, `refused: its annotation steadyprobe.io/churn says "probes/other", want "probes/shop"`},
		{"empty", map[string]string{ChurnAnnotation: ""}, `refused: its annotation steadyprobe.io/churn says "", want "probes/shop"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var err error
			if e := checkAnnotation(tc.annotations, "probes/shop"); e != nil {
				err = e
			}
			if !begins(err, tc.err) {
				t.Errorf("%v, want %s", err, tc.err)
			}
		})
	}
}

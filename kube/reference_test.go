package kube

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParseReference(t *testing.T) {
	for _, tc := range []struct {
		text string
		want reference
		err  string
	}{
		{text: "deployment/web", want: reference{kind: "deployment", name: "web"}},
		{text: "Deployment/web", want: reference{kind: "deployment", name: "web"}},
		{text: "deploymentconfig.apps.openshift.io/web", want: reference{"deploymentconfig", "apps.openshift.io", "web"}},
		{text: "rollouts.argoproj.io/a.b-c", want: reference{"rollouts", "argoproj.io", "a.b-c"}},
		{text: "", err: `workload "": want KIND/NAME, such as deployment/web or deploymentconfig.apps.openshift.io/web`},
		{text: "web", err: `workload "web": want KIND/NAME`},
		{text: "deployment/", err: `workload "deployment/": want KIND/NAME`},
		{text: "/web", err: `workload "/web": want KIND/NAME`},
		{text: "a/b/c", err: `workload "a/b/c": want KIND/NAME`},
		{text: ".apps/web", err: `workload ".apps/web": want a kind before its group`},
		{text: "deployment./web", err: `workload "deployment./web": want a kind before its group`},
		{text: "deployment/Web", err: `workload "deployment/Web": name "Web": a lowercase RFC 1123 subdomain`},
		{text: "deployment/..", err: `workload "deployment/..": name "..": a lowercase RFC 1123 subdomain`},
	} {
		t.Run(tc.text, func(t *testing.T) {
			got, err := parseReference(tc.text)
			if tc.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.err) {
					t.Errorf("error %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("%+v, %v, want %+v", got, err, tc.want)
			}
			if again, err := parseReference(got.String()); err != nil || again != got {
				t.Errorf("%q is read as %+v, %v, want %+v", got.String(), again, err, got)
			}
		})
	}
}

func TestObject(t *testing.T) {
	web := object{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment", "shop", "web"}
	old := object{schema.GroupVersionResource{Version: "v1", Resource: "replicationcontrollers"}, "ReplicationController", "shop", "web"}
	for _, tc := range []struct {
		object             object
		text, path, scaled string
	}{
		{web, `deployments.apps/web in "shop"`, "apis/apps/v1/namespaces/shop/deployments/web", "apis/apps/v1/namespaces/shop/deployments/web/scale"},
		{old, `replicationcontrollers/web in "shop"`, "api/v1/namespaces/shop/replicationcontrollers/web", "api/v1/namespaces/shop/replicationcontrollers/web/scale"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			if got := tc.object.String(); got != tc.text {
				t.Errorf("it is called %s, want %s", got, tc.text)
			}
			if got := strings.Join(tc.object.path(), "/"); got != tc.path {
				t.Errorf("path %s, want %s", got, tc.path)
			}
			if got := strings.Join(tc.object.path("scale"), "/"); got != tc.scaled {
				t.Errorf("path of scale %s, want %s", got, tc.scaled)
			}
			got, err := decodeObject(tc.object.encode())
			if err != nil || got != tc.object {
				t.Errorf("%s is read as %+v, %v", tc.object.encode(), got, err)
			}
		})
	}
	for _, text := range []string{
		"", "shop/apps/v1/deployments/Deployment", "shop/apps/v1/deployments/Deployment/web/x", "/apps/v1/deployments/Deployment/web",
		"shop/apps//deployments/Deployment/web", "shop/apps/v1/../Deployment/web", "shop/apps/v1/deployments/Deployment/web?x", "./apps/v1/deployments/Deployment/web",
	} {
		if got, err := decodeObject(text); err == nil {
			t.Errorf("%q is read as %+v, want an error", text, got)
		}
	}
}

func TestOwnsPod(t *testing.T) {
	long := strings.Repeat("a", 50)
	for _, tc := range []struct {
		name, workload, pod string
		want                bool
	}{
		{"a Deployment's", "web", "web-7d4f9c8b5-x2x4z", true},
		{"a StatefulSet's", "web", "web-0", true},
		{"a StatefulSet's, many", "web", "web-112", true},
		{"a ReplicaSet's", "web", "web-x2x4z", true},
		{"a DeploymentConfig's", "web", "web-3-x2x4z", true},
		{"another workload's that begins alike", "web", "web-probe-7d4f9c8b5-x2x4z", false},
		{"a StatefulSet's that begins alike", "web", "web-agent-0", false},
		{"a word where five letters belong", "web", "web-agent", false},
		{"another's", "web", "probe-7d4f9c8b5-x2x4z", false},
		{"the name alone", "web", "web", false},
		{"a dash missing", "web", "webx2x4z", false},
		// The server keeps 58 bytes before it appends five: 50 letters and "-7d4f9c8".
		{"a long name that was cut", long, long + "-7d4f9c8" + "x2x4z", true},
		{"another long name that was cut", "b" + long, long + "-7d4f9c8" + "x2x4z", false},
		{"a name longer than what is kept", strings.Repeat("a", 60), strings.Repeat("a", 58) + "x2x4z", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := ownsPod(tc.workload, tc.pod); got != tc.want {
				t.Errorf("%q owns %q: %v, want %v", tc.workload, tc.pod, got, tc.want)
			}
		})
	}
}

func TestLeaseName(t *testing.T) {
	seen := map[string]string{}
	for _, tc := range []struct{ churn, want string }{
		{"shop", "steadyprobe-churn-shop"},
		{"shop-backend-2", "steadyprobe-churn-shop-backend-2"},
		// sha256 of "Shop" begins with 46ad7441.
		{"Shop", "steadyprobe-churn-shop-"},
		{"shop.backend", "steadyprobe-churn-shop-backend-"},
		{"shop backend", "steadyprobe-churn-shop-backend-"},
		{"käse", "steadyprobe-churn-k-se-"},
		{"-", "steadyprobe-churn--"},
		{strings.Repeat("a", 41), "steadyprobe-churn-" + strings.Repeat("a", 31) + "-"},
		{strings.Repeat("ä", 300), "steadyprobe-churn--"},
	} {
		got := leaseName(tc.churn)
		digest := strings.HasSuffix(tc.want, "-") && strings.HasPrefix(got, tc.want) && len(got) == len(tc.want)+8
		if tc.want != got && !digest {
			t.Errorf("churn %q has Lease %q, want %q", tc.churn, got, tc.want)
		}
		if before, there := seen[got]; there {
			t.Errorf("churns %q and %q share Lease %q", before, tc.churn, got)
		}
		seen[got] = tc.churn
		if len(got) > 63 {
			t.Errorf("churn %q has Lease %q of %d bytes, want at most 63", tc.churn, got, len(got))
		}
	}
}

package app

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
)

// kubeconfigOf writes a kubeconfig of a cluster, and returns its path.
func kubeconfigOf(t *testing.T, server, namespace string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {token: hunter2}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: %q}}]
current-context: x
`, server, namespace)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// inCluster is a configuration with a churn in a cluster.
func inCluster(door *faultdoor.Door, kubeconfig, rest string) string {
	return "limits: {churn_namespaces: [shop]}\ntargets:\n" + targetOf("one", door.URL("http"), "rate: 200, churn: web") +
		fmt.Sprintf("churns: [{name: web, kubernetes: {namespace: shop, workload: deployment/web, service: web, kubeconfig: %q}, steps: [{replicas: 4, hold: 1h}], %s}]\n", kubeconfig, rest)
}

// TestADeadCluster is probed on, and the churn says what it waits for.
func TestADeadCluster(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for _, row := range []struct{ name, server, rest string }{
		{"nobody listens", "http://127.0.0.1:1", "dry_run: false"},
		{"nobody answers", "http://" + silent.Addr().String(), "dry_run: false"},
		{"in a dry run", "http://127.0.0.1:1", "dry_run: true"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			door := faultdoor.Listen(t, good())
			r := start(t, options(configured(t, inCluster(door, kubeconfigOf(t, row.server, "probes"), row.rest)), "127.0.0.1:0"))
			eventually(t, "requests", func() bool { return door.Counts().Answers >= 20 })
			eventually(t, "the reason", func() bool {
				c := churnOf(t, r)
				return (c.State == "paused" || c.State == "standby") && c.Cause == "unreachable" && !c.Leader
			})
			c := churnOf(t, r)
			if c.Workload != "deployment/web in namespace shop" || c.Reason == "" || strings.Contains(c.Reason, "hunter2") {
				t.Errorf("the churn is %+v", c)
			}
			_, page := get(r.url + "/metrics")
			if metric(page, `steadyprobe_churn_leader{churn="web"}`) != 0 || metric(page, `steadyprobe_churn_errors_total{churn="web",reason="unreachable"}`) == 0 {
				t.Errorf("the metrics say\n%s", page)
			}
			before := time.Now()
			r.stop()
			if took := time.Since(before); took > patience/2 {
				t.Errorf("the end took %v", took)
			}
		})
	}
}

// What is wrong with the way to a cluster is said at the start.
func TestNoWayToACluster(t *testing.T) {
	door := faultdoor.Listen(t, good())
	for _, row := range []struct{ name, kubeconfig, want string }{
		{"without a namespace of our own", kubeconfigOf(t, "http://127.0.0.1:1", ""), `building churn "web": our own namespace: want one`},
		{"no kubeconfig", configured(t, "targets: []"), `building churn "web": reading kubeconfig`},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := Run(t.Context(), options(configured(t, inCluster(door, row.kubeconfig, "dry_run: false")), "127.0.0.1:0"))
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q in it", err, row.want)
			}
		})
	}
	if n := door.Counts().Requests; n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// Churns of one cluster share what they know of it.
func TestClustersAreShared(t *testing.T) {
	c := newClusters(quiet(), "1.2.3")
	defer c.close()
	one, other := kubeconfigOf(t, "http://127.0.0.1:1", "probes"), kubeconfigOf(t, "http://127.0.0.1:1", "probes")
	get := func(k config.Kubernetes) any {
		t.Helper()
		made, err := c.of(&k)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first := get(config.Kubernetes{Kubeconfig: one})
	for _, row := range []struct {
		name string
		of   config.Kubernetes
		same bool
	}{
		{"another workload", config.Kubernetes{Kubeconfig: one, Namespace: "shop", Workload: "deployment/other"}, true},
		{"another kubeconfig", config.Kubernetes{Kubeconfig: other}, false},
		{"a context", config.Kubernetes{Kubeconfig: one, Context: "x"}, false},
		{"another namespace of our own", config.Kubernetes{Kubeconfig: one, Lease: config.Lease{Namespace: "other"}}, false},
	} {
		if same := get(row.of) == first; same != row.same {
			t.Errorf("%s: the same is %v, want %v", row.name, same, row.same)
		}
	}
}

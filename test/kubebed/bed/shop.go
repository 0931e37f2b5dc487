package bed

import (
	"fmt"
	"strings"
	"time"
)

// Shop is what study two looked at: a workload, and doors of every kind in
// front of it.
type Shop struct {
	Namespace string // of the Deployment and the Service "web"
	Probes    string // namespace of the probes, with their ServiceAccount "steadyprobe" and leases
	Churn     string // name of the churn that the workload allows
	Doors     []*Door

	b          *Bed
	kubeconfig string // of the probes' account
}

// Shop starts a shop with a Deployment of as many replicas, which the probes may
// churn. It ends with the test.
func (b *Bed) Shop(replicas int, kinds ...DoorKind) *Shop {
	b.t.Helper()
	s := &Shop{b: b, Namespace: b.Namespace("shop"), Probes: b.Namespace("probes"), Churn: "shop-backend"}
	b.Deploy(App{
		Namespace: s.Namespace, Name: "web", Replicas: replicas, StopAfter: time.Second, ReadyAfter: 200 * time.Millisecond,
		Annotations: map[string]string{"steadyprobe.io/churn": s.Probes + "/" + s.Churn},
	})
	s.kubeconfig = b.Kubeconfig(s.Probes, "steadyprobe")
	if len(kinds) == 0 {
		kinds = []DoorKind{HAProxyReloading, HAProxyRuntime, NGINXReloading, NGINXFixed}
	}
	for _, kind := range kinds {
		s.Doors = append(s.Doors, b.Door(kind, s.Namespace, "web"))
	}
	return s
}

// Configuration returns a configuration file's text that probes every door over
// TLS 1.3 at so many requests per second each, over so many connections, and
// churns as study two did: 4 and 2 replicas in turn.
func (s *Shop) Configuration(rate, connections int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "limits: {max_total_rate: %d, max_connections: %d, churn_namespaces: [%s]}\n",
		rate*len(s.Doors), connections*len(s.Doors), s.Namespace)
	fmt.Fprintf(&b, "defaults:\n  timeout: 5s\n  rate: %d\n  connections: %d\n  churn: %s\n  backend: {header: X-Backend}\n", rate, connections, s.Churn)
	b.WriteString("targets:\n")
	for _, d := range s.Doors {
		fmt.Fprintf(&b, "- name: %s\n  url: https://%s/\n  tls: {min_version: TLS13, ca_file: %q}\n", d.Kind, strings.Replace(d.HTTPS, "127.0.0.1", "localhost", 1), d.CAFile)
	}
	fmt.Fprintf(&b, `churns:
- name: %s
  kubernetes: {namespace: %s, workload: deployment/web, service: web, kubeconfig: %q}
  steps: [{replicas: 4, hold: 10s}, {replicas: 2, hold: 10s}]
  dry_run: false
`, s.Churn, s.Namespace, s.kubeconfig)
	return b.String()
}

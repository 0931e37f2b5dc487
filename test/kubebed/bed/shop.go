package bed

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// Shop is what study two looked at: a workload, and doors of every kind in
// front of it.
type Shop struct {
	Namespace string // of the Deployment and the Service "web"
	Probes    string // namespace of the probes, with their ServiceAccount "steadyprobe" and leases
	Churn     string // name of the churn that the workload allows
	Doors     []*Door

	// Kubeconfig is that of the probes' account.
	Kubeconfig string

	b *Bed
}

// Shop starts a shop with a Deployment of as many replicas, which the probes may
// churn. It ends with the test.
func (b *Bed) Shop(replicas int, kinds ...DoorKind) *Shop {
	b.t.Helper()
	s := &Shop{b: b, Namespace: b.Namespace("shop"), Probes: b.Namespace("probes"), Churn: "shop-backend"}
	b.Deploy(App{
		Namespace: s.Namespace, Name: "web", Replicas: replicas, StopAfter: 3 * time.Second, ReadyAfter: 200 * time.Millisecond,
		Annotations: map[string]string{"steadyprobe.io/churn": s.Probes + "/" + s.Churn},
	})
	s.grant()
	s.Kubeconfig = b.Kubeconfig(s.Probes, "steadyprobe")
	if len(kinds) == 0 {
		kinds = []DoorKind{HAProxyReloading, HAProxyRuntime, NGINXReloading, NGINXFixed}
	}
	for _, kind := range kinds {
		s.Doors = append(s.Doors, b.Door(kind, s.Namespace, "web"))
	}
	return s
}

// grant applies the shipped Roles, with the names of the shop's namespaces.
func (s *Shop) grant() {
	s.b.t.Helper()
	files, err := filepath.Glob(filepath.Join(testbed.Root(s.b.t), "deploy", "kubernetes", "churn", "*.yaml"))
	if err != nil || len(files) == 0 {
		s.b.t.Fatalf("looking for the shipped Roles: %d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.b.t.Fatal(err)
		}
		s.b.Apply(strings.NewReplacer("namespace: steadyprobe\n", "namespace: "+s.Probes+"\n", "namespace: shop\n", "namespace: "+s.Namespace+"\n").
			Replace(string(text)))
	}
}

// Churning says how a shop is probed and churned. The zero value of a duration
// stands for the default of steadyprobe.
type Churning struct {
	Rate        int           // requests per second of each door
	Connections int           // of each door
	Hold        time.Duration // of each step, required
	Settle      time.Duration
	Lease       time.Duration
	StuckAfter  time.Duration
	Kubeconfig  string // empty: that of the probes' account
	More        string // further lines of the churn, each indented by two spaces
}

// StudyTwo is how study two did it.
func StudyTwo() Churning { return Churning{Rate: 1000, Connections: 50, Hold: 10 * time.Second} }

// Configuration returns a configuration file's text that probes every door over
// TLS 1.3, and churns as study two did: 4 and 2 replicas in turn.
func (s *Shop) Configuration(c Churning) string {
	var b strings.Builder
	fmt.Fprintf(&b, "limits: {max_total_rate: %d, max_connections: %d, churn_namespaces: [%s]}\n",
		c.Rate*len(s.Doors), c.Connections*len(s.Doors), s.Namespace)
	fmt.Fprintf(&b, "defaults:\n  timeout: 5s\n  rate: %d\n  connections: %d\n  churn: %s\n  backend: {header: X-Backend}\n", c.Rate, c.Connections, s.Churn)
	b.WriteString("targets:\n")
	for _, d := range s.Doors {
		fmt.Fprintf(&b, "- name: %s\n  url: https://%s/\n  tls: {min_version: TLS13, ca_file: %q}\n", d.Kind, strings.Replace(d.HTTPS, "127.0.0.1", "localhost", 1), d.CAFile)
	}
	fmt.Fprintf(&b, "churns:\n- name: %s\n  dry_run: false\n  steps: [{replicas: 4, hold: %[2]v}, {replicas: 2, hold: %[2]v}]\n", s.Churn, c.Hold)
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"settle", c.Settle}, {"stuck_after", c.StuckAfter}} {
		if d.value > 0 {
			fmt.Fprintf(&b, "  %s: %v\n", d.name, d.value)
		}
	}
	fmt.Fprintf(&b, "%s  kubernetes:\n    namespace: %s\n    workload: deployment/web\n    service: web\n    kubeconfig: %q\n", c.More, s.Namespace, cmp.Or(c.Kubeconfig, s.Kubeconfig))
	if c.Lease > 0 {
		fmt.Fprintf(&b, "    lease: {duration: %v}\n", c.Lease)
	}
	return b.String()
}

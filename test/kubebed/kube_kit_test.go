package kubebed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/kube"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

// rig is a workload with the rights that the project ships, and nobody's else.
type rig struct {
	*bed.Bed
	t          *testing.T
	own        string // our namespace
	shop       string // that of the workload
	kubeconfig string
	owner      string // what the annotation says
}

// newRig deploys Deployment "web" with two replicas, and applies the shipped
// manifests for it.
func newRig(t *testing.T, b *bed.Bed) *rig {
	t.Helper()
	r := &rig{Bed: b, t: t, own: b.Namespace("probes"), shop: b.Namespace("shop")}
	r.owner = r.own + "/shop"
	r.grant("deployments", "apps", "web")
	r.Deploy(bed.App{Namespace: r.shop, Name: "web", Replicas: 2, Annotations: r.annotation(), StopAfter: 100 * time.Millisecond})
	return r
}

func (r *rig) annotation() map[string]string { return map[string]string{kube.ChurnAnnotation: r.owner} }

// grant applies the shipped manifests for a workload.
func (r *rig) grant(resource, group, name string) {
	r.t.Helper()
	for _, file := range []string{"probe.yaml", "workload.yaml"} {
		text, err := os.ReadFile("../../deploy/kubernetes/churn/" + file)
		if err != nil {
			r.t.Fatal(err)
		}
		manifests := strings.NewReplacer(
			"namespace: steadyprobe", "namespace: "+r.own, "namespace: shop", "namespace: "+r.shop,
			"resources: [deployments", "resources: ["+resource, "apiGroups: [apps]", "apiGroups: ["+group+"]", "resourceNames: [web]", "resourceNames: ["+name+"]",
		).Replace(string(text))
		r.Apply(manifests)
	}
	r.kubeconfig = r.Kubeconfig(r.own, "steadyprobe")
}

func (r *rig) options() kube.WorkloadOptions {
	return kube.WorkloadOptions{
		Churn: "shop", Namespace: r.shop, Workload: "deployment/web", Service: "web", AllowedNamespaces: []string{r.shop},
		LeaseDuration: 3 * time.Second, // 2 s, 400 ms
	}
}

func (r *rig) cluster(o kube.ClusterOptions) *kube.Cluster {
	r.t.Helper()
	if o.Kubeconfig == "" {
		o.Kubeconfig = r.kubeconfig
	}
	if o.Version == "" {
		o.Version = "1.2.3"
	}
	if testing.Verbose() && o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(r.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	c, err := kube.Connect(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// open returns the workload, which is closed at the end.
func (r *rig) open(c *kube.Cluster, o kube.WorkloadOptions) *kube.Workload {
	r.t.Helper()
	w, err := c.Workload(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(w.Close)
	return w
}

// term is one time that an instance leads, or stands for election.
type term struct {
	w    *kube.Workload
	stop context.CancelFunc

	mu    sync.Mutex
	terms []span
	done  chan struct{}
}

// lingers is less than what is left of a lease when it is no longer sure.
const lingers = 600 * time.Millisecond

type span struct{ from, to time.Time } // to is zero while it lasts

// campaign lets w stand for election until the end of the test, or until stop.
func (r *rig) campaign(w *kube.Workload) *term {
	ctx, cancel := context.WithCancel(context.Background())
	e := &term{w: w, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(e.done)
		if err := w.Campaign(ctx, e.lead); err != nil {
			r.t.Errorf("standing for election: %v", err)
		}
	}()
	r.t.Cleanup(e.end)
	return e
}

func (e *term) lead(ctx context.Context) {
	e.mu.Lock()
	e.terms = append(e.terms, span{from: time.Now()})
	e.mu.Unlock()
	<-ctx.Done()
	time.Sleep(lingers) // as who still has to put something back
	e.mu.Lock()
	e.terms[len(e.terms)-1].to = time.Now()
	e.mu.Unlock()
}

// end gives the lease up.
func (e *term) end() {
	e.stop()
	<-e.done
}

// spans returns when it has led.
func (e *term) spans() []span {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]span(nil), e.terms...)
}

func (e *term) leads() bool {
	all := e.spans()
	return len(all) > 0 && all[len(all)-1].to.IsZero()
}

// elected waits until it leads.
func (r *rig) elected(e *term) {
	r.t.Helper()
	testbed.WaitFor(r.t, "an instance to be elected", limit, e.leads)
}

// observe returns what is observed, which must go well.
func (r *rig) observe(w *kube.Workload) churn.Observation {
	r.t.Helper()
	o, err := r.look(w)
	if err != nil {
		r.t.Fatalf("observing: %v", err)
	}
	return o
}

func (r *rig) look(w *kube.Workload) (churn.Observation, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return w.Observe(ctx)
}

// await observes until it is what is wanted, as a Cycle does.
func (r *rig) await(w *kube.Workload, want churn.Observation) {
	r.t.Helper()
	var got churn.Observation
	var err error
	testbed.WaitFor(r.t, "the workload to be as wanted", limit, func() bool {
		got, err = r.look(w)
		return err == nil && got == want
	})
}

// all is a workload with so many replicas that are there.
func all(n int) churn.Observation { return churn.Observation{Desired: n, Ready: n, Endpoints: n} }

func (r *rig) scale(w *kube.Workload, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return w.Scale(ctx, n)
}

func (r *rig) save(w *kube.Workload, n churn.Note) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return w.Save(ctx, n)
}

// lease returns the Lease of churn "shop".
func (r *rig) lease() *coordination.Lease {
	r.t.Helper()
	l, err := r.Client.CoordinationV1().Leases(r.own).Get(r.t.Context(), "steadyprobe-churn-shop", meta.GetOptions{})
	if err != nil {
		r.t.Fatalf("reading the Lease: %v", err)
	}
	return l
}

// events returns the Events of the workload's namespace that we wrote.
func (r *rig) events() []core.Event {
	r.t.Helper()
	list, err := r.Client.CoreV1().Events(r.shop).List(r.t.Context(), meta.ListOptions{FieldSelector: "source=steadyprobe"})
	if err != nil {
		r.t.Fatalf("listing Events: %v", err)
	}
	return list.Items
}

// fails checks the reason of an error, and what it says.
func fails(t *testing.T, what string, err error, want churn.Reason, says string) {
	t.Helper()
	var e *churn.Error
	if !errors.As(err, &e) || e.Reason != want || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want reason %q and in it %q", what, err, want, says)
	}
}

// annotate changes the annotation of a workload; an empty value takes it away.
func (r *rig) annotate(workload, value string) {
	r.t.Helper()
	if value == "" {
		r.Kubectl("-n", r.shop, "annotate", workload, kube.ChurnAnnotation+"-")
		return
	}
	r.Kubectl("-n", r.shop, "annotate", "--overwrite", workload, kube.ChurnAnnotation+"="+value)
}

// lines is a log that several goroutines write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// record returns a logger, and what it has logged.
func record() (*slog.Logger, *lines) {
	l := &lines{}
	return slog.New(slog.NewTextHandler(l, nil)), l
}

func pretty(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

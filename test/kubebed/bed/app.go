package bed

import (
	"context"
	"strconv"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// App is a workload with a Service of the same name.
type App struct {
	Namespace   string
	Name        string
	Kind        string // Deployment (also if empty), StatefulSet or ReplicaSet
	Replicas    int
	Annotations map[string]string // of the workload

	ReadyAfter  time.Duration // from when a pod serves until it is said to be ready; below 0: it never is
	StopAfter   time.Duration // how long a pod that is to end goes on to serve, as with a preStop hook that sleeps
	AnswerAfter time.Duration // how long each answer takes
}

// The annotations of pods that the kubelet of the bed knows. Their values are
// durations as Go writes them.
const (
	readyAfter  = "kubebed.steadyprobe.io/ready-after" // or "never"
	stopAfter   = "kubebed.steadyprobe.io/stop-after"
	answerAfter = "kubebed.steadyprobe.io/answer-after"

	never = "never"
)

// podPort is the port that pods serve at, and servicePort that of Services.
const (
	podPort     = 8080
	servicePort = 80
)

// Namespace makes a namespace whose name begins as told, waits until pods can
// be made in it, and returns its name.
func (b *Bed) Namespace(name string) string {
	b.t.Helper()
	name = b.unique(name)
	ctx, cancel := b.context()
	defer cancel()
	if _, err := b.Client.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{}); err != nil {
		b.t.Fatalf("making the namespace %q: %v", name, err)
	}
	testbed.WaitFor(b.t, "the ServiceAccount of pods in "+name, callLimit, func() bool {
		_, err := b.Client.CoreV1().ServiceAccounts(name).Get(ctx, "default", meta.GetOptions{})
		return err == nil
	})
	return name
}

// Deploy makes an App and waits until as many endpoints of its Service are
// ready, unless they never are.
func (b *Bed) Deploy(a App) {
	b.t.Helper()
	ctx, cancel := b.context()
	defer cancel()
	labels := map[string]string{"app": a.Name}
	object := meta.ObjectMeta{Namespace: a.Namespace, Name: a.Name, Labels: labels, Annotations: a.Annotations}
	selector := &meta.LabelSelector{MatchLabels: labels}
	replicas, template := int32(a.Replicas), a.template(labels)
	var err error
	switch a.Kind {
	case "", "Deployment":
		_, err = b.Client.AppsV1().Deployments(a.Namespace).Create(ctx, &apps.Deployment{
			ObjectMeta: object, Spec: apps.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template},
		}, meta.CreateOptions{})
	case "StatefulSet":
		_, err = b.Client.AppsV1().StatefulSets(a.Namespace).Create(ctx, &apps.StatefulSet{
			ObjectMeta: object, Spec: apps.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: template, ServiceName: a.Name},
		}, meta.CreateOptions{})
	case "ReplicaSet":
		_, err = b.Client.AppsV1().ReplicaSets(a.Namespace).Create(ctx, &apps.ReplicaSet{
			ObjectMeta: object, Spec: apps.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: template},
		}, meta.CreateOptions{})
	default:
		b.t.Fatalf("making a workload: kind %q is unknown", a.Kind)
	}
	if err != nil {
		b.t.Fatalf("making the workload %q: %v", a.Name, err)
	}
	service := &core.Service{ObjectMeta: meta.ObjectMeta{Namespace: a.Namespace, Name: a.Name}, Spec: core.ServiceSpec{
		Selector: labels, Ports: []core.ServicePort{{Port: servicePort, TargetPort: intstr.FromInt32(podPort)}},
	}}
	if _, err := b.Client.CoreV1().Services(a.Namespace).Create(ctx, service, meta.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
		b.t.Fatalf("making the Service %q: %v", a.Name, err)
	}
	if a.ReadyAfter >= 0 {
		b.WaitEndpoints(a.Namespace, a.Name, a.Replicas)
	}
}

// template returns that of the pods.
func (a App) template(labels map[string]string) core.PodTemplateSpec {
	ready := a.ReadyAfter.String()
	if a.ReadyAfter < 0 {
		ready = never
	}
	return core.PodTemplateSpec{
		ObjectMeta: meta.ObjectMeta{Labels: labels, Annotations: map[string]string{
			readyAfter: ready, stopAfter: a.StopAfter.String(), answerAfter: a.AnswerAfter.String(),
		}},
		Spec: core.PodSpec{Containers: []core.Container{{
			Name: "web", Image: "pod", Ports: []core.ContainerPort{{ContainerPort: podPort}},
		}}},
	}
}

// WaitEndpoints waits until exactly n endpoints of a Service are ready.
func (b *Bed) WaitEndpoints(namespace, service string, n int) {
	b.t.Helper()
	var got []string
	defer func() {
		if b.t.Failed() {
			b.t.Logf("ready endpoints of %s/%s: %q, want %d", namespace, service, got, n)
		}
	}()
	testbed.WaitFor(b.t, strconv.Itoa(n)+" ready endpoints of "+namespace+"/"+service, callLimit, func() bool {
		var err error
		got, err = b.endpoints(namespace, service)
		return err == nil && len(got) == n
	})
}

// endpoints returns the addresses of the ready endpoints of a Service.
func (b *Bed) endpoints(namespace, service string) ([]string, error) {
	ctx, cancel := b.context()
	defer cancel()
	list, err := b.Client.DiscoveryV1().EndpointSlices(namespace).List(ctx, meta.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + service})
	if err != nil {
		return nil, err
	}
	slices := make([]*discovery.EndpointSlice, len(list.Items))
	for i := range list.Items {
		slices[i] = &list.Items[i]
	}
	return ready(slices), nil
}

// Replicas returns how many replicas a Deployment is asked to have.
func (b *Bed) Replicas(namespace, name string) int {
	b.t.Helper()
	ctx, cancel := b.context()
	defer cancel()
	n, err := b.replicas(ctx, namespace, name)
	if err != nil {
		b.t.Fatalf("reading the Deployment %q: %v", name, err)
	}
	return n
}

func (b *Bed) replicas(ctx context.Context, namespace, name string) (int, error) {
	scale, err := b.Client.AppsV1().Deployments(namespace).GetScale(ctx, name, meta.GetOptions{})
	if err != nil {
		return 0, err
	}
	return int(scale.Spec.Replicas), nil
}

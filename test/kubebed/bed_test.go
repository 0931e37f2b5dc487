package kubebed

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

const limit = time.Minute

// TestBed tests the bed itself, so that what other tests find is what they look
// at.
func TestBed(t *testing.T) {
	t.Parallel()
	b := bed.Start(t)
	t.Run("kubectl", func(t *testing.T) { kubectlWorks(t, b.In(t)) })
	t.Run("workloads", func(t *testing.T) { workloads(t, b.In(t)) })
	t.Run("pods", func(t *testing.T) { podsLive(t, b.In(t)) })
	t.Run("accounts", func(t *testing.T) { accounts(t, b.In(t)) })
	t.Run("doors", func(t *testing.T) { doorsFollow(t, b.In(t)) })
	t.Run("front", func(t *testing.T) { fronts(t, b.In(t)) })
	t.Run("outages", func(t *testing.T) { comesBack(t, b.In(t)) })
}

func kubectlWorks(t *testing.T, b *bed.Bed) {
	if got := b.Kubectl("version"); !strings.Contains(got, "Client Version: v1.37.2") || !strings.Contains(got, "Server Version: v1.37.2") {
		t.Errorf("kubectl version = %q, want both to be v1.37.2", got)
	}
	if got := b.Kubectl("get", "nodes", "-o", "name"); got != "node/bed\n" {
		t.Errorf("nodes = %q, want the one", got)
	}
	if _, err := b.TryKubectl(b.Admin, "", "get", "nothings"); err == nil {
		t.Error("kubectl succeeds with what there is not")
	}
}

func workloads(t *testing.T, b *bed.Bed) {
	for _, kind := range []string{"Deployment", "StatefulSet", "ReplicaSet"} {
		ns := b.Namespace("workloads")
		b.Deploy(bed.App{Namespace: ns, Name: "web", Kind: kind, Replicas: 2, Annotations: map[string]string{"steadyprobe.io/churn": "a/b"}})
		for _, n := range []string{"4", "1", "0", "2"} {
			b.Kubectl("-n", ns, "scale", kind+"/web", "--replicas="+n)
			b.WaitEndpoints(ns, "web", int(n[0]-'0'))
		}
		if got := b.Kubectl("-n", ns, "get", kind+"/web", "-o", `jsonpath={.metadata.annotations.steadyprobe\.io/churn}`); got != "a/b" {
			t.Errorf("annotation of the %s = %q, want a/b", kind, got)
		}
	}
}

// podsLive proves that pods are servers of their own, become ready late and go
// on to serve when they are to end.
func podsLive(t *testing.T, b *bed.Bed) {
	ns := b.Namespace("pods")
	began := time.Now()
	b.Deploy(bed.App{Namespace: ns, Name: "web", Replicas: 1, ReadyAfter: 500 * time.Millisecond, StopAfter: 500 * time.Millisecond})
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("the pod was ready after %v, want 500 ms or more", took)
	}
	name, address, _ := strings.Cut(b.Kubectl("-n", ns, "get", "pods", "-o", "jsonpath={.items[0].metadata.name} {.items[0].status.podIP}"), " ")
	if backend, err := ask(http.DefaultClient, "http://"+address+":8080/"); err != nil || backend != name {
		t.Fatalf("answer of %q, %v, want one of the pod %q", backend, err, name)
	}
	b.Kubectl("-n", ns, "scale", "deployment/web", "--replicas=0")
	b.WaitEndpoints(ns, "web", 0)
	if backend, err := ask(http.DefaultClient, "http://"+address+":8080/"); err != nil || backend != name {
		t.Errorf("answer of %q, %v after it was told to end, want one of the pod %q for half a second", backend, err, name)
	}
	testbed.WaitFor(t, "the pod to be gone", limit, func() bool {
		return b.Kubectl("-n", ns, "get", "pods", "-o", "name") == ""
	})
	http.DefaultClient.CloseIdleConnections()
	if _, err := ask(http.DefaultClient, "http://"+address+":8080/"); err == nil {
		t.Error("a pod that is gone still answers")
	}
	b.Deploy(bed.App{Namespace: ns, Name: "never", Replicas: 1, ReadyAfter: -1})
	testbed.WaitFor(t, "the pod to run", limit, func() bool {
		return b.Kubectl("-n", ns, "get", "pods", "-l", "app=never", "-o", "jsonpath={.items[*].status.phase}") == "Running"
	})
	b.WaitEndpoints(ns, "never", 0)
}

// ask requests url and returns which backend answered.
func ask(c *http.Client, url string) (string, error) {
	response, err := c.Get(url)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	return response.Header.Get("X-Backend"), err
}

func accounts(t *testing.T, b *bed.Bed) {
	ns := b.Namespace("accounts")
	kubeconfig := b.Kubeconfig(ns, "probe")
	if out, err := b.TryKubectl(kubeconfig, "", "get", "configmaps"); err == nil || !strings.Contains(out, "Forbidden") ||
		!strings.Contains(out, "system:serviceaccount:"+ns+":probe") || !strings.Contains(out, "in the namespace \""+ns+"\"") {
		t.Errorf("an account without rights got %q, %v, want Forbidden", out, err)
	}
	b.Kubectl("-n", ns, "create", "role", "reader", "--verb=list", "--resource=configmaps")
	b.Kubectl("-n", ns, "create", "rolebinding", "reader", "--role=reader", "--serviceaccount="+ns+":probe")
	testbed.WaitFor(t, "the right to be known", limit, func() bool {
		_, err := b.TryKubectl(b.Kubeconfig(ns, "probe"), "", "get", "configmaps")
		return err == nil
	})
}

// doorsFollow proves that every door passes requests to all ready pods and to
// no other, and which doors are reloaded for that.
func doorsFollow(t *testing.T, b *bed.Bed) {
	ns := b.Namespace("doors")
	b.Deploy(bed.App{Namespace: ns, Name: "web", Replicas: 2, StopAfter: time.Second})
	doors := []*bed.Door{
		b.Door(bed.HAProxyReloading, ns, "web"), b.Door(bed.HAProxyRuntime, ns, "web"),
		b.Door(bed.NGINXReloading, ns, "web"), b.Door(bed.NGINXFixed, ns, "web"),
	}
	for _, n := range []int{2, 4, 1, 3} {
		b.Kubectl("-n", ns, "scale", "deployment/web", fmt.Sprintf("--replicas=%d", n))
		b.WaitEndpoints(ns, "web", n)
		var want []string
		testbed.WaitFor(t, "pods that end to be gone", limit, func() bool {
			want = strings.Fields(b.Kubectl("-n", ns, "get", "pods", "-o", "jsonpath={.items[*].metadata.name}"))
			return len(want) == n
		})
		slices.Sort(want)
		for _, d := range doors {
			client, requests := clientOf(t, d), 5*n
			if d.Kind == bed.NGINXFixed {
				requests = 100 * n // 5 connections to the Service for each pod, at random
			}
			var got map[string]bool
			testbed.WaitFor(t, fmt.Sprintf("%v to pass requests to the %d pods", d.Kind, n), limit, func() bool {
				got = map[string]bool{}
				for range requests {
					backend, err := ask(client, "https://"+strings.Replace(d.HTTPS, "127.0.0.1", "localhost", 1)+"/")
					if err != nil {
						return false // it passes to one that is gone
					}
					got[backend] = true
				}
				return len(got) == n
			})
			if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
				t.Errorf("%v: answers came from %q, want %q", d.Kind, names, want)
			}
		}
	}
	for _, d := range doors {
		reloading := d.Kind == bed.HAProxyReloading || d.Kind == bed.NGINXReloading
		if n := d.Reloads(); reloading != (n >= 3) || !reloading && n != 0 {
			t.Errorf("%v was reloaded %d times, want that %t", d.Kind, n, reloading)
		}
	}
}

// clientOf returns a client that trusts a door and takes a connection for each
// request.
func clientOf(t *testing.T, d *bed.Door) *http.Client {
	t.Helper()
	authority, err := os.ReadFile(d.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true,
	}}
}

func fronts(t *testing.T, b *bed.Bed) {
	ns := b.Namespace("front")
	b.Deploy(bed.App{Namespace: ns, Name: "web", Replicas: 1})
	f := b.Front()
	config, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig(b.Admin))
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = 2 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	get := func() error {
		_, err := client.AppsV1().Deployments(ns).GetScale(t.Context(), "web", meta.GetOptions{})
		return err
	}
	const path = "/apis/apps/v1/namespaces/"
	asked := func() int { return f.Requests()["GET "+path+ns+"/deployments/web/scale"] }
	for _, row := range []struct {
		name      string
		behaviour bed.Behaviour
		want      string // of the error; empty: none
		slow      time.Duration
	}{
		{"passes", bed.Behaviour{}, "", 0},
		{"slow", bed.Behaviour{Delay: 300 * time.Millisecond}, "", 300 * time.Millisecond},
		{"403", bed.Behaviour{Status: 403}, "the front of the test bed answers with 403", 0},
		{"429", bed.Behaviour{Status: 429}, "the front of the test bed answers with 429", 0},
		{"hangs", bed.Behaviour{Hang: true}, "exceeded", 2 * time.Second},
		{"cut", bed.Behaviour{Cut: true}, "EOF|reset|broken pipe", 0},
		{"loses the answer", bed.Behaviour{LoseAnswer: true}, "EOF", 0},
		{"about others", bed.Behaviour{Status: 403, Only: func(r *http.Request) bool { return r.Method == http.MethodPatch }}, "", 0},
		{"passes again", bed.Behaviour{}, "", 0},
	} {
		f.Set(row.behaviour)
		before, began := asked(), time.Now()
		err := get()
		if took := time.Since(began); took < row.slow {
			t.Errorf("%s: the answer took %v, want %v or more", row.name, took, row.slow)
		}
		if row.want == "" && err != nil || row.want != "" && (err == nil || !regexp.MustCompile(row.want).MatchString(err.Error())) {
			t.Errorf("%s: error = %v, want %q", row.name, err, row.want)
		}
		if asked() == before && !row.behaviour.Cut { // where it may not have come so far
			t.Errorf("%s: the request was not counted", row.name)
		}
	}
	f.Set(bed.Behaviour{LoseAnswer: true, Only: func(r *http.Request) bool { return r.Method == http.MethodPatch }})
	if _, err := client.AppsV1().Deployments(ns).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`),
		meta.PatchOptions{}, "scale"); err == nil {
		t.Error("the client knows an answer that was lost")
	}
	if got := b.Replicas(ns, "web"); got != 2 {
		t.Errorf("replicas = %d, want 2: only the answer was lost", got)
	}
}

// comesBack proves that everything comes back when the API server does.
func comesBack(t *testing.T, b *bed.Bed) {
	ns := b.Namespace("outages")
	b.Deploy(bed.App{Namespace: ns, Name: "web", Replicas: 1})
	down := func() bool {
		_, err := b.TryKubectl(b.Admin, "", "get", "--raw=/readyz", "--request-timeout=1s")
		return err != nil
	}
	for n, row := range []struct {
		name     string
		away, be func()
	}{
		{"killed", b.KillAPIServer, b.StartAPIServer},
		{"stopped", b.StopAPIServer, b.StartAPIServer},
		{"paused", b.PauseAPIServer, b.ContinueAPIServer},
	} {
		row.away()
		if !down() {
			t.Errorf("the API server was %s, and is ready", row.name)
		}
		row.be()
		testbed.WaitFor(t, "the API server", limit, func() bool { return !down() })
		b.Kubectl("-n", ns, "scale", "deployment/web", fmt.Sprintf("--replicas=%d", n+2))
		b.WaitEndpoints(ns, "web", n+2)
	}
}

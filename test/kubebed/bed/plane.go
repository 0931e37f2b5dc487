package bed

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// The networks of the cluster, all of whose addresses are local in the
// namespace.
var (
	podNetwork     = netip.MustParsePrefix("10.244.0.0/16")
	serviceNetwork = netip.MustParsePrefix("10.96.0.0/16")
)

// Limits of time, far beyond what is usual: the machine may be busy.
const (
	startLimit = 2 * time.Minute
	callLimit  = time.Minute
)

// part is a running part of the control plane.
type part struct {
	options testbed.ProgramOptions
	process *testbed.Process
}

// plane is what all users of a Bed share.
type plane struct {
	// Admin is the path of a kubeconfig that may do everything.
	Admin string
	// Client speaks to the API server and may do everything. It may be used from
	// any goroutine.
	Client kubernetes.Interface

	dir       string // of everything that is written
	program   string // the control plane
	server    string // address of the API server
	authority []byte // certificate of the API server, PEM
	config    *rest.Config
	tokens    map[string]string // of users

	mutex sync.Mutex
	parts map[string]*part // by name
	order []string         // they were started in
	names map[string]int   // how often each was made unique
	never map[string]bool  // namespaces whose new pods never become ready

	ctx    context.Context // ends with the bed
	cancel context.CancelFunc
	others sync.WaitGroup // goroutines that end with ctx
}

// identities are the users that the API server knows by a token, with their
// groups.
func identities() map[string]string {
	return map[string]string{
		"admin":                       "system:masters",
		"system:" + controllerManager: "",
		"system:" + scheduler:         "",
		"system:kube-proxy":           "",
	}
}

// file returns the path of a file of the bed.
func (p *plane) file(name string) string { return filepath.Join(p.dir, name) }

// write writes a file of the bed and returns its path.
func (b *Bed) write(name, text string) string {
	b.t.Helper()
	if err := os.WriteFile(b.file(name), []byte(text), 0o600); err != nil {
		b.t.Fatalf("writing a file of the test bed: %v", err)
	}
	return b.file(name)
}

// prepare writes the tokens of all identities and the key of service accounts.
func (b *Bed) prepare() {
	b.t.Helper()
	var lines strings.Builder
	b.tokens = map[string]string{}
	for name, groups := range identities() {
		token := make([]byte, 16)
		_, _ = rand.Read(token) // never fails
		b.tokens[name] = hex.EncodeToString(token)
		fmt.Fprintf(&lines, "%s,%s,%[2]s,%q\n", b.tokens[name], name, groups)
	}
	b.write("tokens.csv", lines.String())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.t.Fatalf("making the key of service accounts: %v", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		b.t.Fatalf("making the key of service accounts: %v", err)
	}
	b.write("accounts.key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
}

// launch starts a part of the control plane.
func (b *Bed) launch(name string, args ...string) *testbed.Process {
	b.t.Helper()
	o := testbed.ProgramOptions{
		Path: b.program, Args: append([]string{name}, args...), Folder: b.dir, Output: b.file(name + ".log"), Preferred: true,
		Environment: []string{"KUBECONFIG="}, // that of whoever runs the tests is none of ours
	}
	b.mutex.Lock()
	if b.parts[name] == nil {
		b.order = append(b.order, name)
	}
	b.parts[name] = &part{options: o}
	b.mutex.Unlock()
	return b.relaunch(name)
}

// relaunch starts a part of the control plane again, as it was.
func (b *Bed) relaunch(name string) *testbed.Process {
	b.t.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	part := b.parts[name]
	process, err := testbed.Launch(part.options)
	if err != nil {
		b.t.Fatal(err)
	}
	part.process = process
	return process
}

// process returns the process of a part.
func (b *Bed) process(name string) *testbed.Process {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.parts[name].process
}

// await waits for a part to be ready.
func (b *Bed) await(name string, ready func() bool) {
	b.t.Helper()
	process := b.process(name)
	testbed.WaitFor(b.t, name+" to start", startLimit, func() bool { return !process.Running() || ready() })
	if !process.Running() {
		b.t.Fatalf("starting %s: it ended; it printed:\n%s", name, b.printed(name))
	}
}

// printed returns the end of what a part printed.
func (p *plane) printed(name string) string {
	const most = 4096
	text, err := os.ReadFile(p.file(name + ".log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// startEtcd starts etcd and waits for it, and returns its URL.
func (b *Bed) startEtcd() string {
	b.t.Helper()
	client, peer := testbed.FreeAddress(b.t), testbed.FreeAddress(b.t)
	b.launch("etcd", b.file("etcd"), "http://"+client, "http://"+peer)
	b.await("etcd", func() bool {
		c, err := net.Dial("tcp", client)
		return err == nil && c.Close() == nil
	})
	return "http://" + client
}

// startAPIServer starts the API server, waits for it, and makes the means to
// speak to it.
func (b *Bed) startAPIServer(etcd string) {
	b.t.Helper()
	b.server = testbed.FreeAddress(b.t)
	_, port, _ := net.SplitHostPort(b.server)
	b.launch(apiServer,
		"--etcd-servers="+etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+port,
		"--cert-dir="+b.file("certificates"),
		"--token-auth-file="+b.file("tokens.csv"),
		"--authorization-mode=Node,RBAC", "--anonymous-auth=false",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+b.file("accounts.key"),
		"--service-account-signing-key-file="+b.file("accounts.key"),
		"--service-cluster-ip-range="+serviceNetwork.String(),
		"--endpoint-reconciler-type=none",
		// It taints new nodes until a controller, which is not started, has seen
		// the kubelet's lease, which is not kept.
		"--disable-admission-plugins=TaintNodesByCondition",
		// How long it waits for watches when it is stopped.
		"--request-timeout=5s",
		"--profiling=false",
	)
	b.await(apiServer, b.apiServerReady)
	b.Admin = b.kubeconfig("admin", b.server, b.authority, b.tokens["admin"], "default")
	b.config = b.rest(b.Admin)
	client, err := kubernetes.NewForConfig(b.config)
	if err != nil {
		b.t.Fatalf("making a client of the API server: %v", err)
	}
	b.Client = client
}

// The parts that are spoken of more than once.
const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
)

// apiServerReady asks the API server whether it is ready. It takes a new
// connection for that, with the certificate that the server has made itself.
func (b *Bed) apiServerReady() bool {
	authority, err := os.ReadFile(b.file("certificates/apiserver.crt"))
	if err != nil {
		return false
	}
	b.authority = authority
	transport, err := rest.TransportFor(&rest.Config{
		BearerToken: b.tokens["admin"], TLSClientConfig: rest.TLSClientConfig{CAData: authority}, DisableCompression: true,
		Dial: (&net.Dialer{Timeout: time.Second}).DialContext,
	})
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+b.server+"/readyz", nil)
	if err != nil {
		return false
	}
	request.Close = true
	response, err := transport.RoundTrip(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// controllers are those that a churn may meet, and those that they need.
func controllers() []string {
	return []string{
		"clusterrole-aggregation-controller", "deployment-controller", "replicaset-controller", "replicationcontroller-controller",
		"statefulset-controller", "disruption-controller", "endpointslice-controller", "garbage-collector-controller",
		"horizontal-pod-autoscaler-controller", "namespace-controller", "serviceaccount-controller",
	}
}

// startControllers starts the controller manager and the scheduler. They are at
// work soon, which who makes something waits for anyway.
func (b *Bed) startControllers() {
	b.t.Helper()
	for name, flags := range map[string][]string{
		controllerManager: {
			"--controllers=" + strings.Join(controllers(), ","),
			"--use-service-account-credentials", "--service-account-private-key-file=" + b.file("accounts.key"),
			"--kube-api-qps=500", "--kube-api-burst=1000",
			"--endpointslice-updates-batch-period=0s", "--horizontal-pod-autoscaler-sync-period=1s",
		},
		scheduler: {"--kube-api-qps=500", "--kube-api-burst=1000"},
	} {
		path := b.kubeconfig(name, b.server, b.authority, b.tokens["system:"+name], "default")
		b.launch(name, append(flags,
			"--kubeconfig="+path, "--authentication-kubeconfig="+path, "--authorization-kubeconfig="+path,
			"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+port(testbed.FreeAddress(b.t)),
			"--cert-dir="+b.file(name), "--profiling=false")...)
	}
}

// restartControllers starts controller manager and scheduler anew.
func (b *Bed) restartControllers() {
	b.t.Helper()
	for _, name := range []string{controllerManager, scheduler} {
		if err := b.process(name).Kill(); err != nil {
			b.t.Fatal(err)
		}
		b.relaunch(name)
	}
}

// port returns the port of an address.
func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

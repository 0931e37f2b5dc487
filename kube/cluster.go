package kube

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// namespaceFile is where a pod finds its namespace
// (https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/).
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ClusterOptions is what a [Cluster] is made of.
type ClusterOptions struct {
	// Kubeconfig is the path of a file; empty: the cluster of the pod we run in.
	// A file that a user's tools would take by themselves is never taken.
	Kubeconfig string
	Context    string // of the file; empty: its current one
	// Namespace is our own one, where the Leases are. Empty: in a pod its own,
	// from POD_NAMESPACE or the service account, else that of the context.
	Namespace string
	// Pod is the name of the pod we run in, so that its workload is never
	// scaled. Empty: in a pod POD_NAME or the host name, else none.
	Pod string
	// Identity is who an instance is in elections, unique. Empty: the pod or host
	// and something random, another one for each Workload: one that ends and one
	// that begins are two, even in one process.
	Identity string
	Version  string // of steadyprobe, said to the server
	Logger   *slog.Logger
}

// Cluster is a Kubernetes or OpenShift cluster. It may be used concurrently,
// has no goroutine and needs no end.
type Cluster struct {
	client    *client
	namespace string
	pod       string
	identity  string
	logger    *slog.Logger
}

// Connect reads how to reach a cluster. It makes no call, so that its error is
// one of the options or of files, which it names.
func Connect(o ClusterOptions) (*Cluster, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	RedirectLogs(QuietLogs(o.Logger))
	var config *rest.Config
	var where string
	var err error
	if o.Kubeconfig != "" {
		config, where, err = o.fromFile()
	} else {
		config, where, err = o.fromPod()
	}
	if err != nil {
		return nil, err
	}
	switch wrong := validation.ValidateNamespaceName(o.Namespace, false); {
	case o.Namespace == "":
		return nil, errors.New("our own namespace: want one, the context has none")
	case len(wrong) > 0:
		return nil, fmt.Errorf("our own namespace %q: %s", o.Namespace, wrong[0])
	}
	config.UserAgent = strings.TrimSuffix("steadyprobe/"+o.Version, "/")
	config.WarningHandlerWithContext = warnings{o.Logger}
	c, err := newClient(config, where)
	if err != nil {
		return nil, fmt.Errorf("preparing to reach %s: %w", where, err)
	}
	return &Cluster{client: c, namespace: o.Namespace, pod: o.Pod, identity: o.Identity, logger: o.Logger}, nil
}

// fromFile reads the kubeconfig.
func (o *ClusterOptions) fromFile() (*rest.Config, string, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: o.Context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading kubeconfig %q: %w", o.Kubeconfig, err)
	}
	name := raw.CurrentContext
	if o.Context != "" {
		name = o.Context
	}
	switch _, there := raw.Contexts[name]; {
	case name == "":
		return nil, "", fmt.Errorf("reading kubeconfig %q: it has no current context, name one", o.Kubeconfig)
	case !there:
		return nil, "", fmt.Errorf("reading kubeconfig %q: it has no context %q", o.Kubeconfig, name)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading context %q of kubeconfig %q: %w", name, o.Kubeconfig, err)
	}
	if err := checkServer(config.Host); err != nil {
		return nil, "", fmt.Errorf("reading context %q of kubeconfig %q: %w", name, o.Kubeconfig, err)
	}
	if o.Namespace == "" {
		o.Namespace = raw.Contexts[name].Namespace
	}
	return config, fmt.Sprintf("cluster %s (context %q of kubeconfig %q)", serverOf(config.Host), name, o.Kubeconfig), nil
}

// fromPod reads what a pod is given.
func (o *ClusterOptions) fromPod() (*rest.Config, string, error) {
	if o.Context != "" {
		return nil, "", fmt.Errorf("context %q: want a kubeconfig that has it", o.Context)
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, "", errors.New("kubeconfig: want one, because this is no pod of a cluster")
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the service account of this pod: %w", err)
	}
	if o.Namespace == "" {
		o.Namespace = os.Getenv("POD_NAMESPACE")
	}
	if o.Namespace == "" {
		text, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, "", fmt.Errorf("reading our own namespace, which no option and no POD_NAMESPACE says: %w", err)
		}
		o.Namespace = strings.TrimSpace(string(text))
	}
	if o.Pod == "" {
		o.Pod = os.Getenv("POD_NAME")
	}
	if o.Pod == "" {
		o.Pod, _ = os.Hostname() // without one there is nothing to compare
	}
	return config, fmt.Sprintf("cluster %s (of this pod)", serverOf(config.Host)), nil
}

// newIdentity returns one for a workload.
func (c *Cluster) newIdentity() (string, error) {
	if c.identity != "" {
		return c.identity, nil
	}
	name := c.pod
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("naming this instance: %w", err)
		}
		name = host
	}
	return name + "_" + strings.ToLower(rand.Text()[:8]), nil
}

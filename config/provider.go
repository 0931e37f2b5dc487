package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Embedded says that a churn scales the backends of the demo, which are part
// of the process. It has no settings. Only the demo has such backends.
type Embedded struct{}

// Kubernetes says which workload of a cluster a churn scales.
type Kubernetes struct {
	Namespace       string `yaml:"namespace"`        // one of limits.churn_namespaces
	Workload        string `yaml:"workload"`         // KIND/NAME or KIND.GROUP/NAME, see Kind and Object
	Service         string `yaml:"service"`          // whose endpoints say when a step has converged; empty: Selector
	Selector        string `yaml:"selector"`         // labels of the EndpointSlices, instead of the service
	Kubeconfig      string `yaml:"kubeconfig"`       // file, see KubeconfigFile; empty: the cluster that the process runs in
	Context         string `yaml:"context"`          // of the kubeconfig; empty: its current one
	AllowAutoscaler bool   `yaml:"allow_autoscaler"` // churn although an autoscaler scales the workload too
	Lease           Lease  `yaml:"lease"`

	folder string // that a relative path starts at
}

// Lease says where instances agree on which of them churns, and where the note
// of what is to be put back is kept.
type Lease struct {
	Namespace string        `yaml:"namespace"` // empty: the one that the process runs in, or that of the kubeconfig's context
	Duration  time.Duration `yaml:"duration"`  // after which another instance takes over from one that has vanished
}

// KubeconfigFile returns the path of the kubeconfig, empty where there is none.
func (k *Kubernetes) KubeconfigFile() string {
	if k.Kubeconfig == "" {
		return ""
	}
	return within(k.folder, k.Kubeconfig)
}

// Kind returns the kind of the workload as it was written, with the group
// where there is one.
func (k *Kubernetes) Kind() string { kind, _, _ := strings.Cut(k.Workload, "/"); return kind }

// Object returns the name of the workload.
func (k *Kubernetes) Object() string { _, name, _ := strings.Cut(k.Workload, "/"); return name }

// canonical returns the workload so that the usual ways of writing its kind
// are one. Others are told apart by the cluster, which lets only one churn have
// a workload.
func (k *Kubernetes) canonical() string {
	kind := strings.ToLower(k.Kind())
	for _, names := range [][]string{
		{"deployment", "deployments", "deploy", "deployment.apps", "deployments.apps"},
		{"statefulset", "statefulsets", "sts", "statefulset.apps", "statefulsets.apps"},
		{"replicaset", "replicasets", "rs", "replicaset.apps", "replicasets.apps"},
		{"deploymentconfig", "deploymentconfigs", "dc", "deploymentconfig.apps.openshift.io", "deploymentconfigs.apps.openshift.io"},
	} {
		if slices.Contains(names, kind) {
			kind = names[0]
		}
	}
	return kind + "/" + k.Object()
}

// HAProxy says which servers a churn takes in and out, over the runtime API.
type HAProxy struct {
	Socket  string `yaml:"socket"`  // path of a unix socket, or HOST:PORT
	Backend string `yaml:"backend"` // whose servers
	Mode    string `yaml:"mode"`    // how a server is taken out: "drain", "maint" or "weight"
}

// Command says which programs scale. Each is a program and its arguments, run
// without a shell.
type Command struct {
	Scale    Argv          `yaml:"scale"`    // its PlaceholderReplicas are replaced
	Read     Argv          `yaml:"read"`     // prints how many replicas there are
	Kill     Argv          `yaml:"kill"`     // its PlaceholderKill are replaced; empty: none can be killed
	Interval time.Duration `yaml:"interval"` // between two runs of Read

	folder string // that a relative path of a program starts at
}

// What stands in the arguments of a [Command] for numbers.
const (
	PlaceholderReplicas = "{replicas}"
	PlaceholderKill     = "{kill}"
)

// Argv is a program and its arguments. Whatever prints, logs or marshals it
// shows the program and the placeholders only, because arguments may hold what
// nobody should see.
type Argv []Secret

// text returns the program and the arguments, apart from each other.
func (a Argv) text() string {
	all := make([]string, len(a))
	for i := range a {
		all[i] = a[i].Reveal()
	}
	return strings.Join(all, "\x00")
}

// shown returns what may be shown of each.
func (a Argv) shown() []string {
	all := make([]string, len(a))
	for i := range a {
		if all[i] = a[i].Reveal(); i > 0 {
			all[i] = maskedArgument(all[i])
		}
	}
	return all
}

// Program returns the program, which may be shown.
func (a Argv) Program() string {
	if len(a) == 0 {
		return ""
	}
	return a[0].Reveal()
}

// maskedArgument masks all of an argument but its placeholders.
func maskedArgument(text string) string {
	var b strings.Builder
	for text != "" {
		at, found := len(text), ""
		for _, p := range []string{PlaceholderReplicas, PlaceholderKill} {
			if i := strings.Index(text, p); i >= 0 && i < at {
				at, found = i, p
			}
		}
		if at > 0 {
			b.WriteString(masked)
		}
		b.WriteString(found)
		text = text[at+len(found):]
	}
	return b.String()
}

// Reveal returns one of the programs with its arguments, as they are to be run.
// They must not be logged or put into an error.
func (c *Command) Reveal(a Argv) []string {
	all := make([]string, len(a))
	for i := range a {
		all[i] = a[i].Reveal()
	}
	if len(all) > 0 && strings.ContainsRune(all[0], filepath.Separator) {
		all[0] = within(c.folder, all[0])
	}
	return all
}

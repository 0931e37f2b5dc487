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

// Bounds of what is asked how often, and of leases.
const (
	leastInterval = 50 * time.Millisecond
	mostInterval  = 10 * time.Minute
	leastLease    = 5 * time.Second
	mostLease     = 10 * time.Minute
	mostArguments = 1000
)

// The defaults of what a provider does not say.
const (
	defaultLease    = 15 * time.Second
	defaultInterval = time.Second
	defaultMode     = "drain"
)

// provider checks that the churn says once what it scales, and how.
func (c *checker) provider(churn *Churn, files *files) {
	var there []string
	for _, p := range []struct {
		name  string
		there bool
	}{
		{"embedded", churn.Embedded != nil},
		{"kubernetes", churn.Kubernetes != nil},
		{"haproxy", churn.HAProxy != nil},
		{"command", churn.Command != nil},
	} {
		if p.there || c.marks.bad[p.name] {
			there = append(there, p.name)
		}
	}
	switch {
	case len(there) == 0 && c.good(""):
		p := c.place("")
		c.report.problem(p.line, p.block, "has no provider; write kubernetes, haproxy or command to say what it scales, or embedded: {} for the backends of steadyprobe demo")
	case len(there) > 1:
		c.fail(there[1], "cannot go together with %s; write one provider", there[0])
		return
	}
	if k := churn.Kubernetes; k != nil {
		c.kubernetes(k, files)
	}
	if h := churn.HAProxy; h != nil {
		c.haproxy(h)
	}
	if command := churn.Command; command != nil {
		command.folder = files.folder
		c.command(command)
	}
}

func (c *checker) kubernetes(k *Kubernetes, files *files) {
	if !c.good("kubernetes") {
		return
	}
	k.folder = files.folder
	if at := "kubernetes.namespace"; c.good(at) {
		switch {
		case k.Namespace == "":
			c.fail(at, "is missing; write the namespace of the workload")
		case !label(k.Namespace):
			c.fail(at, "%s is not the name of a namespace; write lower-case letters, digits and -, at most 63", quote(k.Namespace))
		}
	}
	c.workloadName(k)
	switch service, selector := k.Service != "", k.Selector != ""; {
	case !c.good("kubernetes.service", "kubernetes.selector"):
	case service && selector:
		c.fail("kubernetes.selector", "cannot go together with service; write one of them")
	case !service && !selector:
		c.fail("kubernetes.service", "is missing; write the Service whose endpoints the door routes to, or selector with the labels of its EndpointSlices: they say when a step has converged")
	case service && !label(k.Service):
		c.fail("kubernetes.service", "%s is not the name of a Service; write lower-case letters, digits and -, at most 63", quote(k.Service))
	}
	files.read(c, "kubernetes.kubeconfig", k.Kubeconfig)
	if k.Context != "" && k.Kubeconfig == "" && c.good("kubernetes.kubeconfig", "kubernetes.context") {
		c.fail("kubernetes.context", "is one of a kubeconfig, and none is written; write kubeconfig, or remove it")
	}
	if n := k.Lease.Namespace; n != "" && !label(n) && c.good("kubernetes.lease.namespace") {
		c.fail("kubernetes.lease.namespace", "%s is not the name of a namespace; write lower-case letters, digits and -, at most 63", quote(n))
	}
	if at := "kubernetes.lease.duration"; !c.written(at) {
		k.Lease.Duration = defaultLease
	} else if c.good(at) {
		c.between(at, k.Lease.Duration, leastLease, mostLease)
		if c.good(at) && k.Lease.Duration%time.Second != 0 {
			c.fail(at, "%s is not whole seconds, which is all that a Lease can say; write for example %s", durationText(k.Lease.Duration), durationText(k.Lease.Duration.Round(time.Second)))
		}
	}
}

func (c *checker) workloadName(k *Kubernetes) {
	const at = "kubernetes.workload"
	if !c.good(at) {
		return
	}
	kind, name, both := strings.Cut(k.Workload, "/")
	switch {
	case k.Workload == "":
		c.fail(at, "is missing; write KIND/NAME such as deployment/web")
	case !both || kind == "" || strings.Contains(name, "/"):
		c.fail(at, "%s is not KIND/NAME; write for example deployment/web or rollout.argoproj.io/web", quote(k.Workload))
	case !subdomain(strings.ToLower(kind)):
		c.fail(at, "%s is not a kind; write for example deployment, statefulset or deploymentconfig.apps.openshift.io", quote(kind))
	case !subdomain(name):
		c.fail(at, "%s is not the name of a workload; write lower-case letters, digits, - and .", quote(name))
	}
}

// label reports whether text is a name as of RFC 1123 without dots, which most
// objects of a cluster need.
func label(text string) bool {
	odd := func(r rune) bool { return r > '~' || !alphanumeric(byte(r)) && r != '-' }
	return text != "" && len(text) <= 63 && text[0] != '-' && text[len(text)-1] != '-' &&
		strings.ToLower(text) == text && !strings.ContainsFunc(text, odd)
}

// subdomain reports whether text is labels with dots between them, as RFC 1123
// has names.
func subdomain(text string) bool {
	if len(text) > 253 {
		return false
	}
	for part := range strings.SplitSeq(text, ".") {
		if !label(part) {
			return false
		}
	}
	return true
}

func (c *checker) haproxy(h *HAProxy) {
	if !c.good("haproxy") {
		return
	}
	if at := "haproxy.socket"; c.good(at) {
		switch {
		case h.Socket == "":
			c.fail(at, "is missing; write the path of the stats socket, such as /run/haproxy/admin.sock, or HOST:PORT; it must be of level admin")
		case !filepath.IsAbs(h.Socket) && checkHostPort(h.Socket) != nil:
			c.fail(at, "%s is neither an absolute path nor HOST:PORT; write for example /run/haproxy/admin.sock or 127.0.0.1:9999", quote(h.Socket))
		}
	}
	if at := "haproxy.backend"; c.good(at) {
		switch {
		case h.Backend == "":
			c.fail(at, "is missing; write the name of the backend whose servers are taken in and out")
		case !haproxyName(h.Backend):
			c.fail(at, "%s is not the name of a backend; write letters, digits and - _ . :", quote(h.Backend))
		}
	}
	if at := "haproxy.mode"; !c.written(at) {
		h.Mode = defaultMode
	} else if c.good(at) && !slices.Contains([]string{"drain", "maint", "weight"}, h.Mode) {
		c.fail(at, "%s is unknown; write drain, maint or weight", quote(h.Mode))
	}
}

// haproxyName reports whether text may name a proxy (HAProxy 2.6 configuration
// manual, section 4): what is not among these would end a command or begin
// another.
func haproxyName(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r > '~' || !alphanumeric(byte(r)) && !strings.ContainsRune("-_.:", r)
	})
}

func (c *checker) command(command *Command) {
	if !c.good("command") {
		return
	}
	c.argv("command.scale", command.Scale, PlaceholderReplicas, "write the program that scales with its arguments, such as [/usr/local/bin/scale-backends, \"{replicas}\"]")
	c.argv("command.read", command.Read, "", "write the program that prints how many replicas there are, such as [/usr/local/bin/count-backends]")
	if len(command.Kill) > 0 {
		c.argv("command.kill", command.Kill, PlaceholderKill, "")
	}
	if at := "command.interval"; !c.written(at) {
		command.Interval = defaultInterval
	} else if c.good(at) {
		c.between(at, command.Interval, leastInterval, mostInterval)
	}
}

// argv checks a program and its arguments, one of which must have the
// placeholder, where there is one.
func (c *checker) argv(path string, argv Argv, placeholder, remedy string) {
	if !c.goodList(path, len(argv)) {
		return
	}
	has := func(text Secret) bool { return strings.Contains(text.Reveal(), placeholder) }
	switch {
	case len(argv) == 0:
		c.fail(path, "is missing; %s", remedy)
	case argv[0].Empty():
		c.fail(path, "begins with an empty text where the program belongs; write its path")
	case len(argv) > mostArguments:
		c.fail(path, "has more than %d arguments; write fewer", mostArguments)
	case slices.ContainsFunc(argv, func(s Secret) bool { return strings.ContainsRune(s.Reveal(), 0) }):
		c.fail(path, "has a NUL, which no argument can carry; remove it")
	case placeholder != "" && !slices.ContainsFunc(argv[1:], has):
		c.fail(path, "does not say %s in any argument; write it where the number belongs", placeholder)
	}
}

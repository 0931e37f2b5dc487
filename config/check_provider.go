package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

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

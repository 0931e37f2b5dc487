package config

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Churn is a cycle of replica counts applied to a backend workload, by the one
// provider that is not nil. Printing or logging it shows no secret.
type Churn struct {
	Name        string        `yaml:"name"`       // unique among the churns
	Embedded    *Embedded     `yaml:"embedded"`   // scales the backends of the demo
	Kubernetes  *Kubernetes   `yaml:"kubernetes"` // scales a workload of a cluster
	HAProxy     *HAProxy      `yaml:"haproxy"`    // takes servers of a backend in and out
	Command     *Command      `yaml:"command"`    // runs programs that scale
	Steps       []ChurnStep   `yaml:"steps"`      // in their order, then from the first again; at least one
	Jitter      time.Duration `yaml:"jitter"`     // each hold is longer by a random time up to it; 0 or more
	MaxCycles   int           `yaml:"max_cycles"` // the churn stops after so many; 0: it does not
	ActiveHours *ActiveHours  `yaml:"active_hours"`
	Settle      time.Duration `yaml:"settle"`  // ready endpoints must match for as long before a step has settled; 0 or more
	DryRun      bool          `yaml:"dry_run"` // say what would be done, and do nothing
	Floor       *int          `yaml:"floor"`   // fewest replicas; nil: half the baseline, rounded up
	Ceiling     *int          `yaml:"ceiling"` // most replicas; nil: twice the baseline
	AbortWhen   AbortWhen     `yaml:"abort_when"`
	Cooldown    time.Duration `yaml:"cooldown"`    // from a pause for what it did to the traffic, or for a step that got stuck, to the next try; 0: none
	StuckAfter  time.Duration `yaml:"stuck_after"` // a step that has not converged by then is given up
}

// ChurnStep is one step of a churn. One of Replicas and Kill is written.
type ChurnStep struct {
	Replicas *int          `yaml:"replicas"`       // how many there are to be, 0 or more; nil: some are killed
	Kill     int           `yaml:"kill,omitempty"` // how many are stopped without drain; 0: none
	Hold     time.Duration `yaml:"hold"`           // from the scale call to the next step at the earliest, above 0
}

// AbortWhen says what a churn may do to the traffic of the targets that name
// it.
type AbortWhen struct {
	Failures Share         `yaml:"failures"` // of the requests that end within the window; more than that ends the churn
	Window   time.Duration `yaml:"window"`   // above 0
}

// Bounds beyond which a value of a churn is a typing error.
const (
	mostReplicas    = 10_000
	mostSettle      = time.Hour
	mostCycles      = 1_000_000
	leastWindow     = time.Second
	mostWindow      = time.Hour
	leastStuckAfter = time.Second
)

// builtInChurn returns the settings of a churn that says nothing. It has no
// name, provider and steps.
func builtInChurn() Churn {
	return Churn{
		Settle:     5 * time.Second,
		DryRun:     true,
		AbortWhen:  AbortWhen{Failures: mustShare("5%"), Window: 30 * time.Second},
		Cooldown:   10 * time.Minute,
		StuckAfter: 5 * time.Minute,
	}
}

// Equal reports whether both churns say the same.
func (c *Churn) Equal(o *Churn) bool { return reflect.DeepEqual(c, o) }

// churns decodes and checks the churns, and returns the checker of each.
func (p *parser) churns(c *checker, list *yaml.Node, config *Config) []*checker {
	switch {
	case list.Kind == 0 || isNull(list):
		return nil
	case list.Kind != yaml.SequenceNode:
		c.fail("churns", "is %s where a list belongs; write each churn as - name: NAME with its settings below, or remove it", described(list))
		return nil
	}
	checkers := make([]*checker, len(list.Content))
	config.Churns = make([]Churn, len(list.Content))
	for i, item := range list.Content {
		if p.report.nodes >= p.report.most {
			c.marks.bad["churns"] = true // reported
			return nil
		}
		config.Churns[i] = builtInChurn()
		checkers[i] = p.churn(item, i, &config.Churns[i])
	}
	uniqueNames(churnNames(config.Churns), checkers)
	uniqueWorkloads(config.Churns, checkers)
	consents(c, &config.Limits, config.Churns, checkers)
	return checkers
}

func (p *parser) churn(item *yaml.Node, i int, churn *Churn) *checker {
	c := &checker{report: p.report, marks: newMarks(), block: "churns[" + strconv.Itoa(i) + "]"}
	d := decoder{report: p.report, marks: c.marks, block: c.block}
	d.decode(item, item.Line, "", reflect.ValueOf(churn).Elem())
	if isNull(follow(item)) {
		d.fail(item.Line, "", "has no value; write name, a provider and steps, or remove the line")
	}
	if c.marks.bad[""] {
		return c
	}
	if c.good("name") {
		c.name(churn.Name, "shop-backend", "a name cannot have")
	}
	c.provider(churn, p.files)
	c.churnBounds(churn)
	c.steps(churn)
	c.between("jitter", churn.Jitter, 0, mostDuration)
	if n := churn.MaxCycles; n < 0 || n > mostCycles {
		c.fail("max_cycles", "%d is out of range; write how often the steps are gone through, up to %d, or 0 for no end", n, mostCycles)
	}
	if h := churn.ActiveHours; h != nil {
		c.activeHours(h)
	}
	c.between("settle", churn.Settle, 0, mostSettle)
	c.between("abort_when.window", churn.AbortWhen.Window, leastWindow, mostWindow)
	c.between("cooldown", churn.Cooldown, 0, mostAge)
	c.between("stuck_after", churn.StuckAfter, leastStuckAfter, mostDuration)
	return c
}

func (c *checker) steps(churn *Churn) {
	if len(churn.Steps) == 0 && c.good("steps") {
		c.fail("steps", "there is none; write at least one such as {replicas: 4, hold: 10s}")
	}
	for i := range churn.Steps {
		at := "steps[" + strconv.Itoa(i) + "]"
		if !c.good(at) {
			continue
		}
		if kill := join(at, "kill"); c.written(kill) {
			c.kill(churn, at, kill, &churn.Steps[i])
		} else {
			c.replicas(churn, join(at, "replicas"), &churn.Steps[i])
		}
		if hold := join(at, "hold"); !c.written(hold) {
			c.fail(hold, "is missing; write how long after the scale call the next step may come, such as 10s")
		} else if c.good(hold) {
			c.between(hold, churn.Steps[i].Hold, time.Millisecond, mostDuration)
		}
	}
}

// replicas checks a step that says how many replicas there are to be.
func (c *checker) replicas(churn *Churn, path string, step *ChurnStep) {
	switch {
	case !c.written(path):
		c.fail(path, "is missing; write how many replicas there are to be, from 0 to %d", mostReplicas)
		return
	case !c.good(path) || step.Replicas == nil:
		return
	}
	switch n := *step.Replicas; {
	case n < 0 || n > mostReplicas:
		c.fail(path, "%d is out of range; write how many replicas there are to be, from 0 to %d", n, mostReplicas)
	case churn.Floor != nil && n < *churn.Floor && c.good("floor"):
		c.fail(path, "%d is below floor: %d; write more, or a lower floor", n, *churn.Floor)
	case churn.Ceiling != nil && n > *churn.Ceiling && c.good("ceiling"):
		c.fail(path, "%d is above ceiling: %d; write fewer, or a higher ceiling", n, *churn.Ceiling)
	}
}

// kill checks a step that stops backends without drain.
func (c *checker) kill(churn *Churn, at, path string, step *ChurnStep) {
	switch {
	case c.written(join(at, "replicas")):
		c.fail(at, "says both replicas and kill; write two steps")
	case !c.good(path):
	case step.Kill < 1 || step.Kill > mostReplicas:
		c.fail(path, "%d is out of range; write how many backends are stopped without drain, from 1 to %d", step.Kill, mostReplicas)
	case churn.Kubernetes != nil:
		c.fail(path, "cannot be had of kubernetes: a controller replaces a killed pod at once, and the shipped Role does not let the probe delete pods; write replicas")
	case churn.Command != nil && len(churn.Command.Kill) == 0 && c.good("command"):
		c.fail(path, "needs a program that does it; write command.kill, such as [/usr/local/bin/kill-backends, \"%s\"]", PlaceholderKill)
	}
}

// churnBounds checks the fewest and the most replicas.
func (c *checker) churnBounds(churn *Churn) {
	for _, bound := range []struct {
		path  string
		value *int
	}{{"floor", churn.Floor}, {"ceiling", churn.Ceiling}} {
		if n := bound.value; n != nil && c.good(bound.path) && (*n < 0 || *n > mostReplicas) {
			c.fail(bound.path, "%d is out of range; write a number of replicas from 0 to %d", *n, mostReplicas)
		}
	}
	if f, most := churn.Floor, churn.Ceiling; f != nil && most != nil && *f > *most && c.good("floor", "ceiling") {
		c.fail("floor", "%d is above ceiling: %d; write a lower floor or a higher ceiling", *f, *most)
	}
}

// churned checks the churns that targets and profiles name against those that
// there are, each with its checker.
func churned(config *Config, targets, profiles, churns []*checker) {
	there, named := map[string]bool{}, map[string]bool{}
	var names []string // that are worth suggesting
	for i := range config.Churns {
		name := config.Churns[i].Name
		there[name] = true
		if churns[i].good("name") {
			names = append(names, name)
		}
	}
	if there[""] {
		return // reported; it may be the one that a target means
	}
	check := func(c *checker, name string) {
		named[name] = true
		if name != "" && !there[name] && c.good("churn") {
			c.fail("churn", "%s is not the name of a churn of this file; %s", quote(name), instead(name, names, "churns"))
		}
	}
	for i, c := range targets {
		check(c, config.Targets[i].Churn)
	}
	for i, c := range profiles {
		check(c, config.Profiles[i].Churn)
	}
	for i, c := range churns {
		if name := config.Churns[i].Name; c.good("name") && !named[name] {
			c.warn("", "no target names it, so that nobody sees what it does to a door; write churn: %s in a target", name)
		}
	}
}

// instead says which of the names of a list to write instead of an unknown one,
// or to add it there.
func instead(name string, names []string, list string) string {
	const most = 10 // that are worth reading
	if len(names) == 0 || len(names) > most {
		return "add it to " + list + ", or remove the line"
	}
	return suggestion(name, names)
}

func churnNames(churns []Churn) []string {
	names := make([]string, len(churns))
	for i := range churns {
		names[i] = churns[i].Name
	}
	return names
}

// uniqueWorkloads refuses two churns of one workload, which would undo each
// other's steps.
func uniqueWorkloads(churns []Churn, checkers []*checker) {
	first := map[string]int{}
	for i, c := range checkers {
		provider, key := churns[i].Scales()
		if provider == "" || !c.good(provider) {
			continue
		}
		key = provider + "\x00" + key
		if before, twice := first[key]; twice {
			c.fail(provider, "is also what %s in line %d scales, and two churns would undo each other's steps; write another workload, or one churn with all steps",
				checkers[before].block, checkers[before].place(provider).line)
			continue
		}
		first[key] = i
	}
}

// Scales returns the provider, and what tells what it scales from what others of
// the same provider scale: two churns for which both are the same would undo
// each other's steps. Both are empty where that is not known. It must not be
// shown.
func (c *Churn) Scales() (provider, what string) {
	switch {
	case c.Embedded != nil:
		return "embedded", ""
	case c.Kubernetes != nil && c.Kubernetes.Namespace != "" && c.Kubernetes.Workload != "":
		k := c.Kubernetes
		return "kubernetes", strings.Join([]string{k.Kubeconfig, k.Context, k.Namespace, k.canonical()}, "\x00")
	case c.HAProxy != nil && c.HAProxy.Socket != "" && c.HAProxy.Backend != "":
		return "haproxy", c.HAProxy.Socket + "\x00" + c.HAProxy.Backend
	case c.Command != nil && len(c.Command.Scale) > 0 && !strings.Contains(c.Command.Scale.text(), masked): // what is shown instead tells none apart
		return "command", c.Command.Scale.text()
	}
	return "", ""
}

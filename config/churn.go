package config

import (
	"reflect"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"
)

// Churn is a cycle of replica counts applied to a backend workload.
type Churn struct {
	Name       string        `yaml:"name"`       // unique among the churns
	Embedded   *Embedded     `yaml:"embedded"`   // scales the backends of the demo; nil: another provider does
	Kubernetes *Kubernetes   `yaml:"kubernetes"` // nil in this version
	Steps      []ChurnStep   `yaml:"steps"`      // in their order, then from the first again; at least one
	Settle     time.Duration `yaml:"settle"`     // ready endpoints must match for as long before a step has settled; 0 or more
	DryRun     bool          `yaml:"dry_run"`    // say what would be done, and do nothing
}

// ChurnStep is one replica count of a churn.
type ChurnStep struct {
	Replicas int           `yaml:"replicas"` // 0 or more
	Hold     time.Duration `yaml:"hold"`     // from the scale call to the next step at the earliest, above 0
}

// Embedded says that a churn scales the backends of the demo, which are part
// of the process. It has no settings. Only the demo has such backends.
type Embedded struct{}

// Kubernetes says which workload a churn scales. This version has no use for
// it.
type Kubernetes struct {
	Namespace string `yaml:"namespace"`
	Workload  string `yaml:"workload"` // KIND/NAME
	Service   string `yaml:"service"`  // whose endpoints say when a step has converged
}

// Bounds beyond which a value of a churn is a typing error.
const (
	mostReplicas = 10_000
	mostSettle   = time.Hour
)

// builtInChurn returns the settings of a churn that says nothing. It has no
// name, provider and steps.
func builtInChurn() Churn { return Churn{Settle: 5 * time.Second, DryRun: true} }

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
	c.provider(churn)
	c.steps(churn.Steps)
	c.between("settle", churn.Settle, 0, mostSettle)
	return c
}

// provider checks that the churn says once what it scales.
func (c *checker) provider(churn *Churn) {
	switch {
	case churn.Kubernetes != nil:
		c.laterList("kubernetes", 1)
	case churn.Embedded == nil && c.good("embedded", "kubernetes"):
		c.fail("embedded", "is missing; write embedded: {} for the backends of steadyprobe demo, the only ones that this version can scale")
	}
}

func (c *checker) steps(steps []ChurnStep) {
	if len(steps) == 0 && c.good("steps") {
		c.fail("steps", "there is none; write at least one such as {replicas: 4, hold: 10s}")
	}
	for i := range steps {
		at := "steps[" + strconv.Itoa(i) + "]"
		if !c.good(at) {
			continue
		}
		if replicas := join(at, "replicas"); !c.written(replicas) {
			c.fail(replicas, "is missing; write how many replicas there are to be, from 0 to %d", mostReplicas)
		} else if n := steps[i].Replicas; c.good(replicas) && (n < 0 || n > mostReplicas) {
			c.fail(replicas, "%d is out of range; write how many replicas there are to be, from 0 to %d", n, mostReplicas)
		}
		if hold := join(at, "hold"); !c.written(hold) {
			c.fail(hold, "is missing; write how long after the scale call the next step may come, such as 10s")
		} else if c.good(hold) {
			c.between(hold, steps[i].Hold, time.Millisecond, mostDuration)
		}
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

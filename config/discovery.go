package config

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"
)

// Discovery is a source of targets outside of the file. What its mechanisms and
// relabel_configs say is as in a configuration of Prometheus, and is read by
// who discovers.
type Discovery struct {
	Name       string        `yaml:"name"` // unique among the sources
	File       Settings      `yaml:"file_sd_configs"`
	HTTP       Settings      `yaml:"http_sd_configs"`
	DNS        Settings      `yaml:"dns_sd_configs"`
	Kubernetes Settings      `yaml:"kubernetes_sd_configs"`
	Relabel    Settings      `yaml:"relabel_configs"`
	Profile    string        `yaml:"profile"` // name of the profile of its targets
	Allow      Allow         `yaml:"allow"`
	MaxTargets int           `yaml:"max_targets"` // most targets, at least 1
	KeepLast   time.Duration `yaml:"keep_last"`   // how long the last targets are kept when the source has none any more
}

// relabelConfigs is the name of the settings that hold no secret.
const relabelConfigs = "relabel_configs"

// Bounds beyond which a value of a source is a typing error.
const (
	mostDiscovered = 100_000
	mostKeepLast   = 7 * 24 * time.Hour
)

// builtInDiscovery returns the settings of a source that says nothing. It has
// no name, mechanism and profile, and admits nothing.
func builtInDiscovery() Discovery { return Discovery{MaxTargets: 100, KeepLast: 5 * time.Minute} }

// Mechanisms returns the settings of what finds targets by the names that they
// have in the file, in the order of the schema.
func (d *Discovery) Mechanisms() (names []string, settings []Settings) {
	return []string{"file_sd_configs", "http_sd_configs", "dns_sd_configs", "kubernetes_sd_configs"},
		[]Settings{d.File, d.HTTP, d.DNS, d.Kubernetes}
}

// CheckLabel returns why a target cannot carry a label of this name, or nil.
func CheckLabel(name string) error {
	r := &report{}
	c := &checker{report: r, marks: newMarks()}
	c.labels(map[string]string{name: ""})
	if len(r.problems) == 0 {
		return nil
	}
	return errors.New(r.problems[0].Text)
}

// ProfileNamed returns a profile by its name, nil where there is none.
func (c *Config) ProfileNamed(name string) *Profile {
	for i := range c.Profiles {
		if c.Profiles[i].Name == name {
			return &c.Profiles[i]
		}
	}
	return nil
}

// discovery decodes and checks the sources against the profiles, each with its
// checker.
func (p *parser) discovery(c *checker, list *yaml.Node, config *Config, profiles []*checker) {
	switch {
	case list.Kind == 0 || isNull(list):
		return
	case list.Kind != yaml.SequenceNode:
		c.fail("discovery", "is %s where a list belongs; write each source as - name: NAME with its settings below, or remove it", described(list))
		return
	}
	checkers := make([]*checker, len(list.Content))
	names := make([]string, len(list.Content))
	config.Discovery = make([]Discovery, len(list.Content))
	for i, item := range list.Content {
		if p.report.nodes >= p.report.most {
			return // reported
		}
		config.Discovery[i] = builtInDiscovery()
		checkers[i] = p.source(item, i, &config.Discovery[i])
		names[i] = config.Discovery[i].Name
	}
	uniqueNames(names, checkers)
	if c.good("profiles") {
		profiled(config, checkers, profiles)
	}
}

func (p *parser) source(item *yaml.Node, i int, d *Discovery) *checker {
	c := &checker{report: p.report, marks: newMarks(), block: "discovery[" + strconv.Itoa(i) + "]"}
	decoder := decoder{report: p.report, marks: c.marks, block: c.block}
	decoder.decode(item, item.Line, "", reflect.ValueOf(d).Elem())
	if isNull(follow(item)) {
		decoder.fail(item.Line, "", "has no value; write name, a mechanism such as file_sd_configs, profile and allow, or remove the line")
	}
	if c.marks.bad[""] {
		return c
	}
	if c.good("name") {
		c.name(d.Name, "shop-ingresses", "a name cannot have")
	}
	c.mechanisms(d)
	c.form(relabelConfigs, d.Relabel)
	if d.Profile == "" && c.good("profile") {
		c.fail("profile", "is missing or empty; write the name of one of profiles, which holds the traffic settings of the targets")
	}
	c.allow(&d.Allow)
	if d.MaxTargets < 1 || d.MaxTargets > mostDiscovered {
		c.fail("max_targets", "%d is out of range; write how many targets there may be, from 1 to %d", d.MaxTargets, mostDiscovered)
	}
	c.between("keep_last", d.KeepLast, 0, mostKeepLast)
	return c
}

// mechanisms checks that something finds targets.
func (c *checker) mechanisms(d *Discovery) {
	names, settings := d.Mechanisms()
	there := 0
	for i, s := range settings {
		there += c.form(names[i], s)
	}
	if there == 0 && c.good(names...) {
		c.fail("", "has nothing that finds targets; write file_sd_configs, http_sd_configs, dns_sd_configs or kubernetes_sd_configs with a list as in Prometheus")
	}
}

// form checks that settings are a list of mappings, as Prometheus has them, and
// returns how many.
func (c *checker) form(path string, s Settings) int {
	if !s.Written() || !c.good(path) {
		return 0
	}
	if s.node.Kind != yaml.SequenceNode {
		c.fail(path, "is %s where a list belongs; write each as - KEY: VALUE, as in Prometheus", described(s.node))
		return 0
	}
	for i, item := range s.node.Content {
		if item.Kind != yaml.MappingNode {
			at := path + "[" + strconv.Itoa(i) + "]"
			c.marks.at[at] = place{line: item.Line, block: c.block}
			c.fail(at, "is %s where a mapping belongs; write KEY: VALUE lines below it", described(item))
		}
	}
	return len(s.node.Content)
}

func (c *checker) allow(a *Allow) {
	if len(a.Hosts) == 0 && len(a.Networks) == 0 && c.good("allow", "allow.hosts", "allow.networks") {
		c.fail("allow", "admits nothing: discovered names are written by others; write hosts: [example.com] for names that may be probed, networks: [10.0.0.0/8] for addresses, or both")
	}
	if a.MaxRate.Max() {
		c.fail("allow.max_rate", "max is a closed loop, which discovered targets cannot have; write requests per second")
	}
	if a.MaxConnections < 0 || a.MaxConnections > mostConnections {
		c.fail("allow.max_connections", "%d is out of range; write how many a label may ask for, up to %d", a.MaxConnections, mostConnections)
	}
}

// profiled checks the profiles that sources name against those that there are.
func profiled(config *Config, sources, profiles []*checker) {
	var names []string
	for i := range config.Profiles {
		if config.Profiles[i].Name == "" {
			return // reported; it may be the one that a source means
		}
		names = append(names, config.Profiles[i].Name)
	}
	named := map[string]bool{}
	for i, c := range sources {
		d := &config.Discovery[i]
		named[d.Profile] = true
		switch {
		case d.Profile == "" || !c.good("profile"):
		case !slices.Contains(names, d.Profile):
			c.fail("profile", "%s is not the name of a profile of this file; %s", quote(d.Profile), instead(d.Profile, names, "profiles"))
		case len(d.Allow.Hosts) == 0 && config.ProfileNamed(d.Profile).secretive():
			c.warn("allow", "names no hosts, and the profile %s sends credentials or a client certificate: whoever has an address in networks is shown them; write hosts too", quote(d.Profile))
		}
	}
	for i, c := range profiles {
		if name := names[i]; c.good("name") && !named[name] {
			c.warn("", "no source of discovery names it, so that it has no effect; write profile: %s there, or remove it", name)
		}
	}
}

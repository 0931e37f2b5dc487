package config

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strconv"

	"gopkg.in/yaml.v3"
)

// mostFile bounds what is read of any file, in bytes.
const mostFile = 16 << 20

// Load reads and checks the configuration file at path. Files that it names
// are read too; their relative paths start at its folder. It returns either a
// configuration, or an error that is an [*Errors] with all that is wrong; the
// warnings, in order of their lines, come with either. It may be called
// concurrently.
func Load(path string) (*Config, []Warning, error) {
	data, err := readFile(path)
	if err != nil {
		p := Problem{File: path, Text: reason(err) + "; name a readable YAML file", cause: err}
		return nil, nil, &Errors{Problems: []Problem{p}, Sum: Checksum(path, nil)}
	}
	return Parse(data, path)
}

// Parse checks a configuration as [Load] does. The name is that of the file
// for messages, and relative paths start at its folder.
func Parse(data []byte, name string) (*Config, []Warning, error) {
	p := parser{
		report: &report{file: name, most: mostSettings},
		files:  newFiles(filepath.Dir(name), readFile),
		ports:  localPorts(),
	}
	p.files.hint = ", relative to the folder of the configuration"
	c, warnings, err := p.parse(data)
	return p.named(data, c, warnings, err)
}

// parser turns one file into a configuration.
type parser struct {
	report *report
	files  *files
	ports  int // free local ports per address
}

// document is the top level of a file.
type document struct {
	Limits    Limits    `yaml:"limits"`
	Metrics   Metrics   `yaml:"metrics"`
	Defaults  yaml.Node `yaml:"defaults"`
	Targets   yaml.Node `yaml:"targets"`
	Profiles  yaml.Node `yaml:"profiles"`
	Churns    yaml.Node `yaml:"churns"`
	Discovery yaml.Node `yaml:"discovery"`
}

func (p *parser) parse(data []byte) (*Config, []Warning, error) {
	config := builtIn()
	if root := p.tree(data); root != nil {
		p.document(root, &config)
	}
	if err := p.report.err(); err != nil {
		return nil, p.report.warned(), err
	}
	return &config, p.report.warned(), nil
}

// tree returns the root of the only document in data, or reports why there is
// none.
func (p *parser) tree(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil && !errors.Is(err, io.EOF) {
		p.syntax(data, err)
		return nil
	}
	if len(first.Content) == 0 || isNull(first.Content[0]) {
		p.report.problem(1, "", "is empty; write at least a target with name, url and rate below targets")
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		p.report.problem(max(second.Line, 1), "", "a second YAML document begins; write one document per file, without ---")
	case !errors.Is(err, io.EOF):
		p.syntax(data, err)
		return nil
	}
	return first.Content[0]
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// isEmpty reports whether a list is not written, or has nothing in it.
func isEmpty(n *yaml.Node) bool {
	return n.Kind == 0 || isNull(n) || n.Kind == yaml.SequenceNode && len(n.Content) == 0
}

func (p *parser) document(root *yaml.Node, config *Config) {
	doc := document{Limits: config.Limits, Metrics: config.Metrics}
	marks := newMarks()
	d := decoder{report: p.report, marks: marks}
	d.decode(root, root.Line, "", reflect.ValueOf(&doc).Elem())
	c := &checker{report: p.report, marks: marks}
	config.Limits, config.Metrics = doc.Limits, doc.Metrics
	c.limits(&config.Limits)
	c.metrics(&config.Metrics)
	if root.Kind == yaml.MappingNode {
		churns := p.churns(c, &doc.Churns, config)
		base, common := p.defaults(c, &doc)
		targets := p.targets(c, &doc, &base, common, config)
		profiles := p.profiles(c, &doc.Profiles, &base, common, config)
		p.discovery(c, &doc.Discovery, config, profiles)
		if c.good("targets", "churns", "profiles") {
			churned(config, targets, profiles, churns)
		}
	}
}

// defaults decodes and checks what targets and profiles begin with, and returns
// it with the checker that knows its places.
func (p *parser) defaults(c *checker, doc *document) (base Target, common *checker) {
	base = builtInTarget()
	common = &checker{report: p.report, marks: newMarks(), block: "defaults"}
	if _, written := c.marks.at["defaults"]; written && doc.Defaults.Kind != 0 {
		d := decoder{report: p.report, marks: common.marks, block: "defaults"}
		d.decode(&doc.Defaults, c.marks.at["defaults"].line, "", reflect.ValueOf(&base).Elem())
		common.common(&base)
		common.fields(&base)
	}
	return base, common
}

// targets decodes and checks the targets, each on top of the defaults, and
// returns the checker of each.
func (p *parser) targets(c *checker, doc *document, base *Target, common *checker, config *Config) []*checker {
	list := &doc.Targets
	switch {
	case isEmpty(list) && !isEmpty(&doc.Discovery):
		return nil // they are all found
	case isEmpty(list):
		c.fail("targets", "there is none; write at least one with name, url and rate")
		return nil
	case list.Kind != yaml.SequenceNode:
		c.fail("targets", "is %s where a list belongs; write each target as - name: NAME with its settings below", described(list))
		return nil
	}
	checkers := make([]*checker, len(list.Content))
	names := make([]string, len(list.Content))
	config.Targets = make([]Target, len(list.Content))
	for i, item := range list.Content {
		if p.report.nodes >= p.report.most {
			c.marks.bad["targets"] = true // reported
			return nil
		}
		config.Targets[i] = base.clone()
		checkers[i] = p.target(common, item, i, &config.Targets[i])
		names[i] = config.Targets[i].Name
	}
	uniqueNames(names, checkers)
	c.totals(config, checkers)
	c.closedLoops(config, checkers)
	warnPorts(config.Targets, checkers, p.ports)
	return checkers
}

func (p *parser) target(common *checker, item *yaml.Node, i int, t *Target) *checker {
	c := &checker{report: p.report, marks: common.marks.clone(), block: "targets[" + strconv.Itoa(i) + "]"}
	d := decoder{report: p.report, marks: c.marks, block: c.block}
	if !d.spend(len(common.marks.at), item.Line, "") {
		c.marks.bad[""] = true
		return c
	}
	d.decode(item, item.Line, "", reflect.ValueOf(t).Elem())
	if isNull(follow(item)) {
		d.fail(item.Line, "", "has no value; write name, url and rate, or remove the line")
	}
	if c.marks.bad[""] {
		return c
	}
	c.override(t)
	c.required(t)
	c.fields(t)
	c.together(t)
	p.files.fill(c, t)
	c.warnings(t)
	return c
}

// Validate checks a target that was built by code, as [Load] checks one of a
// file, and reads the files that it names, relative to the working folder. It
// returns what is probably not meant, and an [*Errors] with all that is wrong;
// their fields are paths such as timeouts.connect, without file and line. It
// must be called before the target is used, and again when it was changed.
func (t *Target) Validate() ([]Warning, error) {
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	if t.HTTP.Headers == nil {
		t.HTTP.Headers = Headers{}
	}
	if t.Expect.Headers == nil {
		t.Expect.Headers = HeaderPatterns{}
	}
	r := &report{}
	c := &checker{report: r, marks: newMarks()}
	if t.Churn != "" {
		c.fail("churn", "%s names no churn, as only a file has them; remove it", quote(t.Churn))
	}
	c.required(t)
	c.fields(t)
	c.together(t)
	newFiles(".", readFile).fill(c, t)
	c.warnings(t)
	warnPorts([]Target{*t}, []*checker{c}, localPorts())
	return r.warned(), r.err()
}

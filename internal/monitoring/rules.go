// Package monitoring reads the shipped alerts and dashboards, for the tests
// that hold them against the exporter and against a real Prometheus. It knows
// of Grafana's and Prometheus's files what these tests need, and judges
// nothing: what a file says wrong is found by whoever runs it.
package monitoring

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Rule is one recording or alerting rule.
type Rule struct {
	File        string // path of its file
	Group       string
	Record      string // name of the recorded series, or
	Alert       string // name of the alert
	Expr        string
	For         string // as written, empty where there is none
	Labels      map[string]string
	Annotations map[string]string
}

// Name returns the name of the alert or of the recorded series.
func (r Rule) Name() string { return r.Alert + r.Record }

// ruleFile is a rule file of Prometheus. Fields that the tests do not look at
// are left to promtool.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Record      string
			Alert       string
			Expr        string
			For         string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

// RuleFiles returns the paths of all rule files in the tree below a folder,
// sorted: of its YAML files, those with groups of rules.
func RuleFiles(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yml", ".yaml"}, filepath.Ext(path)) {
			return err
		}
		rules, err := Rules(path)
		if err == nil && len(rules) > 0 {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for rule files in %q: %w", folder, err)
	}
	return files, nil
}

// Rules returns the rules of a file, in its order. A YAML file without groups
// has none.
func Rules(path string) ([]Rule, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file ruleFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		// A file of another kind may have groups of its own.
		if !strings.Contains(string(text), "\ngroups:") {
			return nil, nil
		}
		return nil, fmt.Errorf("reading the rules of %q: %w", path, err)
	}
	var rules []Rule
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules = append(rules, Rule{
				File: path, Group: g.Name, Record: r.Record, Alert: r.Alert, Expr: r.Expr, For: r.For,
				Labels: r.Labels, Annotations: r.Annotations,
			})
		}
	}
	return rules, nil
}

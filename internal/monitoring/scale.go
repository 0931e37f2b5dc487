package monitoring

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"gopkg.in/yaml.v3"
)

// Scale is how many times faster the time of scaled rules runs, so that a test
// need not wait for days.
type Scale struct {
	Factor float64 // of ranges, steps, for and keep_firing_for: 60 turns 5m into 5s
	// Offset is the same of offsets; 0: they stay as they are. A day that is
	// the test's own past has to be another one than the day of a window.
	Offset float64
	Least  time.Duration // no scaled range is shorter, and none that was not is made longer
}

// ScaleRules returns the text of a rule file in which time runs faster:
// durations in expressions, for and keep_firing_for are divided, groups are
// evaluated at the global interval. Nothing else differs: neither names nor
// thresholds, and no number that stands for seconds or for a count.
func ScaleRules(text string, s Scale) (string, error) {
	var file yaml.Node
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return "", fmt.Errorf("reading rules to scale: %w", err)
	}
	for node := range nodes(&file) {
		if node.Kind != yaml.MappingNode {
			continue
		}
		kept := node.Content[:0:0]
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			var err error
			switch key.Value {
			case "expr":
				value.Value, err = ScaleExpr(value.Value, s)
			case "for", "keep_firing_for":
				value.Value, err = scaled(value.Value, s.Factor, 0)
			case "interval":
				continue
			}
			if err != nil {
				return "", fmt.Errorf("scaling the %s in line %d: %w", key.Value, value.Line, err)
			}
			kept = append(kept, key, value)
		}
		node.Content = kept
	}
	out, err := yaml.Marshal(&file)
	if err != nil {
		return "", fmt.Errorf("writing scaled rules: %w", err)
	}
	return string(out), nil
}

// nodes walks a tree of YAML, but not into labels and annotations, whose keys
// are the user's.
func nodes(n *yaml.Node) func(yield func(*yaml.Node) bool) {
	return func(yield func(*yaml.Node) bool) {
		var walk func(n *yaml.Node) bool
		walk = func(n *yaml.Node) bool {
			if !yield(n) {
				return false
			}
			for i, child := range n.Content {
				if n.Kind == yaml.MappingNode && i%2 == 1 && (n.Content[i-1].Value == "labels" || n.Content[i-1].Value == "annotations") {
					continue
				}
				if !walk(child) {
					return false
				}
			}
			return true
		}
		walk(n)
	}
}

// word is, in PromQL, whatever may not be cut: a string, a comment, a name, or
// a number with the unit of a duration behind it.
var word = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `|#[^\n]*|[A-Za-z_][\w:]*|[0-9][\w.]*`)

var duration = regexp.MustCompile(`^([0-9]+(ms|[smhdwy]))+$`)

// ScaleExpr returns an expression in which the durations of ranges, steps and
// offsets are divided.
func ScaleExpr(expr string, s Scale) (string, error) {
	var wrong error
	before := ""
	out := word.ReplaceAllStringFunc(expr, func(w string) string {
		behind := before
		before = w
		if !duration.MatchString(w) {
			return w
		}
		factor, least := s.Factor, s.Least
		if strings.EqualFold(behind, "offset") {
			if s.Offset == 0 {
				return w
			}
			factor, least = s.Offset, 0
		}
		text, err := scaled(w, factor, least)
		if err != nil {
			wrong = err
		}
		return text
	})
	return out, wrong
}

// scaled divides a duration. It does not become shorter than least, unless it
// was.
func scaled(text string, factor float64, least time.Duration) (string, error) {
	d, err := model.ParseDuration(text)
	if err != nil {
		return "", fmt.Errorf("scaling the duration %q: %w", text, err)
	}
	to := max(time.Duration(float64(d)/factor), min(least, time.Duration(d)))
	return strconv.Itoa(int(math.Round(float64(to)/float64(time.Millisecond)))) + "ms", nil
}

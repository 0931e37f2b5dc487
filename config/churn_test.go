package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChurnDefaults(t *testing.T) {
	t.Parallel()
	p := fakeParser()
	config, warnings, err := p.parse([]byte(`
targets: [{name: a, url: "http://h/", rate: 1, churn: b}]
churns: [{name: b, embedded: {}, steps: [{replicas: 4, hold: 10s}, {replicas: 0, hold: 1m}]}]
`))
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	want := []Churn{{
		Name: "b", Embedded: &Embedded{}, Settle: 5 * time.Second, DryRun: true,
		Steps: []ChurnStep{{Replicas: 4, Hold: 10 * time.Second}, {Replicas: 0, Hold: time.Minute}},
	}}
	if diff := cmp.Diff(want, config.Churns); diff != "" {
		t.Errorf("churns (-want +got):\n%s", diff)
	}
	equal(t, "churn of the target", config.Targets[0].Churn, "b")
	again, _, err := Parse(config.Masked(), "again.yml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, again.Churns); diff != "" {
		t.Errorf("churns of what is shown (-want +got):\n%s", diff)
	}
}

// TestChurnsThatDoNotMatch has files whose targets and churns do not go
// together.
func TestChurnsThatDoNotMatch(t *testing.T) {
	t.Parallel()
	churns := func(names ...string) string {
		var b strings.Builder
		b.WriteString("churns:\n")
		for _, name := range names {
			fmt.Fprintf(&b, "- {name: %s, embedded: {}, steps: [{replicas: 1, hold: 1s}]}\n", name)
		}
		return b.String()
	}
	many := make([]string, 11)
	for i := range many {
		many[i] = fmt.Sprintf("churn-%d", i)
	}
	unnamed := func(line, i int, name string) string {
		return fmt.Sprintf("fuzz.yml:%d: churns[%d]: no target names it, so that nobody sees what it does to a door; write churn: %s in a target", line, i, name)
	}
	const target = "targets: [{name: a, url: 'http://h/', rate: 1, churn: one}]\n"
	for _, row := range []struct {
		name, text, err string
		warnings        []string
	}{
		{"named", target + churns("one"), "", nil},
		{"one of two", target + churns("one", "two"), "", []string{unnamed(4, 1, "two")}},
		{"by the defaults", "defaults: {churn: one}\ntargets: [{name: a, url: 'http://h/', rate: 1}]\n" + churns("one"), "", nil},
		{"not where all targets say otherwise", "defaults: {churn: one}\ntargets: [{name: a, url: 'http://h/', rate: 1, churn: ''}]\n" + churns("one"), "",
			[]string{unnamed(4, 0, "one")}},
		{"by a closed loop", "limits: {allow_closed_loop: true}\ntargets: [{name: a, url: 'http://h/', rate: max, churn: one}]\n" + churns("one"), "", nil},
		{"defaults that no target takes", "defaults: {churn: other}\n" + target + churns("one"), "", nil},
		{"similar", target + churns("on"), `fuzz.yml:1: targets[0].churn: "one" is not the name of a churn of this file; write on`, []string{unnamed(3, 0, "on")}},
		{"none", target + "churns: []", `fuzz.yml:1: targets[0].churn: "one" is not the name of a churn of this file; add it to churns, or remove the line`, nil},
		{"too many to list", target + churns(many...), `fuzz.yml:1: targets[0].churn: "one" is not the name of a churn of this file; add it to churns, or remove the line`,
			func() (all []string) {
				for i, name := range many {
					all = append(all, unnamed(i+3, i, name))
				}
				return all
			}()},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := fakeParser()
			_, warnings, err := p.parse([]byte(row.text))
			checkError(t, err, row.err)
			var got []string
			for _, w := range warnings {
				got = append(got, w.String())
			}
			if diff := cmp.Diff(row.warnings, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChurnBomb lets every churn be an alias of one with many steps: 40 × 1,000
// steps are more than the 20,000 settings of a fakeParser.
func TestChurnBomb(t *testing.T) {
	t.Parallel()
	text := "targets: [{name: a, url: 'http://h/', rate: 1}]\nchurns:\n- &a {name: a, steps: [" +
		strings.Repeat("{replicas: 1, hold: 1s}, ", 1000) + "]}\n" + strings.Repeat("- *a\n", 40)
	p := fakeParser()
	_, _, err := p.parse([]byte(text))
	if err == nil || !strings.Contains(err.Error(), "aliases or defaults make the file too large") {
		t.Errorf("got %.200v, want one that the file is too large", err)
	}
}

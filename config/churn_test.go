package config

import (
	"fmt"
	"path/filepath"
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
		Steps:     []ChurnStep{{Replicas: new(4), Hold: 10 * time.Second}, {Replicas: new(0), Hold: time.Minute}},
		AbortWhen: AbortWhen{Failures: Share{percent: 5}, Window: 30 * time.Second},
		Cooldown:  10 * time.Minute, StuckAfter: 5 * time.Minute,
	}}
	if diff := cmp.Diff(want, config.Churns, unexported()); diff != "" {
		t.Errorf("churns (-want +got):\n%s", diff)
	}
	equal(t, "churn of the target", config.Targets[0].Churn, "b")
	again, _, err := Parse(config.Masked(), "again.yml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, again.Churns, unexported()); diff != "" {
		t.Errorf("churns of what is shown (-want +got):\n%s", diff)
	}
}

// unexported lets values be compared that only their own text can make.
func unexported() cmp.Option { return cmp.AllowUnexported(Share{}) }

// TestChurnsThatDoNotMatch has files whose targets and churns do not go
// together.
func TestChurnsThatDoNotMatch(t *testing.T) {
	t.Parallel()
	churns := func(names ...string) string {
		var b strings.Builder
		b.WriteString("churns:\n")
		for _, name := range names {
			fmt.Fprintf(&b, "- {name: %s, haproxy: {socket: /s, backend: %[1]s}, steps: [{replicas: 1, hold: 1s}]}\n", name)
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

// TestProviders looks at what a provider is given.
func TestProviders(t *testing.T) {
	t.Parallel()
	config, _, err := Load("testdata/good.yml")
	if err != nil {
		t.Fatal(err)
	}
	hours := config.Churns[0].ActiveHours
	equal(t, "from", hours.From.Minutes(), 22*60)
	equal(t, "to", hours.To.Minutes(), 6*60+30)
	equal(t, "first day", hours.Days[0].Weekday(), time.Monday)
	equal(t, "time zone", hours.TimeZone.Location().String(), "Europe/Berlin")
	equal(t, "share", config.Churns[0].AbortWhen.Failures.Ratio(), 0.005)
	equal(t, "floor", *config.Churns[0].Floor, 0)
	equal(t, "mode", config.Churns[1].HAProxy.Mode, "drain")
	equal(t, "killed", config.Churns[1].Steps[1].Kill, 1)
	equal(t, "no replicas", config.Churns[1].Steps[1].Replicas == nil, true)
	plain, other := config.Churns[2].Kubernetes, config.Churns[3].Kubernetes
	equal(t, "kind", plain.Kind(), "deployment")
	equal(t, "object", plain.Object(), "web")
	equal(t, "no kubeconfig", plain.KubeconfigFile(), "")
	equal(t, "lease", plain.Lease.Duration, 15*time.Second)
	equal(t, "end of the day", config.Churns[2].ActiveHours.To.Minutes(), 24*60)
	equal(t, "UTC", config.Churns[2].ActiveHours.TimeZone.Location(), time.UTC)
	equal(t, "kind with its group", other.Kind(), "Rollout.argoproj.io")
	equal(t, "object with a dot", other.Object(), "web.shop")
	equal(t, "kubeconfig", other.KubeconfigFile(), filepath.Join("testdata", "token.txt"))
	c := config.Churns[4].Command
	want := []string{"/usr/local/bin/scale", "--token=planted-token", "--replicas={replicas}", "web"}
	if diff := cmp.Diff(want, c.Reveal(c.Scale)); diff != "" {
		t.Errorf("scale (-want +got):\n%s", diff)
	}
	equal(t, "program of a relative path", c.Reveal(c.Read)[0], filepath.Join("testdata", "bin", "count"))
	equal(t, "program by its name", (&Command{folder: "x"}).Reveal(Argv{NewSecret("count")})[0], "count")
	equal(t, "shown program", c.Scale.Program(), "/usr/local/bin/scale")
	if text := fmt.Sprintf("%v %+v %#v %s", config.Churns[4], *c, *c, c.Scale); strings.Contains(text, "planted") {
		t.Errorf("a secret is printed: %s", text)
	}
	again, _, err := Load("testdata/good.yml")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the same", config.Churns[4].Equal(&again.Churns[4]), true)
	again.Churns[4].Command.Scale[1] = NewSecret("another")
	equal(t, "another argument", config.Churns[4].Equal(&again.Churns[4]), false)
}

// TestCanonicalWorkloads writes one workload in several ways.
func TestCanonicalWorkloads(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ workload, want string }{
		{"deployment/web", "deployment/web"},
		{"deploy/web", "deployment/web"},
		{"Deployments.apps/web", "deployment/web"},
		{"sts/web", "statefulset/web"},
		{"dc/web", "deploymentconfig/web"},
		{"deploymentconfigs.apps.openshift.io/web", "deploymentconfig/web"},
		{"Rollout.argoproj.io/web", "rollout.argoproj.io/web"},
		{"deployment.example.com/web", "deployment.example.com/web"},
	} {
		equal(t, row.workload, (&Kubernetes{Workload: row.workload}).canonical(), row.want)
	}
}

// TestMaskedArguments leaves nothing of an argument but its placeholders.
func TestMaskedArguments(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ argument, want string }{
		{"", ""},
		{"plain", "<secret>"},
		{"{replicas}", "{replicas}"},
		{"a{replicas}b{kill}", "<secret>{replicas}<secret>{kill}"},
		{"{kill}{kill}c", "{kill}{kill}<secret>"},
		{"{replica}", "<secret>"},
	} {
		equal(t, row.argument, maskedArgument(row.argument), row.want)
	}
}

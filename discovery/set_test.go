package discovery

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// oneSource is a source whose targets are named as their addresses.
const oneSource = `
profiles: [{name: p, rate: 2, connections: 3}]
discovery:
- name: d
  file_sd_configs: [{files: [a.yml]}]
  relabel_configs: [{source_labels: [__address__], regex: "([^.:]+).*", target_label: __probe_name__}]
  profile: p
  allow: {hosts: [example.com]}
`

// with returns the source with other settings, each of which is a line of YAML.
func with(settings ...string) string { return oneSource + "  " + strings.Join(settings, "\n  ") + "\n" }

// found returns a group of these hosts below example.com, separated by blanks.
func found(source, hosts string) *targetgroup.Group {
	var all []string
	for _, h := range strings.Fields(hosts) {
		all = append(all, h+".example.com")
	}
	return group(source, all)
}

// virtual runs a test with virtual time, at the pace of the product.
func virtual(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newBench(t, quiet, apart)) })
}

// settled lets all happen that is due, a time for what was found to become
// targets included.
func settled() {
	time.Sleep(apart + quiet)
	synctest.Wait()
}

// told reports whether it is said that the targets may be others.
func (b *bench) told() bool {
	select {
	case <-b.Changed():
		return true
	default:
		return false
	}
}

func TestTargetsComeAndGo(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		m := newFakeMechanism()
		if got := b.run(prepared(t, oneSource).instead(m)); len(got) != 0 || b.told() {
			t.Errorf("targets %v before anything is found", got)
		}
		m.finds(found("1", "b a"), found("2", "c"))
		time.Sleep(quiet - time.Millisecond)
		synctest.Wait()
		b.is("")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		b.is("a b c")
		if !b.told() || b.told() {
			t.Error("it was not said once that the targets have changed")
		}
		m.finds(found("1", "a b"), found("2", "c")) // the same
		settled()
		if b.told() {
			t.Error("it was said that the targets have changed, and they have not")
		}
		m.finds(found("2", ""))
		settled()
		b.is("a b")
		if s := b.Sources()[0]; s.Name != "d" || s.Profile != "p" || s.Targets != 2 || s.Held || s.Failures != 0 || s.Updated.IsZero() || s.Mechanisms[0] != "fake" {
			t.Errorf("figures %+v", s)
		}
	})
}

// TestPace has many events, which are one change.
func TestPace(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		m := newFakeMechanism()
		b.run(prepared(t, oneSource).instead(m))
		changes := 0
		for i := range 100 { // 10 s
			m.finds(found(fmt.Sprint(i), fmt.Sprintf("h%d", i)))
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if b.told() {
				changes++
			}
		}
		// at 0.5 s, 5.5 s, and at 10.5 s, which is after the last event
		if changes != 2 {
			t.Errorf("%d changes in 10 s, want 2", changes)
		}
		settled()
		if n := len(b.Targets()); n != 100 {
			t.Errorf("%d targets, want 100", n)
		}
	})
}

// TestLastTargetsAreKept has a source that has nothing any more: for a moment,
// or for good.
func TestLastTargetsAreKept(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		keep   string
		empty  func(*fakeMechanism) // the answer without targets
		held   bool
		failed uint64
	}{
		{"an empty answer", "5m", func(m *fakeMechanism) { m.finds(found("1", ""), found("2", "")) }, true, 1},
		{"garbage", "5m", func(m *fakeMechanism) { m.finds(group("1", []string{"%"}), group("2", []string{"example.org"})) }, true, 1},
		{"an empty answer that is believed", "0s", func(m *fakeMechanism) { m.finds(found("1", ""), found("2", "")) }, false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, b *bench) {
				m := newFakeMechanism()
				b.run(prepared(t, with("keep_last: "+row.keep)).instead(m))
				m.finds(found("1", "a"), found("2", "b"))
				settled()
				b.is("a b")
				b.told()
				row.empty(m)
				settled()
				if s := b.Sources()[0]; s.Held != row.held || s.Failures != row.failed {
					t.Errorf("held %t, failures %d; want %t, %d", s.Held, s.Failures, row.held, row.failed)
				}
				if b.told() == row.held {
					t.Errorf("told of a change: %t", !row.held)
				}
				if !row.held {
					b.is("")
					return
				}
				b.is("a b")
				row.empty(m) // once more
				settled()
				if s := b.Sources()[0]; s.Failures != row.failed+1 {
					t.Errorf("%d failures after two such answers", s.Failures)
				}
				time.Sleep(5*time.Minute - 2*(apart+quiet) - time.Second)
				synctest.Wait()
				b.is("a b")
				time.Sleep(2 * time.Second)
				settled()
				b.is("")
				if s := b.Sources()[0]; s.Held || s.Targets != 0 {
					t.Errorf("figures %+v when keep_last is over", s)
				}
				m.finds(found("1", "c"))
				settled()
				b.is("c")
			})
		})
	}
}

func TestTargetsAgain(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		m := newFakeMechanism()
		b.run(prepared(t, oneSource).instead(m))
		m.finds(found("1", "a b"))
		settled()
		m.finds(found("1", ""))
		settled()
		b.told()
		m.finds(found("1", "a b"))
		settled()
		b.is("a b")
		if b.told() || b.Sources()[0].Held {
			t.Error("the targets have changed, though only the source was not itself for a moment")
		}
		for _, want := range []string{"its last ones are kept for a time", "A source has targets again"} {
			if !strings.Contains(b.log.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, b.log)
			}
		}
		m.finds(found("1", "b"))
		settled()
		b.is("b") // one that goes while others stay is gone
	})
}

// TestRefusals counts each reason for which a target that can be is not probed.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const own = "targets: [{name: c, url: 'http://h/', rate: 90, connections: 10}]\nlimits: {max_total_rate: 100, max_connections: 30}\n"
	for _, row := range []struct {
		name, text, hosts, want, refused, why string
	}{
		{"none", with(), "a b", "a b", "", ""},
		{"as many as there may be", with("max_targets: 2"), "d a b e", "a b", "max_targets 2", "the source has 2 targets, which is as many as max_targets lets it have"},
		{"a name of the configuration", own + with(), "a b c", "a b", "name 1", "another target has the name; set __probe_name__"},
		{"the sum of rates", own + with(), "a b d e f g", "a b d e f", "limits 1", "with its 2 requests/s the sum of rates would be above limits.max_total_rate (100)"},
		{"the sum of connections", own + strings.Replace(with(), "connections: 3", "connections: 8", 1), "a b d", "a b", "limits 1", "with its 8 connections the sum would be above limits.max_connections (30)"},
		{"a label that steadyprobe sets", with(), "a b", "", "invalid 2", "labels.job: is a label that steadyprobe or Prometheus sets; write another name"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, b *bench) {
				m := newFakeMechanism()
				b.run(prepared(t, row.text).instead(m))
				g := found("1", row.hosts)
				if strings.Contains(row.why, "labels.job") {
					g.Labels["job"] = "x"
				}
				m.finds(g)
				settled()
				b.is(row.want)
				if got := b.refused(0); got != row.refused {
					t.Errorf("refused %q, want %q", got, row.refused)
				}
				if row.why != "" && b.Sources()[0].Listed[0].Text != row.why {
					t.Errorf("why: %s\nwant %s", b.Sources()[0].Listed[0].Text, row.why)
				}
				if row.refused != "" && !strings.Contains(b.log.String(), "Targets of a source are refused") {
					t.Errorf("the log says nothing:\n%s", b.log)
				}
			})
		})
	}
}

// TestWhatRunsStays finds more than there may be: what was there first stays,
// though others come before it by name.
func TestWhatRunsStays(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		m := newFakeMechanism()
		b.run(prepared(t, with("max_targets: 3")).instead(m))
		m.finds(found("1", "m n"))
		settled()
		m.finds(found("1", "a b m n"))
		settled()
		b.is("a m n")
		m.finds(found("1", "a b n"))
		settled()
		b.is("a b n")
		many := make([]string, 10_000)
		for i := range many {
			many[i] = fmt.Sprintf("a%05d", i)
		}
		m.finds(found("1", "n "+strings.Join(many, " ")))
		settled()
		b.is("a00000 a00001 n")
		s := b.Sources()[0]
		if s.Refused[MaxTargets] != 9998 || len(s.Listed) != mostRefused {
			t.Errorf("refused %d, listed %d; want 9998 of 10001 and %d", s.Refused[MaxTargets], len(s.Listed), mostRefused)
		}
	})
}

// TestLabelNamesAreBounded has targets that each bring labels of their own.
func TestLabelNamesAreBounded(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		m := newFakeMechanism()
		b.run(prepared(t, oneSource).instead(m))
		var groups []*targetgroup.Group
		for i := range 5 {
			g := found(fmt.Sprint(i), fmt.Sprintf("h%d", i))
			for k := range 8 {
				g.Labels[model.LabelName(fmt.Sprintf("l%d_%d", i, k))] = "x"
			}
			groups = append(groups, g)
		}
		m.finds(groups...)
		settled()
		b.is("h0 h1 h2 h3") // 4 × 8 = 32 names
		if got := b.refused(0); got != "invalid 1" {
			t.Errorf("refused %q, want the fifth", got)
		}
	})
}

// TestNamesAreLookedUp lets names lead where nothing is allowed, before and
// after they are targets.
func TestNamesAreLookedUp(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		b.names.set("good.example.com", "192.0.2.1")
		b.names.set("both.example.com", "169.254.169.254 192.0.2.1")
		b.names.set("gone.example.com", "")
		b.names.set("bad.example.com", "169.254.169.254 127.0.0.1")
		b.names.delay = time.Second
		m := newFakeMechanism()
		b.run(prepared(t, oneSource).instead(m))
		m.finds(found("1", "good both gone bad"))
		time.Sleep(quiet + 500*time.Millisecond)
		synctest.Wait()
		b.is("")
		if s := b.Sources()[0]; s.Pending != 4 || b.refused(0) != "" {
			t.Errorf("figures %+v while the names are looked up", s)
		}
		settled()
		b.is("both gone good") // what cannot be looked up is what a probe is to show
		if got := b.Sources()[0].Listed; len(got) != 1 || got[0].Target != "bad" || got[0].Reason != Network || got[0].Text != "bad.example.com leads to 169.254.169.254, which is not in allow.networks" {
			t.Errorf("refused %+v, want bad for its network", got)
		}
		m.finds(found("1", "good both gone bad more"))
		settled()
		if n := b.names.times("bad.example.com"); n != 1 {
			t.Errorf("a name that is refused was looked up %d times, want once in 5 m", n)
		}
		b.names.set("bad.example.com", "192.0.2.7")
		time.Sleep(askAgain)
		settled()
		b.is("bad both gone good more")
		// What runs is not looked up here any more: its resolver leaves out what
		// is not allowed.
		b.names.set("good.example.com", "127.0.0.1")
		time.Sleep(3 * askAgain)
		settled()
		b.is("bad both gone good more")
		if n := b.names.times("good.example.com"); n != 1 {
			t.Errorf("a target was looked up %d times", n)
		}
	})
}

// TestManyNames looks up only what has a place.
func TestManyNames(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		for i := range 30 {
			b.names.set(fmt.Sprintf("bad%02d.example.com", i), "127.0.0.1")
		}
		b.names.delay = time.Second
		m := newFakeMechanism()
		b.run(prepared(t, with("max_targets: 10")).instead(m))
		all := ""
		for i := range 30 {
			all += fmt.Sprintf(" bad%02d good%02d", i, i)
		}
		m.finds(found("1", all))
		settled()
		settled()
		b.is("good00 good01 good02 good03 good04 good05 good06 good07 good08 good09")
		// 10 at a time: those of bad are refused, and the next ones have their places.
		if got := b.refused(0); got != "network 30, max_targets 20" {
			t.Errorf("refused %q", got)
		}
		if n := len(b.names.asked); n != 40 {
			t.Errorf("%d lookups, want 30 + 10", n)
		}
	})
}

func TestSeveralSources(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		two := oneSource + strings.Replace(oneSource[strings.Index(oneSource, "- name"):], "name: d", "name: e", 1)
		one, other := newFakeMechanism(), newFakeMechanism()
		b.run(prepared(t, "limits: {max_total_rate: 6}\n"+two).instead(one, other))
		other.finds(found("1", "b c"))
		settled()
		b.is("b c")
		one.finds(found("1", "a b d")) // 6 = 2 × (b + c + one more)
		settled()
		b.is("a b c")
		if first, second := b.refused(0), b.refused(1); first != "name 1, limits 1" || second != "" {
			t.Errorf("refused %q and %q; want b for its name and d for the limits", first, second)
		}
		for i, want := range []string{"d", "e", "e"} {
			if got := b.Targets()[i].Source(); got != want {
				t.Errorf("target %d is of %s, want %s", i, got, want)
			}
		}
	})
}

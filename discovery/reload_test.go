package discovery

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestReload changes the settings of sources while they run.
func TestReload(t *testing.T) {
	t.Parallel()
	narrower := strings.Replace(oneSource, "hosts: [example.com]", "hosts: [b.example.com]", 1)
	for _, row := range []struct {
		name string
		text string
		same bool   // the mechanism goes on
		now  string // at once
		then string // a while later, when the new mechanism has found "b c"
	}{
		{"nothing has changed", oneSource, true, "a b", "b c"},
		{"another profile", strings.ReplaceAll(oneSource, "rate: 2", "rate: 3"), true, "a b", "b c"},
		{"less is allowed", narrower, true, "b", "b"},
		{"fewer targets", with("max_targets: 1"), true, "a", "b"},
		{"another rule", strings.Replace(oneSource, "regex: \"([^.:]+).*\"", "regex: \"([^a]).example.*\"", 1), true, "b d/http://a.example.com/", "b c"},
		{"another mechanism", oneSource, false, "a b", "b c"},
		{"another mechanism, and less is allowed", narrower, false, "b", "b"},
		{"another name of the source", strings.Replace(oneSource, "name: d", "name: e", 1), false, "", "b c"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, b *bench) {
				m := newFakeMechanism()
				b.run(prepared(t, oneSource).instead(m))
				m.finds(found("1", "a b"))
				settled()
				b.is("a b")
				next := m
				if !row.same {
					next = newFakeMechanism()
				}
				if got := namesOf(b.run(prepared(t, row.text).instead(next))); got != row.now {
					t.Errorf("targets at once %q, want %q", got, row.now)
				}
				time.Sleep(time.Minute) // without an answer
				settled()
				b.is(row.now)
				next.finds(found("1", "b c"))
				settled()
				settled()
				settled()
				b.is(row.then)
			})
		})
	}
}

// TestReloadOneByOne lets a new mechanism find its targets one by one, as those
// do which watch.
func TestReloadOneByOne(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		one, other := newFakeMechanism(), newFakeMechanism()
		b.run(prepared(t, oneSource).instead(one))
		one.finds(found("1", "a b"), found("2", "c"))
		settled()
		b.told()
		b.run(prepared(t, oneSource).instead(other))
		other.finds(found("x", "a"))
		settled() // 5.5 s
		b.is("a b c")
		other.finds(found("y", "b"))
		time.Sleep(grace)
		settled()
		b.is("a b")
		if s := b.Sources()[0]; s.Held || s.Failures != 0 {
			t.Errorf("figures %+v", s)
		}
	})
}

// TestReloadWithoutAnswer never hears of the new mechanism.
func TestReloadWithoutAnswer(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		one := newFakeMechanism()
		b.run(prepared(t, oneSource).instead(one))
		one.finds(found("1", "a b"))
		settled()
		b.run(prepared(t, oneSource).instead(newFakeMechanism()))
		time.Sleep(5*time.Minute - time.Second)
		synctest.Wait()
		b.is("a b")
		time.Sleep(2 * time.Second)
		settled()
		b.is("")
	})
}

func TestReloadRemoves(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		m := newFakeMechanism()
		b.run(prepared(t, oneSource).instead(m))
		m.finds(found("1", "a b"))
		settled()
		b.told()
		own := "targets: [{name: x, url: 'http://h/', rate: 1}]\n"
		if got := b.run(prepared(t, own)); len(got) != 0 || len(b.Sources()) != 0 || !b.told() {
			t.Errorf("targets %q, sources %v; want none, and to be told", namesOf(got), b.Sources())
		}
		if got := namesOf(b.run(prepared(t, oneSource).instead(m))); got != "" {
			t.Errorf("targets %q of a source that has not yet found anything", got)
		}
	})
}

// TestReloadSaysWhereItLeads has names that were looked up for what was allowed
// then.
func TestReloadSaysWhereItLeads(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		b.names.set("a.example.com", "192.0.2.1")
		b.names.set("b.example.com", "10.0.0.1")
		m := newFakeMechanism()
		b.run(prepared(t, oneSource).instead(m))
		m.finds(found("1", "a b"))
		settled()
		b.is("a b")
		only := strings.Replace(oneSource, "hosts: [example.com]", "hosts: [example.com], networks: [10.0.0.0/8]", 1)
		if got := namesOf(b.run(prepared(t, only).instead(m))); got != "b" {
			t.Errorf("targets %q, want b, whose address is allowed", got)
		}
		// A server of their own is asked what it knows; what runs goes on meanwhile.
		server := strings.Replace(oneSource, "rate: 2", "rate: 2, dns: {server: 192.0.2.53}", 1)
		if got := namesOf(b.run(prepared(t, server).instead(m))); got != "b" {
			t.Errorf("targets %q", got)
		}
		settled()
		b.is("a b")
		if n := b.names.times("b.example.com"); n != 2 {
			t.Errorf("%d lookups, want one of each server", n)
		}
	})
}

// TestBuildChangesNothing builds and does not apply, as a reload does that fails
// for another reason.
func TestBuildChangesNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		m := newFakeMechanism()
		b.run(prepared(t, oneSource).instead(m))
		m.finds(found("1", "a b"))
		settled()
		b.told()
		for name, row := range map[string]struct {
			plan *Plan
			want string
		}{
			"less is allowed":   {prepared(t, strings.Replace(oneSource, "hosts: [example.com]", "hosts: [b.example.com]", 1)).instead(m), "b"},
			"another mechanism": {prepared(t, with("max_targets: 1")).instead(newFakeMechanism()), "a"},
			"none":              {prepared(t, "targets: [{name: x, url: 'http://h/', rate: 1}]"), ""},
		} {
			built, err := b.Build(row.plan)
			if err != nil {
				t.Fatal(err)
			}
			if got := namesOf(built.Targets()); got != row.want {
				t.Errorf("%s: the build promises %q, want %q", name, got, row.want)
			}
		}
		settled()
		b.is("a b")
		m.finds(found("1", "b c"))
		settled()
		b.is("b c")
	})
}

// TestReloadKeepsFailures counts on when a source gets another mechanism.
func TestReloadKeepsFailures(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		m := newFakeMechanism()
		b.run(prepared(t, oneSource).instead(m))
		m.finds(found("1", "a"))
		settled()
		m.finds(found("1", ""))
		settled()
		b.run(prepared(t, oneSource).instead(newFakeMechanism()))
		if s := b.Sources()[0]; s.Failures != 1 || s.Targets != 1 {
			t.Errorf("figures %+v, want the one failure and the target of before", s)
		}
	})
}

func TestMostConnections(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, b *bench) {
		b.options.MostConnections = 6
		m := newFakeMechanism()
		b.run(prepared(t, oneSource).instead(m)) // of 3 connections each
		m.finds(found("1", "a b c"))
		settled()
		b.is("a b")
		if got := b.refused(0); got != "limits 1" {
			t.Errorf("refused %q", got)
		}
	})
}

func TestBuildFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Millisecond, time.Millisecond)
	for _, row := range []struct{ name, mechanism, want string }{
		{"a file that is not there", "http_sd_configs: [{url: 'http://planted:planted@h/?planted', tls_config: {ca_file: none.pem}}]", `discovering from "d" by http: `},
		{"no kubeconfig", "kubernetes_sd_configs: [{role: ingress, kubeconfig_file: none}]", `discovering from "d" by kubernetes: `},
		{"no kubeconfig for routes", "kubernetes_sd_configs: [{role: route, kubeconfig_file: none}]", `discovering from "d" by kubernetes: `},
		{"no cluster around", "kubernetes_sd_configs: [{role: gateway}]", `discovering from "d" by kubernetes: unable to load in-cluster configuration`},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := prepared(t, strings.Replace(oneSource, "file_sd_configs: [{files: [a.yml]}]", row.mechanism, 1))
			_, err := b.Build(p)
			if err == nil || !strings.HasPrefix(err.Error(), row.want) || strings.Contains(err.Error(), "planted") {
				t.Errorf("got %v, want %s…", err, row.want)
			}
		})
	}
}

func TestNewNeedsWhatItAsks(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); err == nil {
		t.Error("it was made of nothing")
	}
}

package resolve

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// A resolver that takes the place of another one goes on counting where that is,
// also what that still looks up, and knows nothing of its addresses.
func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: []string{"10.0.0.1", "10.0.0.2"}}
		first := started(t, f, Options{})
		sleep(refresh)
		f.set(nil, errNoSuchName)
		sleep(refresh)
		want := first.Stats()
		if want.Lookups < 2 || want.Failures[probe.ResolveNotFound] == 0 || want.Added != 2 || want.Addresses != 2 {
			t.Fatalf("the first resolver has counted %+v", want)
		}
		g := &fakeServer{answer: []string{"10.0.0.3"}}
		second := started(t, g, Options{After: first})
		first.Close()
		want.Addresses = 0
		if got := second.Stats(); got != want {
			t.Errorf("at first %+v, want what the one before has counted, %+v", got, want)
		}
		// An opening that began with the one before looks up by itself.
		f.set([]string{"10.0.0.1", "10.0.0.2"}, nil)
		time.Sleep(time.Hour)
		if a, _ := pick(first); a != "10.0.0.1" && a != "10.0.0.2" {
			t.Errorf("the one before deals %s", a)
		}
		lookups := second.Stats().Lookups
		if a, _ := pick(second); a != "10.0.0.3" {
			t.Errorf("dealt %s", a)
		}
		got := second.Stats()
		if got.Lookups < lookups || got.Addresses != 1 || got.Added != 3 || got.Failures != want.Failures {
			t.Errorf("%+v, want one address more than the one before has seen", got)
		}
		third := newResolver(t, g, Options{After: second})
		if third.Stats().Lookups != second.Stats().Lookups || third.options.After != nil {
			t.Error("the third does not count on, or keeps those before")
		}
		second.Close()
	})
}

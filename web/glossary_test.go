package web

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html/atom"

	"github.com/steadyprobe/steadyprobe/probe"
)

// TestGlossary has every word that the page uses, those of closed lists by the
// lists.
func TestGlossary(t *testing.T) {
	k := newKit()
	k.targets = []Target{pageTarget()}
	page := loadPage(t, k.handler(t))
	texts := map[string]string{}
	for _, section := range []node{page.section(t, "Words"), page.id(t, "glossary")} {
		names, meanings := section.all(atom.Dt), section.all(atom.Dd)
		if len(names) != len(meanings) {
			t.Fatalf("%d words have %d meanings", len(names), len(meanings))
		}
		for i := range names {
			name := names[i].text()
			if texts[name] != "" {
				t.Errorf("%s is there twice", name)
			}
			texts[name] = meanings[i].text()
			if !strings.HasSuffix(texts[name], ".") || len(texts[name]) > 170 {
				t.Errorf("%s: %q is no short sentence", name, texts[name])
			}
		}
	}
	if page.id(t, "glossary").DataAtom != atom.Details {
		t.Error("the glossary cannot be opened")
	}
	var words []string
	for name := range texts {
		for part := range strings.SplitSeq(strings.ToLower(name), ", ") {
			words = append(words, part)
		}
	}
	want := []string{"churn", "settled", "scaling up", "scaling down", "settle", "baseline", "step", "ready replica", "ready endpoint", "desired",
		"kept", "set", stateUp, stateDegraded, stateDown, stateStarting, "p50", "p99", "p99.9", "max", "percentile", "trustworthy", "latency", "lateness",
		"service time", "intended time", "backlog", "in flight", "scheduled", "completed", "expired", "closed loop", "stage/reason", "status",
		"objective", "door", "backend", "target"}
	for i := 1; i < probe.NumCloseReasons; i++ {
		want = append(want, probe.CloseReason(i).String())
	}
	for _, w := range want {
		if !slices.Contains(words, w) {
			t.Errorf("%s is not explained", w)
		}
	}
}

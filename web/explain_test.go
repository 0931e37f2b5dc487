package web

import (
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/probe"
)

// TestEveryFailureIsExplained holds the sentences to the list of outcomes.
func TestEveryFailureIsExplained(t *testing.T) {
	seen := map[string]string{}
	for i := range probe.NumOutcomes {
		o := probe.Outcome(i)
		if o == probe.Success {
			continue
		}
		text := means(failureMeanings[:], o.String())
		if other, twice := seen[text]; text == "" || twice {
			t.Errorf("%s means %q, as %q does", o, text, other)
		}
		seen[text] = o.String()
		checkClause(t, o.String(), text)
	}
	if got, want := len(failureMeanings), probe.NumOutcomes-1; got != want {
		t.Errorf("%d failures are explained, there are %d", got, want)
	}
	if got := probe.ResponseStatus.String(); got != responseStatus {
		t.Errorf("the failure with codes is %q", got)
	}
	for _, m := range statusMeanings {
		checkClause(t, m.name, m.text)
		if statusName(m.name) == m.name {
			t.Errorf("the status %s has no name", m.name)
		}
	}
}

// checkClause has a clause fit within a sentence.
func checkClause(t *testing.T, name, text string) {
	t.Helper()
	if strings.HasSuffix(text, ".") || len(text) < 20 || strings.ContainsAny(text, "`'") {
		t.Errorf("%s: %q is no clause", name, text)
	}
}

func TestSentence(t *testing.T) {
	for clause, want := range map[string]string{"": "", "it waited": "It waited.", "émigré": "Émigré."} {
		if got := sentence(clause); got != want {
			t.Errorf("%q becomes %q, want %q", clause, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	for _, row := range []struct {
		name, of string
		codes    []string
		want     string
	}{
		{"another failure", "read/eof", []string{"502"}, "read/eof"},
		{"no code", responseStatus, nil, "response/status"},
		{"one", responseStatus, []string{"502"}, "response/status (HTTP 502 Bad Gateway)"},
		{"one without a name", responseStatus, []string{"599"}, "response/status (HTTP 599)"},
		{"those that no standard names", responseStatus, []string{"other"}, "response/status (HTTP other)"},
		{"three", responseStatus, []string{"503", "502", "504"}, "response/status (HTTP 503, 502, 504)"},
		{"four", responseStatus, []string{"503", "502", "504", "500"}, "response/status (HTTP 503, 502, 504 and others)"},
	} {
		target := Target{Failures: []Failure{{"read", "eof", 1, 1, nil}, {"response", "status", 9, 9, row.codes}}}
		if got := target.named(row.of); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	if got := (&Target{}).named(responseStatus); got != responseStatus {
		t.Errorf("without failures %q", got)
	}
}

func TestByCode(t *testing.T) {
	if got := strings.Join(byCode(map[string]uint64{"other": 1, "502": 9, "200": 3}), " "); got != "200 502 other" {
		t.Errorf("the order is %s", got)
	}
}

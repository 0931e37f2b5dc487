package web

import "testing"

func TestPrecise(t *testing.T) {
	for _, row := range []struct {
		share float64
		want  string
	}{
		{1, "100 %"}, {0, "0 %"}, {0.999, "99.9 %"}, {0.99999, "99.999 %"}, {0.5, "50 %"},
		{0.9989996, "99.899 %"}, // misses 99.9 %
		{0.9999999, "99.999 %"}, // misses 100 %
	} {
		if got := precise(row.share); got != row.want {
			t.Errorf("%v is %q, want %q", row.share, got, row.want)
		}
	}
}

// TestObjectiveAtItsRatio is kept at exactly the ratio, missed by one less, and
// neither before the first request.
func TestObjectiveAtItsRatio(t *testing.T) {
	for _, row := range []struct {
		name              string
		within, completed uint64
		share             string
		missed            bool
	}{
		{"kept", 999, 1000, "99.9 %", false},
		{"missed", 998, 1000, "99.8 %", true},
		{"no request yet", 0, 0, dash, false},
	} {
		got := newObjectiveView(&Target{Completed: row.completed, Objective: &Objective{0.25, 0.999, row.within}})
		if got.Share != row.share || got.Missed != row.missed {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
	if newObjectiveView(&Target{}) != nil {
		t.Error("there is an objective that nobody set")
	}
}

// TestMeaningOfStatuses says what a status means where it is the only one.
func TestMeaningOfStatuses(t *testing.T) {
	for _, row := range []struct {
		codes []string
		want  string
	}{
		{[]string{"504"}, "The door answered with a status that is not expected. The door got no answer from its backend in time."},
		{[]string{"504", "502"}, "The door answered with a status that is not expected."},
		{[]string{"418"}, "The door answered with a status that is not expected."},
	} {
		one := Target{Failures: []Failure{{"response", "status", 1, 1, row.codes}}}
		if got := meaningOf(&one, &one.Failures[0]); got != row.want {
			t.Errorf("%v: %q, want %q", row.codes, got, row.want)
		}
	}
}

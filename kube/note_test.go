package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steadyprobe/steadyprobe/churn"
)

func TestNote(t *testing.T) {
	deadline := time.Date(2026, 12, 1, 0, 30, 0, 123456789, time.FixedZone("", 3600))
	for _, tc := range []struct {
		name string
		note churn.Note
	}{
		{"nothing", churn.Note{}},
		{"paused", churn.Note{Paused: true}},
		{"held", churn.Note{Held: true, Baseline: 2, Set: 4, Before: 2, Deadline: deadline}},
		{"all", churn.Note{Held: true, Baseline: 2, Set: 0, Before: 3, Original: "a=1 b=2", Deadline: deadline, Paused: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Everything of an earlier note goes, everything of others stays.
			annotations := map[string]string{"other": "stays"}
			writeNote(annotations, churn.Note{Held: true, Baseline: 9, Set: 9, Before: 9, Original: "9", Deadline: deadline, Paused: true})
			writeNote(annotations, tc.note)
			got, err := readNote(annotations)
			if err != nil {
				t.Fatal(err)
			}
			same := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
			if diff := cmp.Diff(tc.note, got, same); diff != "" {
				t.Errorf("a note was written and read otherwise: %s", diff)
			}
			if annotations["other"] != "stays" {
				t.Error("an annotation that is not ours is gone")
			}
		})
	}
}

func TestNoteByHand(t *testing.T) {
	good := func() map[string]string {
		m := map[string]string{}
		writeNote(m, churn.Note{Held: true, Baseline: 2, Set: 4, Before: 2, Deadline: time.Unix(1, 0)})
		return m
	}
	for _, tc := range []struct{ name, annotation, value, err string }{
		{"no number", baselineAnnotation, "two", `annotation steadyprobe.io/baseline: strconv.ParseUint: parsing "two": invalid syntax`},
		{"less than none", setAnnotation, "-1", `annotation steadyprobe.io/set: strconv.ParseUint: parsing "-1": invalid syntax`},
		{"more than there can be", beforeAnnotation, "2147483648", `annotation steadyprobe.io/before: strconv.ParseUint: parsing "2147483648": value out of range`},
		{"no time", deadlineAnnotation, "soon", `annotation steadyprobe.io/deadline: parsing time "soon"`},
		{"no yes or no", pausedAnnotation, "perhaps", `annotation steadyprobe.io/paused: strconv.ParseBool: parsing "perhaps"`},
		{"one is missing", baselineAnnotation, "", "annotation steadyprobe.io/baseline is missing"},
		{"another is missing", deadlineAnnotation, "", "annotation steadyprobe.io/deadline is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := good()
			if m[tc.annotation] = tc.value; tc.value == "" {
				delete(m, tc.annotation)
			}
			if n, err := readNote(m); !begins(err, tc.err) || n != (churn.Note{}) {
				t.Errorf("%+v, %v, want %s", n, err, tc.err)
			}
		})
	}
}

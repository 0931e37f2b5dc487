package kube

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/steadyprobe/steadyprobe/churn"
)

// What counts is our own clock: that of who holds the Lease may be a minute off.
func TestAbandoned(t *testing.T) {
	start := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	held := churn.Note{Held: true, Baseline: 2, Set: 4, Before: 2, Deadline: start.Add(time.Minute)}
	type look struct {
		at      time.Duration // since start
		renewed time.Duration // what the Lease says, by the holder's clock
		holder  string
		want    bool
	}
	for _, tc := range []struct {
		name  string
		note  churn.Note
		looks []look
	}{
		{"nothing held", churn.Note{Paused: true}, []look{{time.Hour, 0, "", false}}},
		{"given up, before the deadline", held, []look{{time.Minute, 0, "", false}}},
		{"given up, after the deadline", held, []look{{time.Minute + 1, 0, "", true}}},
		{"seen for the first time", held, []look{{time.Hour, 0, "a", false}}},
		// The lease is 15 s long.
		{"held, and not renewed", held, []look{{time.Hour, 0, "a", false}, {time.Hour + 15*time.Second, 0, "a", false}, {time.Hour + 16*time.Second, 0, "a", true}}},
		{"renewed", held, []look{{time.Hour, 0, "a", false}, {time.Hour + 30*time.Second, 30 * time.Second, "a", false}, {time.Hour + 60*time.Second, 60 * time.Second, "a", false}}},
		{"taken over", held, []look{{time.Hour, 0, "a", false}, {time.Hour + 30*time.Second, 0, "b", false}, {time.Hour + 46*time.Second, 0, "b", true}}},
		{"the holder's clock is a minute ahead", held, []look{{time.Hour, time.Hour + time.Minute, "a", false}, {time.Hour + 16*time.Second, time.Hour + time.Minute, "a", true}}},
		{"the holder's clock is a minute behind", held, []look{{time.Hour, time.Hour - time.Minute, "a", false}, {time.Hour + 2*time.Second, time.Hour - 58*time.Second, "a", false}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &Sweeper{seen: map[string]sighting{}}
			for i, l := range tc.looks {
				object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", Annotations: map[string]string{}}}
				object.Spec.HolderIdentity = &l.holder
				object.Spec.LeaseDurationSeconds = ptr.To[int32](15)
				object.Spec.RenewTime = &metav1.MicroTime{Time: start.Add(l.renewed)}
				writeNote(object.Annotations, tc.note)
				if _, got := s.abandoned(object, start.Add(l.at)); got != l.want {
					t.Errorf("look %d: abandoned is %v, want %v", i, got, l.want)
				}
			}
		})
	}
	broken := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", Annotations: map[string]string{baselineAnnotation: "two"}}}
	if _, got := (&Sweeper{seen: map[string]sighting{}}).abandoned(broken, start); got {
		t.Error("a note that cannot be read is taken for an abandoned one")
	}
}

package kubebed

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/kube"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

// kubeSweeper lets instances vanish in mid-churn: another one, which does not
// know their churn, puts back what they left, and nothing else.
func kubeSweeper(t *testing.T, r *rig) {
	for _, tc := range []struct {
		name     string
		deadline time.Duration // from now
		paused   bool
		alive    bool       // it has not vanished
		meddle   func(*rig) // what happens before the sweeper comes
		want     int        // replicas afterwards; below 0: there is no workload
		held     bool       // the note afterwards
		says     string     // of the Event; empty: there is none
	}{
		{name: "vanished", deadline: -time.Second, want: 2, says: "its baseline of 2 replicas is restored from 4"},
		{name: "vanished, paused", deadline: -time.Second, paused: true, want: 2, says: "its baseline of 2 replicas is restored from 4"},
		{name: "before the deadline", deadline: time.Hour, want: 4, held: true},
		{name: "still there", deadline: -time.Second, alive: true, want: 4, held: true},
		{
			name: "somebody else's count", deadline: -time.Second, want: 3, says: "somebody else scaled it to 3 replicas, it is left alone",
			meddle: func(r *rig) { r.Kubectl("-n", r.shop, "scale", "deployment/web", "--replicas=3") },
		},
		{
			name: "its baseline", deadline: -time.Second, want: 2, says: "it has its baseline of 2 replicas",
			meddle: func(r *rig) { r.Kubectl("-n", r.shop, "scale", "deployment/web", "--replicas=2") },
		},
		{
			name: "the brake was pulled", deadline: -time.Second, want: 2, says: "its baseline of 2 replicas is restored from 4",
			meddle: func(r *rig) { r.annotate("deployment/web", "") },
		},
		{
			name: "another churn's by now", deadline: -time.Second, want: 4, says: `it belongs to churn "other/shop" meanwhile, and is left alone`,
			meddle: func(r *rig) { r.annotate("deployment/web", "other/shop") },
		},
		{
			name: "deleted", deadline: -time.Second, want: -1, says: "the workload is gone",
			meddle: func(r *rig) { r.Kubectl("-n", r.shop, "delete", "deployment", "web") },
		},
		{
			name: "another one of that name", deadline: -time.Second, want: 4, says: "the workload is another one of that name, and left alone",
			meddle: func(r *rig) {
				r.Kubectl("-n", r.shop, "delete", "deployment,service", "web")
				r.Deploy(bed.App{Namespace: r.shop, Name: "web", Replicas: 4, Annotations: r.annotation()})
			},
		},
		{
			name: "a workload that we may not touch", deadline: -time.Second, want: 4, held: true,
			meddle: func(r *rig) {
				r.Kubectl("-n", r.own, "annotate", "--overwrite", "lease", "steadyprobe-churn-shop", "steadyprobe.io/workload="+r.own+"/apps/v1/deployments/Deployment/web")
			},
		},
		{
			name: "a workload of the platform", deadline: -time.Second, want: 4, held: true,
			meddle: func(r *rig) {
				r.Kubectl("-n", r.own, "annotate", "--overwrite", "lease", "steadyprobe-churn-shop", "steadyprobe.io/workload=kube-system/apps/v1/deployments/Deployment/web")
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, r.In(t))
			front := r.Front()
			w := r.open(r.cluster(kube.ClusterOptions{Identity: "vanished", Kubeconfig: front.Kubeconfig(r.kubeconfig)}), r.options())
			r.await(w, all(2))
			e := r.campaign(w)
			r.elected(e)
			note := churn.Note{Held: true, Baseline: 2, Set: 4, Before: 2, Deadline: time.Now().Add(tc.deadline), Paused: tc.paused}
			if err := r.save(w, note); err != nil {
				t.Fatal(err)
			}
			if err := r.scale(w, 4); err != nil {
				t.Fatal(err)
			}
			r.await(w, all(4))
			if !tc.alive {
				front.Set(bed.Behaviour{Cut: true})
			}
			if tc.meddle != nil {
				tc.meddle(r)
			}
			logger, logged := record()
			s := r.cluster(kube.ClusterOptions{Identity: "other", Logger: logger}).Sweeper()
			s.Every = 500 * time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- s.Run(ctx) }()
			if tc.says != "" {
				testbed.WaitFor(t, "the note to be released", limit, func() bool { return r.lease().Annotations["steadyprobe.io/baseline"] == "" })
			} else {
				time.Sleep(5 * time.Second) // the lease has expired after 3
			}
			cancel()
			if err := <-done; err != nil {
				t.Errorf("sweeping: %v", err)
			}
			if tc.want >= 0 {
				if got := r.Replicas(r.shop, "web"); got != tc.want {
					t.Errorf("%d replicas, want %d", got, tc.want)
				}
			}
			l := r.lease()
			if _, held := l.Annotations["steadyprobe.io/baseline"]; held != tc.held {
				t.Errorf("the note is held: %v, want %v", held, tc.held)
			}
			if _, paused := l.Annotations["steadyprobe.io/paused"]; paused != tc.paused {
				t.Errorf("the note says paused: %v, want %v", paused, tc.paused)
			}
			if holder := *l.Spec.HolderIdentity; tc.alive != (holder == "vanished") && tc.says != "" {
				t.Errorf("the lease is of %q", holder)
			}
			said := ""
			for _, event := range r.events() {
				said += event.Reason + ": " + event.Message + "\n"
			}
			if tc.says == "" && said != "" || tc.says != "" && !strings.Contains(said, fmt.Sprintf("Restored: An instance has vanished in mid-churn: %s.", tc.says)) {
				t.Errorf("Events %q, want in them %q", said, tc.says)
			}
			if tc.alive && !e.leads() {
				t.Error("who was there has lost the lease")
			}
			if t.Failed() {
				t.Log(logged.String())
			}
		})
	}
}

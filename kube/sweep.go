package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/steadyprobe/steadyprobe/churn"
)

// DefaultSweepEvery is between two looks of a [Sweeper].
const DefaultSweepEvery = 30 * time.Second

// sweepLease is how long one restore may take.
const sweepLease = 15 * time.Second

// Sweeper restores what instances left that have vanished: it looks at the
// Leases of all churns in our namespace, also of those that this instance has
// never heard of. Where the deadline of a note has passed, and nobody renews
// the lease, it takes the lease and puts the baseline back, provided that the
// workload still has the count that the note tells of; else somebody else has
// scaled it meanwhile, and it is left alone. Then the note is released.
type Sweeper struct {
	// Every is between two looks. 0: DefaultSweepEvery. It is set before Run.
	Every time.Duration

	cluster  *Cluster
	logger   *slog.Logger
	identity string
	events   *events
	seen     map[string]sighting     // by name of the Lease
	trouble  map[string]churn.Reason // why one could not be restored, by its name
}

// sighting is since when a Lease is seen unchanged. Only our own clock counts.
type sighting struct {
	renewed string
	since   time.Time
}

// Sweeper returns one for our namespace.
func (c *Cluster) Sweeper() *Sweeper {
	return &Sweeper{cluster: c, logger: c.logger, seen: map[string]sighting{}, trouble: map[string]churn.Reason{}}
}

// Run looks at the Leases at once and then again and again, until ctx ends, and
// returns nil. What it does and what keeps it from that is logged. It is called
// once. Its error is that of a host without a name.
func (s *Sweeper) Run(ctx context.Context) error {
	identity, err := s.cluster.newIdentity()
	if err != nil {
		return err
	}
	s.identity = identity + "/sweeper"
	s.events = newEvents(s.cluster, s.cluster.client, s.identity)
	var writing sync.WaitGroup
	writing.Go(s.events.run)
	defer writing.Wait()
	defer s.events.close()
	every := s.Every
	if every <= 0 {
		every = DefaultSweepEvery
	}
	var trouble churn.Reason
	for {
		err := s.sweep(ctx)
		reason := churn.NoReason
		if err != nil {
			reason = reasonOf(err)
		}
		if ctx.Err() == nil && reason != trouble {
			trouble = reason
			if err != nil {
				s.logger.Warn("looking for what vanished instances left fails", "reason", reason.String(), "err", err)
			}
		}
		t := time.NewTimer(every)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

// sweep looks once.
func (s *Sweeper) sweep(ctx context.Context) error {
	list := metav1.ListOptions{LabelSelector: labels.Set{leaseLabel: "true"}.String()}
	body, err := s.cluster.client.do(ctx, request{
		verb: http.MethodGet, path: groupPath(leases, s.cluster.namespace, "leases"), list: &list,
	})
	if err != nil {
		return s.cluster.client.explain("listing", fmt.Sprintf("Leases in %q", s.cluster.namespace), err)
	}
	var all coordinationv1.LeaseList
	if err := json.Unmarshal(body, &all); err != nil {
		return s.cluster.client.explain("listing", "Leases", wrong(churn.Other, "%w", err))
	}
	there := map[string]bool{}
	for i := range all.Items {
		object := &all.Items[i]
		there[object.Name] = true
		if n, ok := s.abandoned(object, time.Now()); ok {
			s.restore(ctx, object, n)
		}
	}
	for name := range s.seen {
		if !there[name] {
			delete(s.seen, name)
			delete(s.trouble, name)
		}
	}
	return nil
}

// abandoned reports whether a Lease has a note that nobody cares for any more.
func (s *Sweeper) abandoned(object *coordinationv1.Lease, now time.Time) (churn.Note, bool) {
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&object.Spec)
	renewed := record.HolderIdentity + " " + record.RenewTime.UTC().Format(time.RFC3339Nano)
	if s.seen[object.Name].renewed != renewed {
		s.seen[object.Name] = sighting{renewed, now}
	}
	n, err := readNote(object.Annotations)
	if err != nil || !n.Held || !now.After(n.Deadline) {
		return n, false // one that cannot be read is reported by whoever is elected
	}
	patience := time.Duration(record.LeaseDurationSeconds) * time.Second
	return n, record.HolderIdentity == "" || now.Sub(s.seen[object.Name].since) > patience
}

// restore takes the lease, puts back what is to be put back, and gives the
// lease up.
func (s *Sweeper) restore(ctx context.Context, object *coordinationv1.Lease, n churn.Note) {
	log := s.logger.With("churn", object.Annotations[nameAnnotation], "lease", object.Namespace+"/"+object.Name,
		"workload", object.Annotations[workloadAnnotation], "baseline_replicas", n.Baseline)
	l := newLease(s.cluster, s.cluster.client, object.Annotations[nameAnnotation], s.identity, sweepLease, sweepLease*2/3)
	l.name = object.Name
	if err := l.take(ctx, object); err != nil {
		log.Debug("a lease cannot be taken", "err", err) // another one was faster
		return
	}
	// What was begun is ended: it is short, and half of it would be no restore.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepLease)
	defer cancel()
	t, what, err := l.putBack(ctx, object.Annotations, n)
	if err != nil {
		if reason := reasonOf(err); s.trouble[object.Name] != reason {
			s.trouble[object.Name] = reason
			log.Warn("restoring what a vanished instance left fails, and is tried again", "reason", reason.String(),
				"err", s.cluster.client.explain("restoring", object.Annotations[workloadAnnotation], err))
		}
	} else {
		delete(s.trouble, object.Name)
		if err := l.save(ctx, churn.Note{Paused: n.Paused}, "", ""); err != nil {
			log.Warn("releasing the note of a vanished instance fails, and is tried again", "err", s.cluster.client.explain("writing", "the Lease", err))
		}
		log.Warn("an instance has vanished in mid-churn", "done", what)
		s.events.announce(t, vanished(what))
	}
	if err := l.release(ctx); err != nil {
		log.Debug("a lease could not be given up, and is free when it expires", "err", err)
	}
}

// take becomes the holder of a Lease that is as it was seen.
func (l *lease) take(ctx context.Context, object *coordinationv1.Lease) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	object = object.DeepCopy()
	object.APIVersion, object.Kind = leases.String(), "Lease" // lists leave that out
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&object.Spec)
	now := metav1.Now()
	return l.write(ctx, http.MethodPut, l.path(l.name), object, resourcelock.LeaderElectionRecord{
		HolderIdentity: l.identity, LeaseDurationSeconds: int(l.duration / time.Second),
		AcquireTime: now, RenewTime: now, LeaderTransitions: record.LeaderTransitions + 1,
	})
}

// vanished is what is said beside a workload that somebody had to put right.
func vanished(what string) churn.Announcement {
	return churn.Announcement{Reason: churn.AnnounceRestored, Warning: true, Message: "An instance has vanished in mid-churn: " + what + "."}
}

// putBack restores the baseline of the workload that a Lease tells of, and says
// what came of it. Without an error there is nothing left to be done.
func (l *lease) putBack(ctx context.Context, annotations map[string]string, n churn.Note) (target, string, error) {
	o, err := decodeObject(annotations[workloadAnnotation])
	t := target{object: o, uid: annotations[uidAnnotation]}
	switch {
	case err != nil:
		return t, "", wrong(churn.Refused, "%w", err)
	case platform(o.namespace):
		return t, "", wrong(churn.Refused, "namespace %q belongs to the platform", o.namespace)
	case n.Original != "":
		return t, "", wrong(churn.Refused, "its original state is more than a count")
	}
	ctx, cancel, err := l.fence(ctx)
	if err != nil {
		return t, "", err
	}
	defer cancel()
	body, err := l.client.get(ctx, o.path("scale"))
	if err == nil {
		var read scaleState
		if read, err = decodeScale(body); err == nil {
			var what string
			what, err = decide(ctx, l.client, t, n, read, l.namespace+"/"+annotations[nameAnnotation])
			return t, what, err
		}
	}
	if reasonOf(err) == churn.NotFound {
		return t, "the workload is gone", nil
	}
	return t, "", err
}

// decide puts the baseline back where the workload is still ours.
func decide(ctx context.Context, c *client, t target, n churn.Note, read scaleState, owner string) (string, error) {
	switch {
	case t.uid != "" && read.uid != "" && t.uid != read.uid:
		return "the workload is another one of that name, and left alone", nil
	case read.desired == n.Baseline:
		return fmt.Sprintf("it has its baseline of %d replicas", n.Baseline), nil
	case !slices.Contains([]int{n.Set, n.Before}, read.desired):
		return fmt.Sprintf("somebody else scaled it to %d replicas, it is left alone", read.desired), nil
	}
	body, err := c.get(ctx, t.object.path())
	if err != nil {
		return "", err
	}
	state, err := decodeWorkload(body)
	if err != nil {
		return "", err
	}
	// Without an annotation its owner wants no churn, which a restore is not.
	if got := state.annotations[ChurnAnnotation]; got != "" && got != owner {
		return fmt.Sprintf("it belongs to churn %q meanwhile, and is left alone", got), nil
	}
	if _, err := patchScale(ctx, c, t.object, read, n.Baseline); err != nil {
		return "", err
	}
	return fmt.Sprintf("its baseline of %d replicas is restored from %d", n.Baseline, read.desired), nil
}

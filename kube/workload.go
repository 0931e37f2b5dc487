package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/steadyprobe/steadyprobe/churn"
)

// These may not change without notice: a [Workload] is all that a churn needs.
var (
	_ churn.Workload = (*Workload)(nil)
	_ churn.Notebook = (*Workload)(nil)
	_ churn.Election = (*Workload)(nil)
	_ churn.Floorer  = (*Workload)(nil)
)

// Workload is a workload of a cluster with one churn: what is scaled, the
// election of who scales it, the note of what is to be put back, and the Events
// that tell others. The methods of the churn interfaces are called as those
// say; all may be called concurrently.
type Workload struct {
	o         WorkloadOptions
	client    *client
	logger    *slog.Logger
	reference reference
	owner     string // what the annotation must say
	lease     *lease
	endpoints *endpoints
	events    *events
	target    atomic.Pointer[target]

	running sync.WaitGroup
	end     context.CancelFunc

	mu          sync.Mutex // held across calls: one at a time
	found       *resolved
	foundAt     time.Time
	view        view
	autoscalers verdict
	suspect     suspicion
}

// target is which object it is, for those who do not wait for others' calls.
type target struct {
	object object
	uid    string
}

// Workload returns a workload of the cluster, and begins to follow its
// endpoints. It does not wait for the server: what is wrong there is said by
// Observe. Its error names everything that is wrong with the options.
func (c *Cluster) Workload(o WorkloadOptions) (*Workload, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("checking churn %q: %w", o.Churn, err)
	}
	r, err := parseReference(o.Workload)
	if err != nil {
		return nil, err
	}
	if c.pod != "" && o.Namespace == c.namespace && ownsPod(r.name, c.pod) {
		return nil, fmt.Errorf("checking churn %q: workload %q: it seems to be our own, we are pod %q", o.Churn, o.Workload, c.pod)
	}
	selector, err := o.slices()
	if err != nil {
		return nil, err
	}
	identity, err := c.newIdentity()
	if err != nil {
		return nil, err
	}
	client, err := c.client.another()
	if err != nil {
		return nil, fmt.Errorf("preparing churn %q: %w", o.Churn, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Workload{
		o: o, client: client, logger: c.logger.With("churn", o.Churn), reference: r,
		owner:     c.namespace + "/" + o.Churn,
		lease:     newLease(c, client, o.Churn, identity, o.LeaseDuration, o.RenewDeadline),
		endpoints: newEndpoints(client, o.Namespace, selector),
		events:    newEvents(c, client, identity),
		end:       cancel,
	}
	w.running.Go(func() { w.endpoints.run(ctx, logr.FromSlogHandler(quiet{w.logger.Handler()})) })
	w.running.Go(w.events.run)
	return w, nil
}

// Close ends what Workload began, and waits up to 3 s for the last Events to be
// written. It is called after Campaign has returned, and may be called again.
func (w *Workload) Close() {
	w.end()
	w.events.close()
	w.running.Wait()
}

// Identity returns who this instance is in elections.
func (w *Workload) Identity() string { return w.lease.identity }

// Leader returns the identity of who holds the lease, empty while none is known.
func (w *Workload) Leader() string {
	if holder := w.lease.leader.Load(); holder != nil {
		return *holder
	}
	return ""
}

// Announce writes an Event beside the workload, sooner or later. It never
// blocks: of more than can be written the newest are lost.
func (w *Workload) Announce(a churn.Announcement) {
	if t := w.target.Load(); t != nil {
		w.events.announce(*t, a)
	}
}

// Load reads the note from the Lease. One that is about another workload, which
// an instance with another configuration or a workload of that name that was
// deleted has left, is dealt with as a [Sweeper] does, and not returned.
func (w *Workload) Load(ctx context.Context) (churn.Note, error) {
	n, annotations, err := w.lease.load(ctx)
	if err == nil && n.Held && w.foreign(annotations) {
		n, err = w.tidy(ctx, annotations, n)
	}
	if err != nil {
		return churn.Note{}, w.client.explain("reading the note in", "Lease "+w.lease.Describe(), err)
	}
	return n, nil
}

// foreign reports whether a note among annotations is about another workload.
func (w *Workload) foreign(annotations map[string]string) bool {
	o, err := decodeObject(annotations[workloadAnnotation])
	if err != nil {
		return false // written before it was known which one it is
	}
	if o.namespace != w.o.Namespace || o.name != w.reference.name {
		return true
	}
	t, uid := w.target.Load(), annotations[uidAnnotation]
	return t != nil && (o.kind != t.object.kind || o.resource.Group != t.object.resource.Group || uid != "" && t.uid != "" && uid != t.uid)
}

// tidy puts another workload back, and releases the note about it.
func (w *Workload) tidy(ctx context.Context, annotations map[string]string, n churn.Note) (churn.Note, error) {
	t, what, err := w.lease.putBack(ctx, annotations, n)
	if err != nil {
		return churn.Note{}, fmt.Errorf("restoring %s, which it is about: %w", annotations[workloadAnnotation], err)
	}
	w.logger.Warn("the note was about another workload", "workload", annotations[workloadAnnotation], "baseline_replicas", n.Baseline, "done", what)
	w.events.announce(t, vanished(what))
	n = churn.Note{Paused: n.Paused}
	return n, w.Save(ctx, n)
}

// Save writes the note to the Lease, and which workload it is about. It fails
// with [churn.Conflict] where this instance does not hold the lease.
func (w *Workload) Save(ctx context.Context, n churn.Note) error {
	var workload, uid string
	if t := w.target.Load(); t != nil {
		workload, uid = t.object.encode(), t.uid
	}
	return w.client.explain("writing the note to", "Lease "+w.lease.Describe(), w.lease.save(ctx, n, workload, uid))
}

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/steadyprobe/steadyprobe/churn"
)

var leases = coordinationv1.SchemeGroupVersion

// errNotElected is why an instance may not write.
var errNotElected = errors.New("this instance does not hold the lease")

// lease is the Lease of one churn. The elections write its spec, the notebook
// its annotations, both through here: each writes what it last read, with that
// resource version, so that none undoes the other and neither overwrites
// somebody else. It is a resourcelock.Interface, with client-go's rules for
// errors, and may be used concurrently.
type lease struct {
	client    *client
	logger    *slog.Logger
	namespace string
	name      string
	churn     string
	identity  string
	duration  time.Duration
	deadline  time.Duration // how long after a renewal we may be sure to hold it

	leader atomic.Pointer[string]

	writing chan struct{} // holds a token while somebody calls the server
	mu      sync.Mutex    // of all that follows
	object  *coordinationv1.Lease
	renewed time.Time // before our latest renewal was sent; zero: we do not hold it
	renewal chan struct{}
	note    churn.Note // as last saved or loaded
	trouble churn.Reason
}

func newLease(c *Cluster, calls *client, churnName, identity string, duration, deadline time.Duration) *lease {
	return &lease{
		client: calls, logger: c.logger, namespace: c.namespace, name: leaseName(churnName), churn: churnName,
		identity: identity, duration: duration, deadline: deadline,
		writing: make(chan struct{}, 1), renewal: make(chan struct{}, 1),
	}
}

func (l *lease) path(name ...string) []string {
	return append(groupPath(leases, l.namespace, "leases"), name...)
}

// lock waits for its turn to call the server.
func (l *lease) lock(ctx context.Context) error {
	select {
	case l.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lease) unlock() { <-l.writing }

// Get reads the Lease.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.lock(ctx); err != nil {
		return nil, nil, err
	}
	defer l.unlock()
	object, err := l.read(ctx)
	if l.met(ctx, err); err != nil {
		return nil, nil, err
	}
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&object.Spec)
	raw, err := json.Marshal(record)
	return record, raw, err
}

// Create makes the Lease, with us as its holder. One that somebody has deleted
// while we held it gets its note back.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	object := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: leases.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: l.name},
	}
	if until, _ := l.sure(); time.Now().Before(until) {
		object.Annotations = l.latest().Annotations
	}
	err := l.write(ctx, http.MethodPost, l.path(), object, record)
	l.met(ctx, err)
	return err
}

// Update writes who holds the Lease, and leaves the note alone.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	object := l.latest()
	if object == nil {
		return errors.New("the Lease was not read yet")
	}
	err := l.write(ctx, http.MethodPut, l.path(l.name), object, record)
	l.met(ctx, err)
	return err
}

// RecordEvent does nothing: the log says who is elected.
func (l *lease) RecordEvent(string) {}

// Identity returns who we are.
func (l *lease) Identity() string { return l.identity }

// Describe returns which Lease it is.
func (l *lease) Describe() string { return l.namespace + "/" + l.name }

// read gets the object and keeps it.
func (l *lease) read(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := l.patience(ctx)
	defer cancel()
	body, err := l.client.get(ctx, l.path(l.name))
	if err != nil {
		return nil, err
	}
	return l.keep(body)
}

// patience ends a call early enough for another one, on another connection,
// before the lease is lost.
func (l *lease) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.deadline/3)
}

// write sends the object with another record. What came of it, and when it was
// sent, decides how long we hold the lease.
func (l *lease) write(ctx context.Context, verb string, path []string, object *coordinationv1.Lease, record resourcelock.LeaderElectionRecord) error {
	object.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	maps.Copy(object.Labels, leaseLabels())
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations[nameAnnotation] = l.churn
	sent := time.Now()
	if _, err := l.send(ctx, verb, path, object); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = time.Time{}
	if record.HolderIdentity == l.identity {
		l.renewed = sent
	}
	select {
	case l.renewal <- struct{}{}:
	default:
	}
	return nil
}

// send writes the object and keeps the answer.
func (l *lease) send(ctx context.Context, verb string, path []string, object *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	ctx, cancel := l.patience(ctx)
	defer cancel()
	answer, err := l.client.do(ctx, request{verb: verb, path: path, body: body})
	if err != nil {
		return nil, err
	}
	return l.keep(answer)
}

// keep decodes an answer and makes it the latest object.
func (l *lease) keep(body []byte) (*coordinationv1.Lease, error) {
	object := &coordinationv1.Lease{}
	if err := json.Unmarshal(body, object); err != nil {
		return nil, fmt.Errorf("reading Lease %s: %w", l.Describe(), err)
	}
	holder := resourcelock.LeaseSpecToLeaderElectionRecord(&object.Spec).HolderIdentity
	l.leader.Store(&holder)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.object = object
	if holder != l.identity {
		l.renewed = time.Time{}
	}
	return object.DeepCopy(), nil
}

// latest returns a copy of the latest object, nil where none was seen.
func (l *lease) latest() *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.object.DeepCopy()
}

// sure returns until when we are sure to hold the lease, and until when a call
// that writes must have ended; both zero where we do not hold it.
func (l *lease) sure() (lead, call time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return time.Time{}, time.Time{}
	}
	return l.renewed.Add(l.deadline), l.renewed.Add(l.duration - l.duration/leaseMargin)
}

// leaseMargin is which part of the lease is kept free of calls at its end: the
// clocks of two machines do not run equally fast.
const leaseMargin = 15

// fence returns a context for calls that only the holder may make. It ends
// before somebody else could hold the lease.
func (l *lease) fence(ctx context.Context) (context.Context, context.CancelFunc, error) {
	_, call := l.sure()
	if !time.Now().Before(call) {
		return nil, nil, &churn.Error{Reason: churn.Conflict, Err: errNotElected}
	}
	ctx, cancel := context.WithDeadline(ctx, call)
	return ctx, cancel, nil
}

// release gives the lease up, where we hold it, and leaves the note.
func (l *lease) release(ctx context.Context) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	ctx, cancel, err := l.fence(ctx)
	if err != nil {
		return nil // there is nothing to give up
	}
	defer cancel()
	object := l.latest()
	for {
		record := resourcelock.LeaseSpecToLeaderElectionRecord(&object.Spec)
		if record.HolderIdentity != l.identity {
			return nil
		}
		// A second is client-go's way to say that it is to be had.
		record.HolderIdentity, record.LeaseDurationSeconds = "", 1
		err = l.write(ctx, http.MethodPut, l.path(l.name), object, *record)
		if !apierrors.IsConflict(err) {
			return err
		}
		if object, err = l.read(ctx); err != nil {
			return err
		}
	}
}

// met says what keeps us from standing for election, where that is news. The
// errors themselves go to client-go, which shows them to nobody.
func (l *lease) met(ctx context.Context, err error) {
	reason := churn.NoReason
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		reason = reasonOf(err)
	}
	if ended(ctx, err) {
		return
	}
	l.mu.Lock()
	before := l.trouble
	l.trouble = reason
	l.mu.Unlock()
	switch reason {
	case before:
	case churn.NoReason:
		l.logger.Info("standing for election again", "churn", l.churn, "lease", l.Describe())
	default:
		l.logger.Warn("standing for election fails", "churn", l.churn, "lease", l.Describe(), "reason", reason.String(),
			"err", l.client.explain("reaching", "the Lease", err))
	}
}

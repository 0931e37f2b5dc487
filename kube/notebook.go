package kube

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/steadyprobe/steadyprobe/churn"
)

// load reads the note, and the annotations that it is among.
func (l *lease) load(ctx context.Context) (churn.Note, map[string]string, error) {
	if err := l.lock(ctx); err != nil {
		return churn.Note{}, nil, err
	}
	defer l.unlock()
	object, err := l.read(ctx)
	if apierrors.IsNotFound(err) {
		return churn.Note{}, nil, nil
	}
	if err != nil {
		return churn.Note{}, nil, err
	}
	n, err := readNote(object.Annotations)
	if err != nil {
		return churn.Note{}, nil, wrong(churn.Other, "%w: put the workload right, then take away the annotations baseline, set and deadline", err)
	}
	l.remember(n)
	return n, object.Annotations, nil
}

// save replaces the note and says whose it is. It fails where we do not hold
// the lease, or cannot be sure to.
func (l *lease) save(ctx context.Context, n churn.Note, workload, uid string) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	ctx, cancel, err := l.fence(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	object := l.latest()
	for {
		if object.Annotations == nil {
			object.Annotations = map[string]string{}
		}
		writeNote(object.Annotations, n)
		if workload != "" {
			object.Annotations[workloadAnnotation] = workload
			object.Annotations[uidAnnotation] = uid
		}
		_, err = l.send(ctx, http.MethodPut, l.path(l.name), object)
		if !apierrors.IsConflict(err) {
			break
		}
		// Somebody wrote something else, or our own renewal was done although it
		// failed. We go on only while we are the holder.
		if object, err = l.read(ctx); err != nil {
			break
		}
		if resourcelock.LeaseSpecToLeaderElectionRecord(&object.Spec).HolderIdentity != l.identity {
			return &churn.Error{Reason: churn.Conflict, Err: errNotElected}
		}
	}
	if err == nil {
		l.remember(n)
	}
	return err
}

func (l *lease) remember(n churn.Note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note = n
}

// restores reports whether to have so many replicas is to be back at the
// baseline.
func (l *lease) restores(replicas int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.note.Held && l.note.Baseline == replicas
}

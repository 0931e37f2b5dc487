package kube

import (
	"context"
	"encoding/json"
	"net/http"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steadyprobe/steadyprobe/churn"
)

// mostConflicts is how often a change of status may come between reading the
// scale subresource and writing it, until the call gives up.
const mostConflicts = 5

// Scale asks for the replicas. It fails with [churn.Conflict] where the count
// is no longer that of the latest Observe, or where this instance does not hold
// the lease; with [churn.Refused] where the annotation is gone and it would
// not put the baseline back.
func (w *Workload) Scale(ctx context.Context, replicas int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel, err := w.lease.fence(ctx)
	if err != nil {
		return w.explain("scaling", err)
	}
	defer cancel()
	if !w.view.observed {
		return w.explain("scaling", wrong(churn.Conflict, "it was not observed yet"))
	}
	if err := w.find(ctx); err != nil {
		return w.explain("scaling", err)
	}
	for range mostConflicts {
		err = w.tryScale(ctx, replicas)
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil && (reasonOf(err) == churn.Unreachable || reasonOf(err) == churn.Other) {
		w.view.unsure, w.view.err = true, nil // the next look is a fresh one
	}
	return w.explain("scaling", err)
}

// tryScale reads the scale subresource and writes it. Its error is the server's
// own conflict where the workload has changed in between, be it only its
// status.
func (w *Workload) tryScale(ctx context.Context, replicas int) error {
	scale, err := w.readScale(ctx)
	if err != nil {
		return err
	}
	v := &w.view
	if scale.desired != v.desired {
		v.scale = scale
		return wrong(churn.Conflict, "%d replicas are desired, and not %d any more", scale.desired, v.desired)
	}
	if !w.lease.restores(replicas) {
		if scale.version == "" || scale.version != v.workload.version {
			if err := w.readWorkload(ctx); err != nil {
				return err
			}
		}
		if err := checkAnnotation(v.workload.annotations, w.owner); err != nil {
			return err
		}
	}
	after, err := patchScale(ctx, w.client, w.found.object, scale, replicas)
	if err != nil {
		return err
	}
	v.scale, v.desired, v.unsure = after, after.desired, false
	return nil
}

// patchScale writes the replicas, where the workload is still the one that was
// read.
func patchScale(ctx context.Context, c *client, o object, read scaleState, replicas int) (scaleState, error) {
	if read.version == "" {
		return scaleState{}, wrong(churn.Refused, "the server gives it no resource version, without which somebody else's change could be overwritten")
	}
	var patch struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec struct {
			Replicas int `json:"replicas"`
		} `json:"spec"`
	}
	patch.Metadata.ResourceVersion, patch.Spec.Replicas = read.version, replicas
	body, err := json.Marshal(patch)
	if err != nil {
		return scaleState{}, err
	}
	answer, err := c.do(ctx, request{verb: http.MethodPatch, path: o.path("scale"), body: body, content: types.MergePatchType})
	if err != nil {
		return scaleState{}, err
	}
	after, err := decodeScale(answer)
	if err == nil && after.desired != replicas {
		err = wrong(churn.Other, "the server was asked for %d replicas, and has made them %d", replicas, after.desired)
	}
	return after, err
}

// Floor returns the fewest replicas that PodDisruptionBudgets leave to the
// workload's pods, with percentages taken of the baseline. Its error is a
// [churn.Error].
func (w *Workload) Floor(ctx context.Context, baseline int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.view.known {
		return 0, w.explain("asking for the budgets of", wrong(churn.Unreachable, "it was not observed yet"))
	}
	body, err := w.client.do(ctx, request{verb: http.MethodGet, path: groupPath(policyv1.SchemeGroupVersion, w.o.Namespace, "poddisruptionbudgets")})
	if err != nil {
		return 0, w.explain("asking for the budgets of", err)
	}
	var list policyv1.PodDisruptionBudgetList
	if err := json.Unmarshal(body, &list); err != nil {
		return 0, w.explain("asking for the budgets of", wrong(churn.Other, "reading a list of PodDisruptionBudgets: %w", err))
	}
	n, err := floor(list.Items, podLabels(w.view.workload, w.view.scale), baseline)
	if err != nil {
		return 0, w.explain("asking for the budgets of", wrong(churn.Refused, "%w", err))
	}
	return n, nil
}

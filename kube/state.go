package kube

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steadyprobe/steadyprobe/churn"
)

// scaleState is what the scale subresource says. Its kind depends on the
// workload (autoscaling/v1, in OpenShift also extensions/v1beta1), these
// fields do not.
type scaleState struct {
	version  string // resource version of the workload too; empty: the server does not say
	uid      string
	desired  int
	replicas int // that there are, ready or not
	selector string
}

// decodeScale reads a scale subresource. The server leaves out what is 0.
func decodeScale(body []byte) (scaleState, error) {
	var s struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Replicas int `json:"replicas"`
		} `json:"spec"`
		Status struct {
			Replicas       int             `json:"replicas"`
			Selector       json.RawMessage `json:"selector"`
			TargetSelector string          `json:"targetSelector"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return scaleState{}, wrong(churn.Other, "reading the scale subresource: %w", err)
	}
	if s.Metadata.Name == "" {
		return scaleState{}, wrong(churn.Other, "reading the scale subresource: it has no name")
	}
	if s.Spec.Replicas < 0 {
		return scaleState{}, wrong(churn.Other, "reading the scale subresource: %d replicas", s.Spec.Replicas)
	}
	out := scaleState{
		version: s.Metadata.ResourceVersion, uid: string(s.Metadata.UID),
		desired: s.Spec.Replicas, replicas: s.Status.Replicas, selector: s.Status.TargetSelector,
	}
	if out.selector == "" {
		_ = json.Unmarshal(s.Status.Selector, &out.selector) // a map in extensions/v1beta1
	}
	return out, nil
}

// workloadState is what the workload itself says.
type workloadState struct {
	version     string
	annotations map[string]string
	template    labels.Set // of its pods, empty where it has no template
	ready       *int       // nil: it does not say
	deleting    bool
}

// decodeWorkload reads a workload of any kind.
func decodeWorkload(body []byte) (workloadState, error) {
	var w struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Template struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
			} `json:"template"`
		} `json:"spec"`
		Status struct {
			ReadyReplicas *int `json:"readyReplicas"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return workloadState{}, wrong(churn.Other, "reading the workload: %w", err)
	}
	return workloadState{
		version:     w.Metadata.ResourceVersion,
		annotations: w.Metadata.Annotations,
		template:    w.Spec.Template.Metadata.Labels,
		ready:       w.Status.ReadyReplicas,
		deleting:    w.Metadata.DeletionTimestamp != nil,
	}, nil
}

// counts reports whether workloads of a group say how many replicas are ready,
// and leave it out when it is none.
func counts(group string) bool {
	return group == "" || group == "apps" || group == "apps.openshift.io"
}

// readyReplicas returns how many replicas are ready. A custom resource that
// does not say so has as many as there are: its endpoints tell the rest.
func readyReplicas(group string, w workloadState, s scaleState) int {
	switch {
	case w.ready != nil:
		return *w.ready
	case counts(group):
		return 0
	default:
		return s.replicas
	}
}

// podLabels returns the labels of the workload's pods: those of its template,
// or where it has none those that its selector wants to be equal to something.
func podLabels(w workloadState, s scaleState) labels.Set {
	if len(w.template) > 0 {
		return w.template
	}
	set := labels.Set{}
	selector, err := labels.Parse(s.selector)
	if err != nil {
		return set
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if value, found := selector.RequiresExactMatch(r.Key()); found {
			set[r.Key()] = value
		}
	}
	return set
}

// deleted is the error of a workload that is about to be gone.
func (w workloadState) deleted() *churn.Error {
	if !w.deleting {
		return nil
	}
	return wrong(churn.NotFound, "it is being deleted")
}

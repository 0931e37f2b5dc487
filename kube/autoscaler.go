package kube

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steadyprobe/steadyprobe/churn"
)

// keda is where KEDA keeps its autoscalers
// (https://keda.sh/docs/latest/reference/scaledobject-spec/).
var keda = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}

var horizontal = schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}

// autoscaler is as much as is read of a HorizontalPodAutoscaler or a ScaledObject.
type autoscaler struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef autoscalingv1.CrossVersionObjectReference `json:"scaleTargetRef"`
	} `json:"spec"`
}

type autoscalers struct {
	Items []autoscaler `json:"items"`
}

// targets reports whether the autoscaler scales the object. Without a kind it
// means a Deployment; without a group it is taken to mean this one.
func (a *autoscaler) targets(o object) bool {
	ref := a.Spec.ScaleTargetRef
	if ref.Kind == "" {
		ref.Kind = "Deployment"
	}
	if ref.Name != o.name || ref.Kind != o.kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err != nil || gv.Empty() || gv.Group == o.resource.Group
}

// checkAutoscalers says which autoscaler scales the object.
func checkAutoscalers(kind string, all []autoscaler, o object) *churn.Error {
	for i := range all {
		if all[i].targets(o) {
			return &churn.Error{Reason: churn.Refused, Err: fmt.Errorf(
				"%s %q scales it: take that away, or allow it with allow_autoscaler", kind, all[i].Name)}
		}
	}
	return nil
}

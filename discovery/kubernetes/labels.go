package kubernetes

import (
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/util/strutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// prefix begins the labels that Prometheus has for Kubernetes.
const prefix = model.MetaLabelPrefix + "kubernetes_"

// objectLabels returns what all targets of an object have: its namespace, name,
// labels and annotations.
func objectLabels(o *unstructured.Unstructured, role string) model.LabelSet {
	set := model.LabelSet{prefix + "namespace": model.LabelValue(o.GetNamespace())}
	add(set, role, "name", o.GetName())
	for kind, all := range map[string]map[string]string{"label": o.GetLabels(), "annotation": o.GetAnnotations()} {
		for name, value := range all {
			name = strutil.SanitizeLabelName(name)
			add(set, role, kind+"_"+name, value)
			add(set, role, kind+"present_"+name, "true")
		}
	}
	return set
}

// add adds a label of a role.
func add(set model.LabelSet, role, name, value string) {
	set[model.LabelName(prefix+role+"_"+name)] = model.LabelValue(value)
}

// into fills a structure with what it has fields for, and reports whether the
// object has the form that its definition says.
func into(o *unstructured.Unstructured, structure any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, structure) == nil
}

// condition is one of the conditions of an object's status.
type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// isTrue returns "true" where there is a condition of this type that holds, else
// "false".
func isTrue(conditions []condition, kind string) string {
	for _, c := range conditions {
		if c.Type == kind {
			return strconv.FormatBool(c.Status == "True")
		}
	}
	return "false"
}

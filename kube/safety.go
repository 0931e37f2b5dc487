package kube

import (
	"fmt"
	"slices"
	"strings"

	"github.com/steadyprobe/steadyprobe/churn"
)

// ChurnAnnotation is the annotation of a workload that says which churn may
// scale it: NAMESPACE/CHURN, our own namespace and the churn's name. To take it
// away stops that churn.
const ChurnAnnotation = "steadyprobe.io/churn"

// wrong is an error with its reason.
func wrong(reason churn.Reason, format string, args ...any) *churn.Error {
	return &churn.Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// platform reports whether a namespace belongs to Kubernetes or OpenShift
// themselves. The prefixes are reserved by their documentation
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/).
func platform(namespace string) bool {
	return namespace == "openshift" || strings.HasPrefix(namespace, "openshift-") || strings.HasPrefix(namespace, "kube-")
}

// checkNamespace says why nothing may be scaled in a namespace.
func checkNamespace(namespace string, allowed []string) error {
	switch {
	case namespace == "":
		return fmt.Errorf("namespace: want that of the workload")
	case platform(namespace):
		return fmt.Errorf("namespace %q: it belongs to the platform, nothing is scaled there", namespace)
	case !slices.Contains(allowed, namespace):
		return fmt.Errorf("namespace %q: it is not among the allowed namespaces", namespace)
	}
	return nil
}

// checkAnnotation says why the annotations of a workload do not allow a churn,
// which is wanted to be named as owner.
func checkAnnotation(annotations map[string]string, owner string) *churn.Error {
	switch got, there := annotations[ChurnAnnotation]; {
	case !there:
		return wrong(churn.Refused, "it has no annotation %s=%s", ChurnAnnotation, owner)
	case got != owner:
		return wrong(churn.Refused, "its annotation %s says %q, want %q", ChurnAnnotation, got, owner)
	}
	return nil
}

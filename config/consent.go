package config

import (
	"slices"
	"strconv"
	"strings"
)

// systemNamespace reports whether a namespace holds what a cluster itself runs
// on, so that nothing in it is ever churned.
func systemNamespace(name string) bool {
	return strings.HasPrefix(name, "kube-") || name == "openshift" || strings.HasPrefix(name, "openshift-")
}

// churnNamespaces checks the namespaces whose workloads may be churned.
func (c *checker) churnNamespaces(l *Limits) {
	const path = "limits.churn_namespaces"
	for i, name := range l.ChurnNamespaces {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case !c.good(at):
		case !label(name):
			c.fail(at, "%s is not the name of a namespace; write each namespace by its name, without wildcards", quote(name))
		case systemNamespace(name):
			c.fail(at, "%s holds what the cluster itself runs on, and is never churned; remove it", quote(name))
		}
	}
}

// consents refuses churns in namespaces that limits.churn_namespaces does not
// name: who may write a churn has to say twice where it may scale.
func consents(c *checker, l *Limits, churns []Churn, checkers []*checker) {
	for i := range churns {
		k, one := churns[i].Kubernetes, checkers[i]
		if k == nil || k.Namespace == "" || !one.good("kubernetes.namespace") {
			continue
		}
		const at = "kubernetes.namespace"
		switch {
		case systemNamespace(k.Namespace):
			one.fail(at, "%s holds what the cluster itself runs on, and is never churned; write another one", quote(k.Namespace))
		case !slices.Contains(l.ChurnNamespaces, k.Namespace) && c.goodList("limits.churn_namespaces", len(l.ChurnNamespaces)):
			one.fail(at, "%s is not one of limits.churn_namespaces, which names where workloads may be scaled; add it there, or write another one", quote(k.Namespace))
		}
	}
}

package kube

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// floor returns the fewest replicas that the PodDisruptionBudgets of a namespace
// leave to pods of those labels: the greatest minAvailable of those that select
// them. A percentage is one of the baseline, rounded up as Kubernetes does. A
// maxUnavailable sets none, because it moves with the desired count.
func floor(budgets []policyv1.PodDisruptionBudget, pods labels.Set, baseline int) (int, error) {
	least := 0
	for i := range budgets {
		b := &budgets[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			return 0, fmt.Errorf("reading the selector of PodDisruptionBudget %q: %w", b.Name, err)
		}
		if b.Spec.MinAvailable == nil || !selector.Matches(pods) {
			continue
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, baseline, true)
		if err != nil {
			return 0, fmt.Errorf("reading minAvailable of PodDisruptionBudget %q: %w", b.Name, err)
		}
		least = max(least, n)
	}
	return least, nil
}

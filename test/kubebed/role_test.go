package kubebed

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// roles asks the API server for all that the account with the shipped Roles may
// do. It is what a churn needs, which the other tests prove, and nothing else.
func roles(t *testing.T, s *stand) {
	// What everybody with an account may do everywhere: ask who he is, what he may
	// do, and which authorities there are to trust.
	everybody := []string{
		"get,list,watch clustertrustbundles.certificates.k8s.io",
		"create selfsubjectreviews.authentication.k8s.io",
		"create selfsubjectaccessreviews.authorization.k8s.io", "create selfsubjectrulesreviews.authorization.k8s.io",
	}
	for namespace, want := range map[string][]string{
		"default":     nil,
		"kube-system": nil,
		s.Probes: {
			"get,list,create,update leases.coordination.k8s.io",
		},
		s.Namespace: {
			"get deployments.apps web", "get,patch deployments/scale.apps web",
			"get,list,watch endpointslices.discovery.k8s.io",
			"list horizontalpodautoscalers.autoscaling", "list scaledobjects.keda.sh", "list poddisruptionbudgets.policy",
			"create events",
		},
	} {
		want = append(want, everybody...)
		got := s.rules(namespace)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("in the namespace %s the account may\n\t%s\nwant\n\t%s", namespace, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
}

// rules returns what the account of the probes may do in a namespace, with
// resources and with everything else, in order.
func (s *stand) rules(namespace string) []string {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(s.t.Context(), &authorization.SelfSubjectRulesReview{
		Spec: authorization.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}, meta.CreateOptions{})
	if err != nil {
		s.t.Fatalf("asking what the account may do: %v", err)
	}
	if review.Status.Incomplete {
		s.t.Errorf("the API server does not say all that the account may do: %s", review.Status.EvaluationError)
	}
	var all []string
	for _, r := range review.Status.ResourceRules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				text := strings.Join(r.Verbs, ",") + " " + strings.TrimSuffix(resource+"."+group, ".")
				if len(r.ResourceNames) > 0 {
					text += " " + strings.Join(r.ResourceNames, ",")
				}
				all = append(all, text)
			}
		}
	}
	for _, r := range review.Status.NonResourceRules {
		if !slices.Equal(r.Verbs, []string{"get"}) {
			all = append(all, fmt.Sprint(r.Verbs, r.NonResourceURLs))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

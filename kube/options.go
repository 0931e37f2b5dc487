package kube

import (
	"errors"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultLeaseDuration is that of [WorkloadOptions].
const DefaultLeaseDuration = 15 * time.Second

// longestRetryPeriod is how often a Lease is renewed or looked at, at least.
const longestRetryPeriod = 2 * time.Second

// WorkloadOptions is what a [Workload] is made of.
type WorkloadOptions struct {
	Churn     string // its name, unique among those with the same own namespace
	Namespace string // of the workload
	Workload  string // KIND/NAME or KIND.GROUP/NAME; a resource or a short name will do for a kind
	// Service is the one whose EndpointSlices say what a door may send to. All
	// its endpoints are counted, so that it should select no other workload.
	Service string
	// Selector is a label selector of EndpointSlices, instead of Service. The
	// labels of a Service are on its slices.
	Selector string
	// AllowedNamespaces are those in which anything may be scaled.
	AllowedNamespaces []string
	// AllowAutoscaler churns although an autoscaler scales the workload too.
	AllowAutoscaler bool

	// LeaseDuration is after what another instance takes over from one that has
	// vanished, in whole seconds. 0: DefaultLeaseDuration.
	LeaseDuration time.Duration
	// RenewDeadline is when an instance that could not renew the lease stops, less
	// than LeaseDuration. 0: two thirds of it.
	RenewDeadline time.Duration
	// RetryPeriod is between two attempts to get or renew the lease, less than
	// five sixths of RenewDeadline. 0: a fifth of it, at most 2 s.
	RetryPeriod time.Duration
}

// Validate names everything that is wrong with the options, as far as that can
// be said without the cluster.
func (o *WorkloadOptions) Validate() error {
	c := *o
	return c.complete()
}

// complete sets defaults and names everything that is wrong.
func (o *WorkloadOptions) complete() error {
	var all []error
	check := func(err error) {
		if err != nil {
			all = append(all, err)
		}
	}
	if o.Churn == "" {
		check(errors.New("name: want that of the churn"))
	}
	check(checkNamespace(o.Namespace, o.AllowedNamespaces))
	_, err := parseReference(o.Workload)
	check(err)
	_, err = o.slices()
	check(err)
	check(o.times())
	return errors.Join(all...)
}

// times sets and checks what the election is made of.
func (o *WorkloadOptions) times() error {
	if o.LeaseDuration == 0 {
		o.LeaseDuration = DefaultLeaseDuration
	}
	if o.RenewDeadline == 0 {
		o.RenewDeadline = o.LeaseDuration * 2 / 3
	}
	if o.RetryPeriod == 0 {
		o.RetryPeriod = min(o.RenewDeadline/5, longestRetryPeriod)
	}
	switch {
	case o.LeaseDuration < time.Second || o.LeaseDuration%time.Second != 0:
		return fmt.Errorf("lease duration %v: want whole seconds, at least 1s", o.LeaseDuration)
	case o.RenewDeadline <= 0 || o.RenewDeadline >= o.LeaseDuration:
		return fmt.Errorf("renew deadline %v: want more than 0s and less than the lease duration %v", o.RenewDeadline, o.LeaseDuration)
	case o.RetryPeriod <= 0 || o.RetryPeriod >= o.RenewDeadline*5/6:
		return fmt.Errorf("retry period %v: want more than 0s and less than five sixths of the renew deadline %v", o.RetryPeriod, o.RenewDeadline)
	}
	return nil
}

// slices returns the label selector of the EndpointSlices.
func (o *WorkloadOptions) slices() (string, error) {
	switch {
	case (o.Service == "") == (o.Selector == ""):
		return "", errors.New("service: want one, or a selector of EndpointSlices")
	case o.Service != "":
		if wrong := validation.IsDNS1035Label(o.Service); len(wrong) > 0 {
			if wrong = validation.IsDNS1123Label(o.Service); len(wrong) > 0 { // allowed since 1.34
				return "", fmt.Errorf("service %q: %s", o.Service, wrong[0])
			}
		}
		return labels.Set{discoveryv1.LabelServiceName: o.Service}.String(), nil
	}
	selector, err := labels.Parse(o.Selector)
	if err != nil {
		return "", fmt.Errorf("selector %q: %w", o.Selector, err)
	}
	if selector.Empty() {
		return "", fmt.Errorf("selector %q: want one that does not select everything", o.Selector)
	}
	return selector.String(), nil
}

package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

func TestReadyEndpoints(t *testing.T) {
	pod := func(name string, conditions discoveryv1.EndpointConditions) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses: []string{"10.0.0.1"}, Conditions: conditions,
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: name},
		}
	}
	bare := func(address string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{address}}
	}
	ready := discoveryv1.EndpointConditions{Ready: ptr.To(true)}
	slice := func(family discoveryv1.AddressType, all ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{AddressType: family, Endpoints: all}
	}
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	for _, tc := range []struct {
		name   string
		slices []*discoveryv1.EndpointSlice
		want   int
	}{
		{"none", nil, 0},
		{"an empty slice", []*discoveryv1.EndpointSlice{slice(v4)}, 0},
		{"two", []*discoveryv1.EndpointSlice{slice(v4, pod("a", ready), pod("b", ready))}, 2},
		{"over two slices", []*discoveryv1.EndpointSlice{slice(v4, pod("a", ready)), slice(v4, pod("b", ready))}, 2},
		{"twice, for two ports", []*discoveryv1.EndpointSlice{slice(v4, pod("a", ready)), slice(v4, pod("a", ready))}, 1},
		{"both families", []*discoveryv1.EndpointSlice{slice(v4, pod("a", ready), pod("b", ready)), slice(v6, pod("a", ready), pod("b", ready))}, 2},
		{"both families, one behind", []*discoveryv1.EndpointSlice{slice(v4, pod("a", ready), pod("b", ready)), slice(v6, pod("a", ready))}, 2},
		{"not ready", []*discoveryv1.EndpointSlice{slice(v4, pod("a", discoveryv1.EndpointConditions{Ready: ptr.To(false)}), pod("b", ready))}, 1},
		{"nothing said is ready", []*discoveryv1.EndpointSlice{slice(v4, pod("a", discoveryv1.EndpointConditions{}))}, 1},
		{"terminating", []*discoveryv1.EndpointSlice{slice(v4, pod("a", discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(true)}))}, 0},
		{"without a pod", []*discoveryv1.EndpointSlice{slice(v4, bare("10.0.0.1"), bare("10.0.0.2"), bare("10.0.0.1"))}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := readyEndpoints(tc.slices); got != tc.want {
				t.Errorf("%d ready endpoints, want %d", got, tc.want)
			}
		})
	}
}

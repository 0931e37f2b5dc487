// Package bed starts a whole Kubernetes cluster for tests, of the real parts:
// etcd, API server with RBAC, controller manager, scheduler, kube-proxy, kubectl.
// Only the kubelet is a stand-in ([Bed] has one node): its pods are server
// processes, each at an address of its own, which become ready and end with
// grace as their [App] says. Doors ([Door]) in front of them follow the
// EndpointSlices, and a [Front] before the API server makes it slow or unwilling.
//
// All of it lives in a network namespace of its own, where every address of pods
// and services is one of the machine itself, and which nothing can leave. So
// the test process runs itself anew inside of one: see [Main].
//
// Everything ends with the test, and on Linux also when the test process dies in
// any other way. The programs are built before the namespace is entered, the
// control plane by scripts/tools.
package bed

// Package kubebed tests what churns in a real Kubernetes cluster: against a
// control plane of the real parts, with pods that are real servers and real
// doors in front of them. See the package bed, and the README for how to use
// the cluster by hand.
package kubebed

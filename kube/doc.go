// Package kube scales workloads of Kubernetes and OpenShift for package churn,
// elects the one instance that may, and keeps its note where it outlives the
// process. It is the only package that imports client-go.
//
// A [Cluster] is where workloads are; a [Workload] is one of them, with one
// churn; a [Sweeper] restores what instances left that have vanished.
//
// What is written where, and nothing else is:
//
//	the scale subresource of the workload   the replicas
//	Events beside the workload              what was done to it
//	one Lease per churn, in our namespace   who may churn, and the note: baseline, latest count, deadline
//
// # Fencing
//
// Who has lost the lease writes nothing more. Every call that writes ends
// before the lease could be somebody else's, counted from before the latest
// renewal was sent; the server is told to give up then as well; and it names the
// resource version it is meant for, so that a request that was held up on its
// way is refused once a successor has written.
//
// # Load on the API server
//
// Endpoints come from a watch, which is begun anew every 60 to 90 seconds, so
// that one that has died in silence is noticed. The rest is asked for, because
// the shipped Role has no watch on the workload:
//
//	the scale subresource       once a second; while what is seen is not what is desired 5 a second,
//	                            and once more when the endpoints change
//	the workload itself         only when its resource version is a new one
//	autoscalers                 every 10 s
//	PodDisruptionBudgets        before the first step, and before each to fewer
//	the Lease                   every 2 s, and one write per step
//
// A workload makes at most 20 calls a second, in bursts of 40, and after an
// answer with Retry-After nobody in the process calls that server for so long. A
// call is never repeated by itself.
package kube

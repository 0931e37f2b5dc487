// Package discovery finds targets outside of the file: by Prometheus's own
// packages for files, HTTP, DNS and Kubernetes, and by discovery/kubernetes for
// what these do not know. What they find is relabelled as in Prometheus.
//
// Discovered names are written by others than the probe's owner, so that
// nothing is reached which the configuration does not allow: a target whose name
// or address is not allowed, or that asks for more than it may, is refused,
// counted and listed. Labels that control a target come from relabel rules only.
//
// A [Plan] is what a configuration says of discovery, checked without asking
// anybody. A [Set] runs the sources of a plan and knows the targets that are
// admitted; who runs targets asks it for all of them whenever they may be
// others. What a source has found stays as it is while the source fails, and for
// a time when it has nothing any more.
package discovery

// Package demo builds the world that steadyprobe demo probes: four backends
// and two doors in front of them, all in this process and on loopback, with
// nothing installed. The backends can be scaled as a workload of a cluster can,
// and stop and start for real. One door follows them as a good reverse proxy
// does, the other imitates one that reloads on every change.
package demo

// Package saturation watches whether the probe's own process runs short of
// what it needs: then its figures tell about itself, not about the doors.
//
// A [Watch] takes a sample each second. A resource is saturated from the
// sample that exceeds its limit (the second such within the hold for cpu) until
// the hold has passed without one.
//
//	cpu               what the probe adds to a figure is above max(1 ms, 5 % of
//	                  the median service time): p99 of the Go scheduler's
//	                  latency, of lateness or of self latency; or the control
//	                  group's CPU limit stopped the process
//	file_descriptors  above 90 % of the soft limit of open files
//	ports             above 90 % of the ephemeral ports in use from one local
//	                  address towards one remote address and port
//	memory            above 90 % of a control group's limit, of GOMEMLIMIT, or
//	                  of what the machine can give
//
// On systems other than Linux only the Go runtime is read, for cpu and memory;
// what cannot be read counts as not saturated.
package saturation

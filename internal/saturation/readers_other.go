//go:build !linux

package saturation

// orSystem fills in the readers of this system: those of the Go runtime.
func (r Readers) orSystem() Readers {
	if r.SchedulingLatency == nil {
		r.SchedulingLatency = readSchedulingLatency()
	}
	if r.Throttled == nil {
		r.Throttled = func() (uint64, error) { return 0, nil }
	}
	if r.FileDescriptors == nil {
		r.FileDescriptors = func() (Usage, error) { return Usage{}, nil }
	}
	if r.Ports == nil {
		r.Ports = func() (Usage, error) { return Usage{}, nil }
	}
	if r.Memory == nil {
		goMemory := readGoMemory()
		r.Memory = func() ([]Usage, error) { return []Usage{goMemory()}, nil }
	}
	return r
}

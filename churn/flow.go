package churn

import "time"

// flowSamples is into how many parts a window is divided.
const flowSamples = 50

// flow is the traffic of a sliding window.
type flow struct {
	window  time.Duration
	samples []flowSample // oldest first; the first is the latest one that is not within the window, where there is one
	now     Traffic
}

type flowSample struct {
	at time.Time
	Traffic
}

// forget begins anew.
func (f *flow) forget() { f.samples = f.samples[:0] }

// add takes what there was until now.
func (f *flow) add(now time.Time, t Traffic) {
	if t.Completed < f.now.Completed || t.Failed < f.now.Failed { // a target is gone
		f.forget()
	}
	f.now = t
	n := len(f.samples)
	if n > 0 && now.Sub(f.samples[n-1].at) < f.window/flowSamples {
		return
	}
	f.samples = append(f.samples, flowSample{now, t})
	old := 0
	for old+1 < len(f.samples) && now.Sub(f.samples[old+1].at) >= f.window {
		old++
	}
	f.samples = append(f.samples[:0], f.samples[old:]...)
}

// latest returns what was completed within the window, and whether all of the
// window was seen.
func (f *flow) latest(now time.Time) (Traffic, bool) {
	if len(f.samples) == 0 || now.Sub(f.samples[0].at) < f.window {
		return Traffic{}, false
	}
	first := f.samples[0]
	return Traffic{Completed: f.now.Completed - first.Completed, Failed: f.now.Failed - first.Failed}, true
}

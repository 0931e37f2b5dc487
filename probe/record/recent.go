package record

import "time"

// Recent tells quantiles of what a set of recorders has observed since they
// were last asked for, at the cost of nothing for who records: it compares what
// their histograms count now with what they counted before. It may not be used
// concurrently. The zero Recent has seen nothing.
type Recent struct{ before, now []uint64 }

// Lateness returns a quantile (0 to 1) of the lateness of all ticks recorded
// since the last call, as the upper boundary of its native bucket, and 0 when
// there were none. A recorder that the last call named and this one does not
// hides as many observations of the others, once.
func (t *Recent) Lateness(q float64, recorders []*Recorder) time.Duration {
	return t.quantile(q, recorders, func(r *Recorder) { t.add(&r.lateness) })
}

// ServiceTime is Lateness for the service time of begun ticks, whatever their
// outcome.
func (t *Recent) ServiceTime(q float64, recorders []*Recorder) time.Duration {
	return t.quantile(q, recorders, func(r *Recorder) {
		for i := range r.serviceTime {
			t.add(&r.serviceTime[i])
		}
	})
}

// add adds what a histogram counts. Its recorder's lock is held.
func (t *Recent) add(h *Histogram) {
	for octave, place := range h.octaves {
		if place == 0 {
			continue
		}
		counts := h.native[int(place-1)<<octaveBits:][:octaveSize]
		for i, n := range counts {
			t.now[octave<<octaveBits|i] += n
		}
	}
}

func (t *Recent) quantile(q float64, recorders []*Recorder, add func(*Recorder)) time.Duration {
	if t.now == nil {
		t.before, t.now = make([]uint64, numOctaves*octaveSize), make([]uint64, numOctaves*octaveSize)
	}
	clear(t.now)
	for _, r := range recorders {
		r.mu.Lock()
		add(r)
		r.mu.Unlock()
	}
	var all uint64
	for i := range t.now {
		all += t.since(i)
	}
	at := time.Duration(0)
	left := uint64(q * float64(all))
	for i := 0; all > 0 && i < len(t.now); i++ {
		n := t.since(i)
		if n > left || n == left && n > 0 {
			at = time.Duration(native.limits[i])
			break
		}
		left -= n
	}
	t.before, t.now = t.now, t.before
	return at
}

// since returns how many observations have come to a bucket.
func (t *Recent) since(i int) uint64 { return t.now[i] - min(t.now[i], t.before[i]) }

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

// retryWithin is the most time after which a Read that failed is run again.
const retryWithin = 2 * time.Second

// Observe returns what Read prints, or has printed no longer than the interval
// ago. What failed is said again until it is run again, which is after the
// interval, or after two seconds where that is longer.
//
// Read prints either a JSON object with the whole numbers desired, ready
// (default: desired) and endpoints (default: ready), or lines of which the first
// that is nothing but a whole number is the count of replicas.
//
// A count says what is there, not what was asked for. While it is on its way
// from a change that the program has accepted, what was asked for is therefore
// taken from that. The change is over when its count is seen; a count that is
// not on its way is somebody else's.
func (w *Workload) Observe(ctx context.Context) (churn.Observation, error) {
	if err := w.take(ctx); err != nil {
		return churn.Observation{}, err
	}
	defer w.release()
	pause := w.o.Interval
	if w.err != nil {
		pause = min(pause, retryWithin)
	}
	if !w.read.IsZero() && time.Since(w.read) < pause {
		if w.err != nil {
			return churn.Observation{}, w.err
		}
		return w.last, nil
	}
	if err := w.look(ctx); err != nil {
		return churn.Observation{}, err
	}
	return w.last, nil
}

// look runs Read. The caller holds the turn.
func (w *Workload) look(ctx context.Context) error {
	out, err := w.run(ctx, w.o.Read)
	w.read = time.Now()
	var r reading
	if err == nil {
		if r, err = parse(out); err != nil {
			err = wrong(churn.Other, fmt.Errorf("reading what %q printed: %w", w.o.Read[0], err))
		}
	}
	if w.err = err; err != nil {
		return err
	}
	w.last = w.settle(r)
	return nil
}

// settle says what a reading means while a change is on its way.
func (w *Workload) settle(r reading) churn.Observation {
	m := w.moving
	o := r.Observation
	if m == nil || r.whole || o.Ready == m.to || o.Ready < m.low || o.Ready > m.high {
		w.moving = nil
		return o
	}
	o.Desired = m.before
	if m.accepted {
		o.Desired = m.to
	}
	return o
}

// reading is what Read printed.
type reading struct {
	churn.Observation
	whole bool // it says what is desired; else all three are the count
}

// parse takes apart what Read printed.
func parse(out output) (reading, error) {
	if text := bytes.TrimSpace(out.text); bytes.HasPrefix(text, []byte("{")) {
		if out.cut {
			return reading{}, fmt.Errorf("want a JSON object of at most %d bytes", mostOutput)
		}
		return parseObject(text)
	}
	text := string(out.text)
	if out.cut { // the last line may be the beginning of one
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.Trim(line, "0123456789") != "" {
			continue
		}
		n, err := strconv.Atoi(line)
		if err != nil {
			return reading{}, fmt.Errorf("want a count: %w", err)
		}
		return reading{Observation: churn.Observation{Desired: n, Ready: n, Endpoints: n}}, nil
	}
	return reading{}, fmt.Errorf("want a line that is a whole number, or a JSON object; got %q", shortened(text))
}

func parseObject(text []byte) (reading, error) {
	var o struct{ Desired, Ready, Endpoints *int }
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&o); err != nil {
		return reading{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return reading{}, errors.New("want one JSON object and nothing behind it")
	}
	if o.Desired == nil {
		return reading{}, errors.New(`want "desired" in the JSON object`)
	}
	if o.Ready == nil {
		o.Ready = o.Desired
	}
	if o.Endpoints == nil {
		o.Endpoints = o.Ready
	}
	r := reading{churn.Observation{Desired: *o.Desired, Ready: *o.Ready, Endpoints: *o.Endpoints}, true}
	if min(r.Desired, r.Ready, r.Endpoints) < 0 {
		return reading{}, fmt.Errorf("want 0 or more of each; got %d desired, %d ready, %d endpoints", r.Desired, r.Ready, r.Endpoints)
	}
	return r, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/steadyprobe/steadyprobe/bench/peer"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// reference is the row that the others are compared with.
const reference = "steadyprobe"

// result is one run of one tool, a line of results.jsonl.
type result struct {
	Case    string    `json:"case"`
	Tool    string    `json:"tool"`
	Version string    `json:"version"`
	Round   int       `json:"round"` // from 1
	Args    []string  `json:"args"`
	Began   time.Time `json:"began"`
	Load    float64   `json:"load_average_before"`

	Wall   float64 `json:"wall_seconds"`
	User   float64 `json:"user_seconds"`   // CPU, as the kernel charged it to the process
	System float64 `json:"system_seconds"` // CPU, likewise
	MaxRSS uint64  `json:"max_rss_bytes"`  // the most memory it had resident until shortly before its end; 0: not known

	Door          counts  `json:"door"`           // what the door counted during the run
	Middle        counts  `json:"middle"`         // of that, in the middle of the run
	MiddleSeconds float64 `json:"middle_seconds"` // how long the middle was

	Silent bool        `json:"silent"` // the tool says nothing
	Report peer.Report `json:"report"` // what the tool says
	Error  string      `json:"error,omitempty"`
}

// perSecond returns the rate of what was counted in the middle of the run.
func (r *result) perSecond(n uint64) float64 { return float64(n) / r.MiddleSeconds }

// memory returns the bytes that were resident, NaN where that is not known.
func (r *result) memory() float64 {
	if r.MaxRSS == 0 {
		return math.NaN()
	}
	return float64(r.MaxRSS)
}

// bench runs all tools in turn and keeps what came of it.
type bench struct {
	options
	scratch  string // folder for files of the tools
	tools    []installed
	raw      *results
	progress io.Writer
	runs     []*result
}

// all runs every case. A tool that fails does not end it.
func (b *bench) all(ctx context.Context, cases []workload) error {
	for i := range cases {
		if err := testbed.Hold(func(o *testbed.Holder) error { return b.one(ctx, &cases[i], o) }); err != nil {
			return fmt.Errorf("measuring %q: %w", cases[i].name, err)
		}
	}
	return nil
}

// one runs a case: the tools in turn, A B C A B C, so that a change of the
// machine in between meets all of them. One that has failed is not asked again.
func (b *bench) one(ctx context.Context, w *workload, o *testbed.Holder) error {
	d := w.door(o)
	out := map[string]bool{}
	for round := 1; round <= b.rounds; round++ {
		for _, t := range b.tools {
			if out[t.Name] || !w.takesPart(t.Tool) {
				continue
			}
			r, err := b.run(ctx, w, d, t)
			if errors.Is(err, peer.ErrUnfit) {
				out[t.Name] = true
				continue
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.Round = round
			if err != nil {
				out[t.Name] = true
				r.Error = err.Error()
			}
			b.tell(w, r)
			b.runs = append(b.runs, r)
			if err := b.raw.write(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell writes a line for a run that has ended.
func (b *bench) tell(w *workload, r *result) {
	fmt.Fprintf(b.progress, "%s %d/%d %s:", r.Case, r.Round, b.rounds, r.Tool)
	if r.Error != "" {
		fmt.Fprintf(b.progress, " %s\n", r.Error)
		return
	}
	for _, m := range w.columns {
		if v := m.of(r); v == v {
			fmt.Fprintf(b.progress, " %s %s,", m, m.show(v))
		}
	}
	fmt.Fprintf(b.progress, " load before %.1f\n", r.Load)
}

// run has one tool do the work once. The error is of the tool; the result holds
// what was measured until then.
func (b *bench) run(ctx context.Context, w *workload, d door, t installed) (*result, error) {
	work := w.work
	work.URL, work.Duration = d.URL(), w.length(t.Tool, b.length)
	scratch, err := os.MkdirTemp(b.scratch, "run")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the folder around it goes too
	work.Scratch = scratch
	call, err := t.Call(work)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(b.pause):
	}
	r := &result{
		Case: w.name, Tool: t.Name, Version: t.version, Args: call.Args,
		Load: loadAverage(), Began: time.Now(), Silent: call.Endless,
	}
	before := d.Counts()
	c := child{path: t.path, call: call, length: work.Duration}
	err = c.run(ctx, r, watch(d, w.stalls, work.Duration, r))
	r.Door = d.Counts().minus(before)
	if err != nil {
		return r, err
	}
	if !call.Endless {
		r.Report, err = call.Read(t.path, c.stdout.Bytes())
	}
	return r, err
}

// moment is something that is due some time after the start of a run.
type moment struct {
	at time.Duration
	do func()
}

// watch returns what there is to do at the door while a tool works: counting
// the middle of the run, which leaves out the tool's start and end, and stalls.
func watch(d door, stalls bool, length time.Duration, r *result) []moment {
	if stalls {
		var all []moment
		for at := (stallEvery - stallFor) / 2; at < length; at += stallEvery {
			all = append(all, moment{at, func() { d.Stall(stallFor) }})
		}
		return all
	}
	var begin time.Time
	var atBegin counts
	return []moment{
		{length / 5, func() { begin, atBegin = time.Now(), d.Counts() }},
		{length * 9 / 10, func() {
			r.Middle = d.Counts().minus(atBegin)
			r.MiddleSeconds = time.Since(begin).Seconds()
		}},
	}
}

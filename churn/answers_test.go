package churn

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sight is a sighting, in milliseconds since the start of a test.
type sight struct {
	name        string
	first, last int // first below 0: none since the mark
	answers     uint64
}

// TestAnswers has 4 backends, or 2, that answer every 10 ms in turn for the 10 s
// before a call: with 4 each one every 40 ms, so that 800 ms are silence, with 2
// every 20 ms, so that 400 ms are.
func TestAnswers(t *testing.T) {
	four := []sight{{"a", 0, 9990, 250}, {"b", 10, 9980, 250}, {"c", 20, 9970, 250}, {"d", 30, 9960, 250}}
	two := []sight{{"a", 0, 9990, 500}, {"b", 10, 9980, 500}, {"c", 5, 300, 10}, {"d", 15, 310, 10}}
	for _, tc := range []struct {
		name     string
		before   []sight // the call at 10 s
		from, to int
		settled  []sight // at 16 s
		after    []sight // before the call at 20 s
		want     felt    // in all
	}{
		{
			"two are new", two, 2, 4,
			[]sight{{"a", 10010, 15990, 1}, {"b", 10020, 15980, 1}, {"e", 12500, 15970, 1}, {"f", 12300, 15960, 1}}, nil,
			felt{2300 * ms, -1},
		},
		{
			"new ones have the names of old ones", two, 2, 4,
			[]sight{{"a", 10010, 15990, 1}, {"c", 12300, 15970, 1}}, nil,
			felt{2300 * ms, -1},
		},
		{
			"the first answer comes late", two, 2, 3,
			[]sight{{"a", 10010, 15990, 1}},
			[]sight{{"a", 10010, 15990, 1}, {"e", 17000, 19990, 1}},
			felt{7 * second, -1},
		},
		{
			"nobody new answers", two, 2, 3,
			[]sight{{"a", 10010, 15990, 1}, {"c", -1, 300, 0}},
			[]sight{{"a", 10010, 15990, 1}, {"c", -1, 300, 0}},
			unfelt,
		},
		{
			"more are new than were added", two, 2, 3,
			[]sight{{"a", 10010, 15990, 1}, {"e", 12500, 15970, 1}, {"f", 12300, 15960, 1}},
			[]sight{{"a", 10010, 15990, 1}, {"e", 12500, 15970, 1}, {"f", 12300, 15960, 1}},
			unfelt,
		},
		{
			"fewer answered before than there were", two[:1], 2, 4,
			[]sight{{"a", 10010, 15990, 1}, {"b", 10500, 15990, 1}},
			[]sight{{"a", 10010, 15990, 1}, {"b", 10500, 15990, 1}},
			unfelt,
		},
		{
			"more answered before than there were", four, 3, 4,
			[]sight{{"e", 10500, 15990, 1}}, []sight{{"e", 10500, 15990, 1}},
			unfelt,
		},
		{
			"two are removed", four, 4, 2,
			nil,
			[]sight{{"a", 10010, 19990, 500}, {"b", 10020, 19980, 500}, {"c", 10030, 10090, 3}, {"d", 10040, 11250, 9}},
			felt{-1, 1250 * ms},
		},
		{
			"one of them had answered for the last time before the call", four, 4, 2,
			nil,
			[]sight{{"a", 10010, 19990, 500}, {"b", 10020, 19980, 500}, {"c", -1, 9970, 0}, {"d", -1, 9960, 0}},
			felt{-1, 0},
		},
		{
			"one of them still answers", four, 4, 2,
			nil,
			[]sight{{"a", 10010, 19990, 500}, {"b", 10020, 19980, 500}, {"c", 10030, 10090, 3}, {"d", 10040, 19300, 9}},
			unfelt,
		},
		{
			"one more than was removed is silent", four, 4, 2,
			nil,
			[]sight{{"a", 10010, 19990, 500}, {"b", 10020, 10030, 2}, {"c", 10030, 10090, 3}, {"d", 10040, 11250, 9}},
			unfelt,
		},
		{
			"all are silent, as the door is down", four, 4, 2,
			nil,
			[]sight{{"a", 10010, 11000, 9}, {"b", 10020, 11000, 9}, {"c", 10030, 11000, 9}, {"d", 10040, 11000, 9}},
			unfelt,
		},
		{
			"all are removed", four, 4, 0,
			nil,
			[]sight{{"a", 10010, 10990, 9}, {"b", 10020, 11000, 9}, {"c", 10030, 11010, 9}, {"d", 10040, 11020, 9}},
			felt{-1, 1020 * ms},
		},
		{
			"from none", []sight{{"a", 0, 4000, 9}, {"b", 10, 4010, 9}}, 0, 2,
			[]sight{{"a", 10700, 15000, 9}, {"b", 10800, 15000, 9}}, nil,
			felt{700 * ms, -1},
		},
		{
			"from none that still answer", []sight{{"a", 0, 6000, 9}}, 0, 2,
			[]sight{{"a", 10700, 15000, 9}}, []sight{{"a", 10700, 15000, 9}},
			unfelt,
		},
		{
			// 8 answers in 10 s: one of each in 5 s, so that 100 s are silence.
			"too few answers to tell who is gone",
			[]sight{{"a", 0, 9000, 2}, {"b", 10, 8000, 2}, {"c", 20, 7000, 2}, {"d", 30, 6000, 2}}, 4, 2,
			nil, []sight{{"a", 11000, 19000, 4}, {"b", 12000, 18000, 4}, {"c", -1, 7000, 0}, {"d", -1, 6000, 0}},
			unfelt,
		},
		{
			"too few answers to know all", []sight{{"a", 0, 9000, 1}, {"b", 10, 8000, 1}, {"c", 20, 7000, 1}}, 4, 5,
			[]sight{{"d", 12000, 13000, 2}}, []sight{{"d", 12000, 13000, 2}},
			unfelt,
		},
		{"nobody has ever answered", nil, 4, 2, nil, nil, unfelt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Now()
			at := func(n int) time.Time { return start.Add(time.Duration(n) * ms) }
			var now []sight
			a := answers{backends: func(bool) []Sighting {
				var all []Sighting
				for _, s := range now {
					one := Sighting{Name: s.name, Last: at(s.last), Answers: s.answers}
					if s.first >= 0 {
						one.First = at(s.first)
					}
					all = append(all, one)
				}
				return all
			}}
			a.begin(at(0))
			now = tc.before
			if f := a.mark(at(10_000), tc.from, tc.to); f != unfelt {
				t.Errorf("before the first call: %v", f)
			}
			a.watch(at(10_000))
			got := unfelt
			add := func(f felt) {
				for _, one := range []struct{ to, from *time.Duration }{{&got.first, &f.first}, {&got.last, &f.last}} {
					if *one.from >= 0 && *one.to >= 0 {
						t.Errorf("it was felt twice: %v", f)
					}
					*one.to = max(*one.to, *one.from)
				}
			}
			now = tc.settled
			add(a.settled())
			if tc.after != nil {
				now = tc.after
			}
			add(a.mark(at(20_000), tc.to, tc.from))
			if got != tc.want {
				t.Errorf("felt %v, want %v", got, tc.want)
			}
			if f := a.mark(at(30_000), tc.to, tc.to); f != unfelt { // a restore is no step
				t.Errorf("after what was not watched: %v", f)
			}
		})
	}
}

// crowd answers the requests of a door in turn, as a workload scales.
type crowd struct {
	*fakeWorkload
	lag   time.Duration // until a new one answers
	drain time.Duration // until a removed one does not any more

	look      sync.Mutex
	sightings map[string]*Sighting
	count     int
}

// answer is one request.
func (c *crowd) answer() {
	c.mu.Lock()
	n, since := c.desired, time.Since(c.changed)
	if c.before > c.desired && since < c.drain || c.before < c.desired && since < c.lag {
		n = c.before
	}
	c.mu.Unlock()
	if n == 0 {
		return
	}
	c.look.Lock()
	defer c.look.Unlock()
	c.count++
	name := fmt.Sprint("web-", c.count%n)
	s := c.sightings[name]
	if s == nil {
		s = &Sighting{Name: name}
		c.sightings[name] = s
	}
	s.Last = time.Now()
	if s.Answers++; s.First.IsZero() {
		s.First = s.Last
	}
}

func (c *crowd) backends(mark bool) []Sighting {
	c.look.Lock()
	defer c.look.Unlock()
	var all []Sighting
	for _, s := range c.sightings {
		all = append(all, *s)
		if mark {
			s.First, s.Answers = time.Time{}, 0
		}
	}
	return all
}

// TestStepsAreFelt, by a StatefulSet's names, for 4 to 2 and back.
func TestStepsAreFelt(t *testing.T) {
	for _, tc := range []struct {
		name        string
		rate        time.Duration
		first, last uint64 // of 2 steps up and 3 down in 49 s
	}{
		// Of the first step nothing is known, as nobody had answered before.
		{"1,000 a second", ms, 2, 2},
		{"20 a second", 50 * ms, 2, 2},
		{"one in 7 s", 7 * second, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(4)
				f.ready = 700 * ms
				door := &crowd{fakeWorkload: f, lag: 900 * ms, drain: 300 * ms, sightings: map[string]*Sighting{}}
				b := newBench(t, f, func(o *Options) {
					o.Plan = Plan{Steps: []Step{{Replicas: 2, Hold: 10 * second}, {Replicas: 4, Hold: 10 * second}}}
					o.Backends = door.backends
				})
				b.run(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				turn := time.NewTicker(tc.rate)
				defer turn.Stop()
				step := make(chan struct{})
				go func() {
					defer close(step)
					for {
						select {
						case <-turn.C:
							door.answer()
						case <-ctx.Done():
							return
						}
					}
				}()
				b.at(49*second + ms/2)
				cancel()
				<-step
				if err := b.stop(); err != nil { // which ends the last step
					t.Error(err)
				}
				s := b.snapshot()
				if s.FirstResponse.Count != tc.first || s.LastResponse.Count != tc.last {
					t.Errorf("%d first and %d last answers, want %d and %d", s.FirstResponse.Count, s.LastResponse.Count, tc.first, tc.last)
				}
				// Up to one request of each backend late, or early.
				off := 4 * tc.rate.Seconds() * float64(tc.first)
				if got := s.FirstResponse.Sum - 0.9*float64(tc.first); got < -0.0001 || got > off {
					t.Errorf("first answers after %v s", s.FirstResponse.Sum)
				}
				if got := s.LastResponse.Sum - 0.3*float64(tc.last); got > 0.0001 || got < -off {
					t.Errorf("last answers after %v s", s.LastResponse.Sum)
				}
			})
		})
	}
}

// TestExternalChangeIsNotFelt: what somebody else has ended says nothing of the
// step that they ended.
func TestExternalChangeIsNotFelt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		b := newBench(t, f, func(o *Options) {
			o.Plan = Plan{Steps: []Step{{Replicas: 2, Hold: 10 * second}, {Replicas: 4, Hold: 10 * second}}}
			o.Backends = func(bool) []Sighting { // all of those that there are answer all the time
				var all []Sighting
				for i := range 4 {
					s := Sighting{Name: fmt.Sprint("web-", i), First: f.start, Last: f.start.Add(20*second + 10*ms), Answers: 1000}
					if i < f.count() {
						s.Last = time.Now()
					}
					all = append(all, s)
				}
				return all
			}
		})
		b.run(t)
		b.at(20*second + 100*ms) // the second one to 2
		f.set(3)
		b.at(50 * second)
		if s := b.snapshot(); s.State != Stopped || s.LastResponse.Count != 0 {
			t.Errorf("%+v", s)
		}
		f.set(2)
		b.at(60 * second)
		if err := b.cycle.Resume(t.Context()); err != nil {
			t.Error(err)
		}
		b.at(80 * second)
		if s := b.snapshot(); s.State != Running || s.Steps[Up] == 0 || s.LastResponse.Count != 0 {
			t.Errorf("felt %d times: %+v", s.LastResponse.Count, s)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

package faultdoor

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ends sends one request on a connection of its own at each of those times
// and returns when the answers were complete, both from the start of the
// bubble and in milliseconds.
func ends(t *testing.T, b Behaviour, at ...int) []int {
	t.Helper()
	d := New(b)
	start := time.Now()
	done := make([]int, len(at))
	var all sync.WaitGroup
	for i, ms := range at {
		all.Go(func() {
			nc, err := d.Dial(context.Background(), "", "")
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			time.Sleep(time.Duration(ms) * time.Millisecond)
			if got := exchange(nc, reader(nc), get); got != "200 3" {
				t.Errorf("request %d: %q", i, got)
			}
			took := time.Since(start)
			if took%time.Millisecond != 0 {
				t.Errorf("request %d ended at %v, not at a whole millisecond", i, took)
			}
			done[i] = int(took / time.Millisecond)
		})
	}
	all.Wait()
	d.Close()
	return done
}

func TestWhen(t *testing.T) {
	ms := time.Millisecond
	for _, row := range []struct {
		name string
		b    func(start time.Time) Behaviour
		at   []int
		want []int
	}{
		{"at once", func(time.Time) Behaviour { return HTTP(OK()) }, []int{0, 1, 7}, []int{0, 1, 7}},
		{"delay", func(time.Time) Behaviour { return HTTP(Delay(20*ms, OK())) }, []int{0, 1, 7}, []int{20, 21, 27}},
		{"slow body", func(time.Time) Behaviour { return HTTP(SlowBody(3, 2, 5*ms)) }, []int{0, 1}, []int{10, 11}}, // 2 pieces
		// The window is half open: 10 waits, 20 does not.
		{"stall", func(start time.Time) Behaviour {
			return HTTP(Stall(start.Add(10*ms), start.Add(20*ms), OK()))
		}, []int{9, 10, 15, 19, 20, 25}, []int{9, 20, 20, 20, 20, 25}},
		// One worker, 10 ms each: 0 ends at 10, 1 waits until 10 and ends at
		// 20, 2 at 30; 50 finds it idle.
		{"queue", func(time.Time) Behaviour { return HTTP(NewQueue(10 * ms).Handle(OK())) }, []int{0, 1, 2, 50}, []int{10, 20, 30, 60}},
		// Two at the same instant: one is first.
		{"queue of equals", func(time.Time) Behaviour { return HTTP(NewQueue(10 * ms).Handle(OK())) }, []int{5, 5}, []int{15, 25}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := ends(t, row.b(time.Now()), row.at...)
				slices.Sort(got)
				if !slices.Equal(got, row.want) {
					t.Errorf("sent at %v, ended at %v, want %v", row.at, got, row.want)
				}
			})
		})
	}
}

func TestIdleTimeoutIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(IdleTimeout(time.Second, Delay(3*time.Second, OK())))
		defer d.Close()
		nc, err := d.Dial(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		in := reader(nc)
		time.Sleep(time.Second - 1)
		start := time.Now()
		if got := exchange(nc, in, get); got != "200 3" {
			t.Errorf("got %q", got)
		}
		if got := answer(in); got != "eof" {
			t.Errorf("afterwards %q", got)
		}
		// 3 s for the answer, which are not idle, and 1 s.
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("closed after %v, want 4s", took)
		}
	})
}

func TestCloseAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			name string
			b    Behaviour
			want string
		}{
			{"close", CloseAfter(1, time.Second, OK()), "eof"},
			{"reset", ResetAfter(1, time.Second, OK()), "reset"},
			{"unasked", Unasked(1, time.Second, 408, OK()), "408 0 close"},
		} {
			d := New(row.b)
			nc, err := d.Dial(context.Background(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			in := reader(nc)
			exchange(nc, in, get)
			start := time.Now()
			if got := answer(in); got != row.want {
				t.Errorf("%s: got %q, want %q", row.name, got, row.want)
			}
			if took := time.Since(start); took != time.Second {
				t.Errorf("%s: after %v, want 1s", row.name, took)
			}
			nc.Close()
			d.Close()
		}
	})
}

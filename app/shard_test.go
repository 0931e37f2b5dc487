package app

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
)

// sharded returns a target as one process of several has it.
func sharded(t *testing.T, s Shard, c config.Target) (tg *target, any bool) {
	t.Helper()
	p, any := s.part(&c)
	tg = &target{config: c, part: p}
	if !c.Rate.Max() {
		var err error
		if tg.rate, err = schedule.NewRate(c.Rate.Rat()); err != nil {
			t.Fatal(err)
		}
	}
	return tg, any
}

// TestPartsAddUp deals targets of any rate to any number of processes, whose
// clocks began at different moments, and holds their parts against the whole:
// connections, counts and instants are the same, by the wall clock.
func TestPartsAddUp(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rates := []string{"0.001", "0.2", "1", "2.5", "7", "1000", "33333.333333333", "1000000"}
	for range 500 {
		count := 2 + rng.IntN(8)
		c := config.Target{Name: fmt.Sprint("door", rng.IntN(1e6)), Connections: 1 + rng.IntN(30), Sharding: "rate"}
		setRate(t, &c, rates[rng.IntN(len(rates))])
		clocks := make([]probe.Clock, count)
		for i := range clocks {
			clocks[i] = probe.NewClock()
		}
		checkParts(t, rng, c, clocks)
	}
}

func checkParts(t *testing.T, rng *rand.Rand, c config.Target, clocks []probe.Clock) {
	t.Helper()
	count := len(clocks)
	what := fmt.Sprintf("%s: %v/s, %d connections over %d", c.Name, c.Rate, c.Connections, count)
	connections, perSecond, smallest := 0, 0.0, c.Connections
	// Everything is of the wall clock, as nanoseconds since 1970.
	wall := func(i int, at probe.Instant) int64 { return clocks[i].Time(at).UnixNano() }
	latest := clocks[0].Time(0).UnixNano() + int64(time.Hour)
	until := latest + int64(20*time.Second*time.Duration(count)) + rng.Int64N(int64(time.Hour))
	var instants []int64
	ticks := uint64(0)
	for i := range count {
		s := Shard{Index: i, Count: count}
		tg, any := sharded(t, s, c)
		if !any {
			if c.Connections >= count {
				t.Fatalf("%s: process %d has none", what, i)
			}
			continue
		}
		connections += tg.part.connections
		smallest = min(smallest, tg.part.connections)
		perSecond += tg.perSecond()
		p := &pacing{clock: clocks[i]}
		from := probe.Instant(latest-clocks[i].Time(0).UnixNano()) - probe.Instant(rng.Int64N(int64(time.Hour)))
		mine := p.schedule(tg, schedule.Schedule{Origin: from, Rate: tg.rate})
		at := func(unix int64) probe.Instant { return probe.Instant(unix - clocks[i].Time(0).UnixNano()) }
		first := mine.Count(at(latest))
		ticks += mine.Count(at(until)) - first
		for j := range uint64(5) {
			instants = append(instants, wall(i, mine.At(first+j)))
		}
	}
	if connections != c.Connections || smallest < 1 {
		t.Fatalf("%s: parts have %d connections in all, the smallest %d", what, connections, smallest)
	}
	if whole := c.Rate.Float(); perSecond < whole*(1-1e-9) || perSecond > whole*(1+1e-9) {
		t.Fatalf("%s: parts have %v requests/s in all", what, perSecond)
	}
	// The whole is that of a process that is one of one, on a clock of its own.
	tg, _ := sharded(t, Shard{}, c)
	tg.part.common, tg.part.phase = true, hash(c.Name)
	clock := probe.NewClock()
	p := &pacing{clock: clock}
	zero := clock.Time(0).UnixNano()
	whole := p.schedule(tg, schedule.Schedule{Origin: probe.Instant(latest - zero), Rate: tg.rate})
	if want := whole.Count(probe.Instant(until - zero)); ticks != want {
		t.Fatalf("%s: %d ticks of all parts in %v, %d of the whole", what, ticks, time.Duration(until-latest), want)
	}
	slices.Sort(instants)
	for i := range uint64(5) { // each part has given five at least
		if want := clock.Time(whole.At(i)).UnixNano(); instants[i] != want {
			t.Fatalf("%s: instant %d of all parts is %d, of the whole %d", what, i, instants[i], want)
		}
	}
}

func TestParts(t *testing.T) {
	for _, row := range []struct {
		name        string
		rate        string
		sharding    string
		connections int
		shards      int
		want        []int // connections, ascending, of those that have a part
	}{
		{"alone", "10", "rate", 10, 1, []int{10}},
		{"no number of shards", "10", "rate", 10, 0, []int{10}},
		{"divisible", "10", "rate", 9, 3, []int{3, 3, 3}},
		{"a remainder", "10", "rate", 11, 3, []int{3, 4, 4}},
		{"as few as there are connections", "10", "rate", 2, 5, []int{1, 1}},
		{"one connection", "1000", "rate", 1, 3, []int{1}},
		{"a rate below the number of shards", "0.2", "rate", 10, 3, []int{3, 3, 4}},
		{"a closed loop", "max", "rate", 8, 3, []int{2, 3, 3}},
		{"a closed loop with few", "max", "rate", 2, 3, []int{1, 1}},
		{"whole targets", "10", "targets", 10, 3, []int{10}},
		{"a closed loop, whole", "max", "targets", 4, 3, []int{4}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := config.Target{Name: "shop", Connections: row.connections, Sharding: row.sharding}
			setRate(t, &c, row.rate)
			var got []int
			for i := range max(1, row.shards) {
				s := Shard{Index: i, Count: row.shards}
				p, any := s.part(&c)
				if own := s.own([]config.Target{c}); any != (len(own) == 1) {
					t.Errorf("shard %d has a part: %v, and has %d targets", i, any, len(own))
				}
				if any {
					got = append(got, p.connections)
				} else if p != (part{}) {
					t.Errorf("shard %d has no part, and that is %v", i, p)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, row.want) {
				t.Errorf("parts have %v connections, want %v", got, row.want)
			}
		})
	}
}

// TestRemaindersGoRound deals many targets with one connection to spare, and
// many with one connection: no process has much more of them than another.
func TestRemaindersGoRound(t *testing.T) {
	const targets, shards = 3000, 3
	for _, connections := range []int{1, 4} {
		sum := make([]int, shards)
		for i := range targets {
			c := config.Target{Name: fmt.Sprint("door-", i), Connections: connections, Sharding: "rate"}
			for k := range shards {
				p, _ := (Shard{Index: k, Count: shards}).part(&c)
				sum[k] += p.connections
			}
		}
		// 1,000 of 3,000, with a standard deviation of sqrt(3000 × 1/3 × 2/3) = 26.
		least := targets * (connections / shards)
		for k, n := range sum {
			if n-least < 870 || n-least > 1130 {
				t.Errorf("process %d of %v has %d connections beyond %d, want about 1,000", k, sum, n-least, least)
			}
		}
	}
}

// TestOwnersStay adds a process, and removes one: no target moves between two
// that are there before and after.
func TestOwnersStay(t *testing.T) {
	const targets = 5000
	for _, shards := range []int{1, 2, 3, 7} {
		few, many := Shard{Count: shards}, Shard{Count: shards + 1}
		moved, each := 0, make([]int, shards+1)
		for i := range targets {
			name := fmt.Sprint("door-", i)
			before, after := few.owner(name), many.owner(name)
			each[after]++
			if before != after {
				moved++
				if after != shards {
					t.Fatalf("%s moved from %d to %d when %d came", name, before, after, shards)
				}
			}
		}
		for k, n := range each {
			// 1/n of 5,000 with a standard deviation of less than sqrt(5000/n).
			want := targets / (shards + 1)
			if d := n - want; d*d > 25*want {
				t.Errorf("process %d of %d has %d targets, want about %d", k, shards+1, n, want)
			}
		}
		if moved != each[shards] {
			t.Errorf("%d targets moved, the one that came has %d", moved, each[shards])
		}
	}
}

// TestRateOfPartsChanges gives three processes another rate, each at its own
// moment: from then on each has its ticks of the new common schedule, from the
// first one on.
func TestRateOfPartsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := probe.NewClock()
		for i := range 3 {
			time.Sleep(1234567 * time.Microsecond)
			p := newPacing(clock, schedule.Portable(clock), quiet())
			c := config.Target{Name: "shop", Connections: 7, Sharding: "rate", Pacing: "precise"}
			setRate(t, &c, "0.5")
			before, _ := sharded(t, Shard{Index: i, Count: 3}, c)
			before.traffic, before.prober = &traffic{}, probe.New(probe.Target{Name: "shop", Rate: 1, Connections: 1}, clock, nil, nil)
			p.add(before, clock.Now().Add(time.Hour), 0)
			setRate(t, &c, "2.5")
			after, _ := sharded(t, Shard{Index: i, Count: 3}, c)
			after.traffic, after.prober = before.traffic, before.prober
			p.change(after, 5)
			at := after.traffic.changed

			whole := schedule.Schedule{Origin: epoch(clock).Add(schedule.Spread(hash("shop"), after.rate)), Rate: after.rate}
			number := whole.Count(at)
			for number%3 != after.part.index {
				number++
			}
			for j := range uint64(10) {
				if got, want := after.traffic.schedule.At(j), whole.At(number+3*j); got != want {
					t.Errorf("tick %d of process %d at %d, want %d", j, i, got, want)
				}
			}
			p.remove([]*target{after})
			p.close()
		}
	})
}

// The owners must not change between versions of the program.
func TestOwnersAreForEver(t *testing.T) {
	got := map[string]int{}
	for _, name := range []string{"a", "shop-ingress", "https://shop.example.com/"} {
		got[name] = Shard{Count: 5}.owner(name)
	}
	want := map[string]int{"a": 0, "shop-ingress": 3, "https://shop.example.com/": 1}
	for name, owner := range want {
		if got[name] != owner {
			t.Errorf("%s belongs to %d, and belonged to %d", name, got[name], owner)
		}
	}
}

func TestShardsThatAreNone(t *testing.T) {
	for _, row := range []struct {
		shard Shard
		says  string // empty: it is one
	}{
		{Shard{}, ""},
		{Shard{Index: 2, Count: 3}, ""},
		{Shard{Index: 3, Count: 3}, "there is no shard 3 of 3: the first is 0, the last 2; see --shard.index and --shard.count"},
		{Shard{Index: 1}, "there is no shard 1 of 1"},
		{Shard{Index: -1, Count: 3}, "there is no shard -1 of 3"},
	} {
		o := options("none.yml", "127.0.0.1:0")
		o.Shard = row.shard
		err := o.validate()
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%+v: %v", row.shard, err)
		}
	}
}

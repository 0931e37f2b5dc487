package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// TestSplit deals ticks to several schedules and holds them, merged, against
// the one that was split: a share of a share, too, and rates whose parts have no
// decimal form.
func TestSplit(t *testing.T) {
	for _, text := range []string{"1", "7", "1000", "99999.5", "333333.333333", "100000.1234567891"} {
		for _, n := range []int{1, 2, 3, 7} {
			s := Schedule{Origin: 12345, Rate: rateOf(t, text)}
			shares := s.Split(n)
			again := shares[n-1].Split(2)
			for i := range uint64(7_000) {
				if got, want := shares[i%uint64(n)].At(i/uint64(n)), s.At(i); got != want {
					t.Fatalf("%s over %d: tick %d at %d, want %d", text, n, i, got, want)
				}
				if got, want := again[i%2].At(i/2), shares[n-1].At(i); got != want {
					t.Fatalf("%s over %d: tick %d of a share of a share at %d, want %d", text, n, i, got, want)
				}
			}
		}
	}
	poisson := Schedule{Rate: rateOf(t, "1000"), Poisson: true, Seed: 1}
	var ticks uint64
	for _, share := range poisson.Split(4) {
		ticks += share.Count(probe.Instant(100 * time.Second))
	}
	// 100,000 ticks with a standard deviation of sqrt(100,000) = 316.
	if ticks < 98_700 || ticks > 101_300 {
		t.Errorf("%d ticks in 100 s at 1,000/s, want 100,000 but for 1,300", ticks)
	}
}

// epoch is the origin of a schedule that began in 1970, for a process that
// started in 2026.
const epoch = -probe.Instant(1_795_000_000) * probe.Instant(time.Second)

// TestShares lets the shares of one schedule begin at different moments, and
// holds what they give together from the latest on against the whole: the counts
// at any moment add up to its count, and the instants are its instants.
func TestShares(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 2_000 {
		rate, _ := randomRate(rng)
		n := 1 + rng.Uint64N(9)
		whole := Schedule{Origin: epoch + probe.Instant(rng.Int64N(int64(time.Hour))), Rate: rate}
		// The processes begin within ten intervals of each other.
		spread := 10 * max(int64(rate.Interval()), 1)
		shares, latest := make([]Schedule, n), probe.Instant(0)
		for k := range shares {
			from := probe.Instant(time.Second) + probe.Instant(rng.Int64N(spread))
			latest = max(latest, from)
			shares[k] = whole.Share(uint64(k), n, from)
			if first := shares[k].At(0); first < from || first.Sub(from) > time.Duration(n)*(rate.Interval()+1) {
				t.Fatalf("round %d: share %d of %d of %v/s begins at %d, which is not soon after %d", round, k, n, rate, first, from)
			}
		}
		before := whole.Count(latest)
		checkCounts(t, rng, whole, shares, latest)
		var all []probe.Instant
		for k, s := range shares {
			for i := range uint64(20) {
				if at := s.At(i); at >= latest {
					all = append(all, at)
				}
				// By number, and by no other share's.
				if number := s.First + i*s.Step; number%n != uint64(k) || whole.At(number) != s.At(i) {
					t.Fatalf("round %d: tick %d of share %d of %d is tick %d of the whole", round, i, k, n, number)
				}
			}
		}
		slices.Sort(all)
		// All shares have given 10 ticks or more after the latest beginning.
		for i := range uint64(10) {
			if want := whole.At(before + i); all[i] != want {
				t.Fatalf("round %d: instant %d of all shares is %d, that of the whole %d", round, i, all[i], want)
			}
		}
	}
}

// checkCounts holds counts of shares against those of the whole, at moments
// after all have begun.
func checkCounts(t *testing.T, rng *rand.Rand, whole Schedule, shares []Schedule, latest probe.Instant) {
	t.Helper()
	counts := func(until probe.Instant) (sum uint64) {
		for _, s := range shares {
			sum += s.Count(until)
		}
		return sum
	}
	for range 5 {
		until := latest + probe.Instant(rng.Int64N(int64(100*24*time.Hour)))
		got, want := counts(until)-counts(latest), whole.Count(until)-whole.Count(latest)
		if got != want {
			t.Fatalf("%d shares of %v/s have %d ticks from %d to %d, the whole has %d", len(shares), whole.Rate, got, latest, until, want)
		}
	}
}

func TestShareOf(t *testing.T) {
	const ms = probe.Instant(time.Millisecond)
	ten := Schedule{Origin: 0, Rate: rateOf(t, "10")} // 0, 100, 200 … ms
	for _, row := range []struct {
		name     string
		schedule Schedule
		index, n uint64
		from     probe.Instant
		want     []probe.Instant // the first ticks
	}{
		{"alone", ten, 0, 1, 0, []probe.Instant{0, 100 * ms, 200 * ms}},
		{"the first of three", ten, 0, 3, 0, []probe.Instant{0, 300 * ms, 600 * ms}},
		{"the last of three", ten, 2, 3, 0, []probe.Instant{200 * ms, 500 * ms, 800 * ms}},
		{"a tick at the beginning is given", ten, 1, 3, 400 * ms, []probe.Instant{400 * ms, 700 * ms}},
		{"one before it is not", ten, 1, 3, 400*ms + 1, []probe.Instant{700 * ms, 1000 * ms}},
		{"before the origin", ten, 1, 2, -probe.Instant(time.Second), []probe.Instant{100 * ms, 300 * ms}},
		{"a rate below the number of shares", Schedule{Rate: rateOf(t, "0.5")}, 2, 4, 5000 * ms, []probe.Instant{12_000 * ms, 20_000 * ms}},
		{"a share of a share", ten.Split(2)[1], 1, 2, 0, []probe.Instant{300 * ms, 700 * ms}},
		{"until the end", Schedule{Rate: ten.Rate, End: 600 * ms}, 0, 3, 0, []probe.Instant{0, 300 * ms, never}},
	} {
		t.Run(row.name, func(t *testing.T) {
			share := row.schedule.Share(row.index, row.n, row.from)
			ticks := share.series()
			for i, want := range row.want {
				if ticks.tick != want {
					t.Errorf("tick %d at %d, want %d", i, ticks.tick, want)
				}
				ticks.advance()
			}
		})
	}
}

// Shares of a Poisson schedule begin when they are told and have their part of
// the rate.
func TestSharesOfPoisson(t *testing.T) {
	whole := Schedule{Origin: epoch, Rate: rateOf(t, "900"), Poisson: true}
	from := probe.Instant(5 * time.Second)
	var sum uint64
	for k := range uint64(3) {
		whole.Seed = k
		share := whole.Share(k, 3, from)
		if n := share.Count(from); n != 0 {
			t.Fatalf("%d ticks before the beginning", n)
		}
		n := share.Count(from.Add(100 * time.Second))
		sum += n
		// 30,000 with a standard deviation of 173; five of them are 866.
		if n < 29_134 || n > 30_866 {
			t.Errorf("share %d has %d ticks in 100 s at 900/3, want 30,000", k, n)
		}
	}
	// 90,000 with a standard deviation of 300.
	if sum < 88_500 || sum > 91_500 {
		t.Errorf("%d ticks of three shares in 100 s at 900/s, want 90,000", sum)
	}
}

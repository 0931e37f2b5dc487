package schedule

import (
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"
)

func TestNewRate(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Rate
		str        string
		interval   time.Duration
	}{
		{"whole", "1000", Rate{1000, 1}, "1000", time.Millisecond},
		{"below one", "0.2", Rate{1, 5}, "0.2", 5 * time.Second},
		{"trailing zeros", "2.500", Rate{5, 2}, "2.5", 400 * time.Millisecond},
		{"least", "0.001", Rate{1, 1000}, "0.001", 1000 * time.Second},
		{"most", "1000000", Rate{1_000_000, 1}, "1000000", time.Microsecond},
		{"ten places", "0.3333333333", Rate{3333333333, 10_000_000_000}, "0.3333333333", 3_000_000_000}, // 3.0000000003 s
		{"most with ten places", "999999.9999999999", Rate{9_999_999_999_999_999, 10_000_000_000}, "999999.9999999999", 1000},
		{"eleven places that cancel", "0.12500000000", Rate{1, 8}, "0.125", 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := NewRate(ratOf(t, tt.text))
			if err != nil || got != tt.want {
				t.Fatalf("NewRate(%s) = %v, %v, want %v", tt.text, got, err, tt.want)
			}
			if got.String() != tt.str {
				t.Errorf("String() = %q, want %q", got.String(), tt.str)
			}
			if got.Interval() != tt.interval {
				t.Errorf("Interval() = %v, want %v", got.Interval(), tt.interval)
			}
			if again, err := NewRate(ratOf(t, got.String())); again != got || err != nil {
				t.Errorf("NewRate(String()) = %v, %v, want %v", again, err, got)
			}
		})
	}
}

func TestNewRateRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       error
	}{
		{"zero", "0", errRateRange},
		{"negative", "-5", errRateRange},
		{"below least", "0.00099999", errRateRange},
		{"above most", "1000000.0001", errRateRange},
		{"eleven places", "0.33333333333", errRateDigits},
		{"denominator beyond 64 bits", "0.3333333333333333333333", errRateDigits},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := NewRate(ratOf(t, tt.text)); !errors.Is(err, tt.want) {
				t.Errorf("NewRate(%s) = %v, %v, want error %v", tt.text, got, err, tt.want)
			}
		})
	}
}

func TestNewRateKeepsFractions(t *testing.T) {
	third, err := NewRate(big.NewRat(2000, 6))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := third.String(), "1000/3"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if got, want := third.Float(), 1000.0/3; got != want {
		t.Errorf("Float() = %v, want %v", got, want)
	}
	if got, want := third.Interval(), 3*time.Millisecond; got != want {
		t.Errorf("Interval() = %v, want %v", got, want)
	}
}

func TestZeroRate(t *testing.T) {
	var r Rate
	if r.Interval() != 0 || r.Float() != 0 || r.String() != "0" {
		t.Errorf("zero Rate: %v, %v, %q, want 0, 0, \"0\"", r.Interval(), r.Float(), r.String())
	}
	s := Schedule{Origin: 1}
	if s.At(0) != never || s.Count(never) != 0 {
		t.Errorf("schedule of zero Rate ticks at %d, %d times", s.At(0), s.Count(never))
	}
}

// Of n targets with one rate, no two come closer than 0.38/n of the interval,
// around its end too.
func TestSpreadOfEqualRates(t *testing.T) {
	rate := Rate{1, 1}
	for _, n := range []int{1, 2, 3, 10, 100, 1000, 10_000} {
		var phases []time.Duration
		for k := range n {
			phase := Spread(uint64(k), rate)
			if phase < 0 || phase >= time.Second {
				t.Fatalf("Spread(%d) = %v, outside the interval", k, phase)
			}
			phases = append(phases, phase)
		}
		slices.Sort(phases)
		phases = append(phases, phases[0]+time.Second)
		least := time.Second
		for i := 1; i < len(phases); i++ {
			least = min(least, phases[i]-phases[i-1])
		}
		if want := time.Second * 38 / time.Duration(100*n); least < want {
			t.Errorf("%d targets: two come within %v, want at least %v", n, least, want)
		}
	}
}

// Targets with rates 1, 2, 5 and 10 never meet: all their ticks within one
// second, after which everything repeats, are at least 1 us apart.
func TestSpreadOfMultipleRates(t *testing.T) {
	var ticks []time.Duration
	for k := range 100 {
		rate := Rate{[]uint64{1, 2, 5, 10}[k%4], 1}
		phase := Spread(uint64(k), rate)
		for i := range rate.num {
			ticks = append(ticks, phase+time.Duration(i)*rate.Interval())
		}
	}
	slices.Sort(ticks)
	for i := 1; i < len(ticks); i++ {
		if gap := ticks[i] - ticks[i-1]; gap < time.Microsecond {
			t.Errorf("two ticks at %v are %v apart", ticks[i], gap)
		}
	}
}

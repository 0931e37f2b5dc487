package schedule

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Rate
		str        string
		interval   time.Duration
	}{
		{"whole", "1000", Rate{1000, 1}, "1000", time.Millisecond},
		{"below one", "0.2", Rate{1, 5}, "0.2", 5 * time.Second},
		{"no leading zero", ".5", Rate{1, 2}, "0.5", 2 * time.Second},
		{"leading zeros are not octal", "010", Rate{10, 1}, "10", 100 * time.Millisecond},
		{"trailing zeros", "2.500", Rate{5, 2}, "2.5", 400 * time.Millisecond},
		{"exponent", "1e3", Rate{1000, 1}, "1000", time.Millisecond},
		{"negative exponent", "25E-2", Rate{1, 4}, "0.25", 4 * time.Second},
		{"plus", "+3", Rate{3, 1}, "3", 333_333_333}, // 1e9 / 3, rounded down
		{"least", "0.001", Rate{1, 1000}, "0.001", 1000 * time.Second},
		{"most", "1000000", Rate{1_000_000, 1}, "1000000", time.Microsecond},
		{"ten places", "0.3333333333", Rate{3333333333, 10_000_000_000}, "0.3333333333", 3_000_000_000}, // 3.0000000003 s
		{"most with ten places", "999999.9999999999", Rate{9_999_999_999_999_999, 10_000_000_000}, "999999.9999999999", 1000},
		{"eleven places that cancel", "0.12500000000", Rate{1, 8}, "0.125", 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseRate(tt.text)
			if err != nil || got != tt.want {
				t.Fatalf("ParseRate(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
			}
			if got.String() != tt.str {
				t.Errorf("String() = %q, want %q", got.String(), tt.str)
			}
			if got.Interval() != tt.interval {
				t.Errorf("Interval() = %v, want %v", got.Interval(), tt.interval)
			}
			if again, err := ParseRate(got.String()); again != got || err != nil {
				t.Errorf("ParseRate(String()) = %v, %v, want %v", again, err, got)
			}
		})
	}
}

func TestParseRateRefuses(t *testing.T) {
	const (
		notNumber = ": must be a decimal number of requests per second, such as 1000 or 0.2"
		notRange  = ": must be from 0.001 to 1000000 requests per second"
		notDigits = ": must have at most 10 decimal places"
	)
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", `parsing rate ""` + notNumber},
		{"word", "fast", `parsing rate "fast"` + notNumber},
		{"not a number", "NaN", `parsing rate "NaN"` + notNumber},
		{"infinite", "Inf", `parsing rate "Inf"` + notNumber},
		{"fraction", "1/3", `parsing rate "1/3"` + notNumber},
		{"fraction behind exponent", "1e0/2", `parsing rate "1e0/2"` + notNumber},
		{"hexadecimal", "0x10", `parsing rate "0x10"` + notNumber},
		{"separators", "1_000", `parsing rate "1_000"` + notNumber},
		{"unit", "10/s", `parsing rate "10/s"` + notNumber},
		{"space", " 10", `parsing rate " 10"` + notNumber},
		{"two points", "1.2.3", `parsing rate "1.2.3"` + notNumber},
		{"exponent that would fill memory", "1e999999999", `parsing rate "1e999999999"` + notNumber},
		{"endless", strings.Repeat("1", 1000), `parsing rate "` + strings.Repeat("1", 64) + `…"` + notNumber},
		{"zero", "0", `parsing rate "0"` + notRange},
		{"negative", "-5", `parsing rate "-5"` + notRange},
		{"below least", "0.00099999", `parsing rate "0.00099999"` + notRange},
		{"above most", "1000000.0001", `parsing rate "1000000.0001"` + notRange},
		{"eleven places", "0.33333333333", `parsing rate "0.33333333333"` + notDigits},
		{"denominator beyond 64 bits", "0.3333333333333333333333", `parsing rate "0.3333333333333333333333"` + notDigits},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseRate(tt.text)
			if err == nil || err.Error() != tt.want {
				t.Errorf("ParseRate(%q) = %v, %v\nwant error %s", tt.text, got, err, tt.want)
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

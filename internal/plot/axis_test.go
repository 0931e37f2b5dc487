package plot

import (
	"math"
	"testing"
	"time"
)

func TestLatencyAxis(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name      string
		low, high time.Duration
		want      string
	}{
		{"a power is enough", 100 * time.Microsecond, ms, "100 µs@0.00 200 µs@0.30 500 µs@0.70 1 ms@1.00"},
		{"the next steps around", 130 * time.Microsecond, 1400 * time.Microsecond, "100 µs@0.00 200 µs@0.23 500 µs@0.54 1 ms@0.77 2 ms@1.00"},
		{"many powers have labels alone", 100 * time.Microsecond, 10 * time.Second, "100 µs@0.00 1 ms@0.20 10 ms@0.40 100 ms@0.60 1 s@0.80 10 s@1.00"},
		// A flat line: room above, below, above.
		{"one value", 2 * ms, 2 * ms, "1 ms@0.00 2 ms@0.30 5 ms@0.70 10 ms@1.00"},
		{"below what is shown", -5, 0, "1 µs@0.00 2 µs@0.30 5 µs@0.70 10 µs@1.00"},
		// The last step is 5e18 ns; 5e9 / 1e9 … three steps below it is 5e8 s.
		{"the longest", math.MaxInt64, math.MaxInt64, "500000000 s@0.00 1000000000 s@0.30 2000000000 s@0.60 5000000000 s@1.00"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := text(newLatencyAxis(test.low, test.high).ticks()); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestLatencyAxisKeepsWithinItself(t *testing.T) {
	a := newLatencyAxis(time.Millisecond, time.Second)
	for d, want := range map[time.Duration]float64{
		-time.Second: 0, 0: 0, time.Millisecond: 0, 10 * time.Millisecond: 1.0 / 3, time.Second: 1, time.Hour: 1, math.MaxInt64: 1,
	} {
		if got := a.at(d); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v is at %v, want %v", d, got, want)
		}
	}
}

func TestTimeAxis(t *testing.T) {
	kathmandu := time.FixedZone("+0545", 5*3600+45*60)
	at := func(h, m, s int) time.Time { return time.Date(2026, 11, 30, h, m, s, 0, time.UTC) }
	tests := []struct {
		name     string
		from, to time.Time
		most     int
		want     string
	}{
		// 300 s / 6 are at most 50 s: minutes.
		{"5 minutes", at(18, 0, 7), at(18, 5, 7), 6, "18:01@0.18 18:02@0.38 18:03@0.58 18:04@0.78 18:05@0.98"},
		{"an hour", at(18, 0, 0), at(19, 0, 0), 7, "18:00@0.00 18:10@0.17 18:20@0.33 18:30@0.50 18:40@0.67 18:50@0.83 19:00@1.00"},
		{"seconds", at(18, 0, 58), at(18, 1, 8), 4, "18:01:00@0.20 18:01:05@0.70"},
		{"round in its own location", at(18, 0, 0).In(kathmandu), at(20, 0, 0).In(kathmandu), 3, "00:00@0.12 01:00@0.62"},
		{"no time at all", at(18, 0, 0), at(18, 0, 0), 4, "18:00:00@0.00 18:00:01@1.00"},
		{"backwards", at(18, 0, 0), at(17, 0, 0), 4, "18:00:00@0.00 18:00:01@1.00"},
		// 96 h / 3 are at most 32 h: every other day, counted from the year 1.
		{"days", at(0, 0, 0), at(0, 0, 0).AddDate(0, 0, 4), 3, "2026-12-01 00:00@0.25 2026-12-03 00:00@0.75"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := text(newTimeAxis(test.from, test.to).ticks(test.most)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
	if got := len(newTimeAxis(time.Time{}, time.Unix(1<<40, 0)).ticks(3)); got > 4 {
		t.Errorf("the longest span has %d ticks", got)
	}
}

func TestRoundDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 µs", 83 * time.Microsecond: "83 µs", 83456 * time.Nanosecond: "83.5 µs", 999_999 * time.Nanosecond: "1000 µs",
		12345 * time.Microsecond: "12.3 ms", 123456 * time.Microsecond: "123 ms", 25*time.Second + 42*time.Millisecond: "25 s", 1234 * time.Second: "1234 s",
	} {
		if got := roundDuration(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

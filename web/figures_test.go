package web

import (
	"math"
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	for _, row := range []struct {
		s    Number
		want string
	}{
		{none(), "–"}, {0, "0 µs"}, {0.0000304, "30 µs"}, {0.000999, "999 µs"}, {0.0009996, "1.00 ms"},
		{0.00999, "9.99 ms"}, {0.009996, "10.0 ms"}, {0.0999, "99.9 ms"}, {0.09996, "100 ms"},
		{0.999, "999 ms"}, {0.9996, "1.00 s"}, {60, "60.00 s"},
	} {
		if got := seconds(row.s); got != row.want {
			t.Errorf("%v s is shown as %q, want %q", row.s, got, row.want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567",
		math.MaxUint64: "18,446,744,073,709,551,615",
	} {
		if got := count(n); got != want {
			t.Errorf("%d is shown as %q, want %q", n, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, row := range []struct {
		part, whole uint64
		want        string
	}{
		{0, 0, "–"}, {0, 5, "0 %"}, {5, 5, "100 %"}, {1, 1_000_000, "< 0.01 %"}, {1, 10_000, "0.01 %"},
		{13, 1000, "1.3 %"}, {1, 3, "33.3 %"}, {99_999, 100_000, "> 99.9 %"}, {999, 1000, "99.9 %"}, {9_999, 100_000, "10 %"},
	} {
		if got := percent(row.part, row.whole); got != row.want {
			t.Errorf("%d of %d is shown as %q, want %q", row.part, row.whole, got, row.want)
		}
	}
}

func TestPerSecond(t *testing.T) {
	for _, row := range []struct {
		rate Number
		want string
	}{
		{none(), "–"}, {0, "0"}, {0.2, "0.2"}, {199.96, "200"}, {63123.4, "63,123"}, {1.0 / 3, "0.333"},
	} {
		if got := perSecond(row.rate); got != row.want {
			t.Errorf("%v is shown as %q, want %q", row.rate, got, row.want)
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59*time.Second + 999*time.Millisecond: "59 s", time.Minute: "1 min", time.Hour - 1: "59 min",
		2*time.Hour + 13*time.Minute: "2 h 13 min", 24 * time.Hour: "1 d 0 h", 75*time.Hour + time.Minute: "3 d 3 h",
	} {
		if got := age(d); got != want {
			t.Errorf("%v is shown as %q, want %q", d, got, want)
		}
	}
}

func TestInstant(t *testing.T) {
	cet := time.FixedZone("CET", 3600)
	now := time.Date(2026, 11, 30, 0, 30, 0, 0, cet) // the 29th, 23:30 UTC
	for _, row := range []struct {
		at   time.Time
		want instant
	}{
		{now.Add(-90 * time.Second), instant{"2026-11-29T23:28:30Z", "23:28:30 UTC", "1 min"}},
		{now.Add(-24 * time.Hour), instant{"2026-11-28T23:30:00Z", "2026-11-28 23:30:00 UTC", "1 d 0 h"}},
	} {
		if got := instantOf(row.at, now); got != row.want {
			t.Errorf("%v is shown as %+v, want %+v", row.at, got, row.want)
		}
	}
}

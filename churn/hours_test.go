package churn

import (
	"fmt"
	"testing"
	"time"
)

func TestHoursAreActive(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	weekdays := []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}
	office := &Hours{From: 9 * 60, To: 17*60 + 30, Days: weekdays, Location: berlin}
	night := &Hours{From: 22 * 60, To: 6 * 60, Days: []time.Weekday{time.Saturday}, Location: berlin}
	for _, tc := range []struct {
		name   string
		hours  *Hours
		at     string // of the clock of the hours, 2026-01-03 is a Saturday
		active bool
		begin  string // the next time that they begin
	}{
		{"none", nil, "2026-01-03 03:00:00", true, ""},
		{"before", office, "2026-01-05 08:59:59", false, "2026-01-05 09:00:00"},
		{"at the begin", office, "2026-01-05 09:00:00", true, "2026-01-06 09:00:00"},
		{"before the end", office, "2026-01-05 17:29:59", true, "2026-01-06 09:00:00"},
		{"at the end", office, "2026-01-05 17:30:00", false, "2026-01-06 09:00:00"},
		{"after the last day", office, "2026-01-09 18:00:00", false, "2026-01-12 09:00:00"},
		{"on another day", office, "2026-01-03 12:00:00", false, "2026-01-05 09:00:00"},
		{"before the night", night, "2026-01-03 21:59:59", false, "2026-01-03 22:00:00"},
		{"in the night", night, "2026-01-03 22:00:00", true, "2026-01-10 22:00:00"},
		{"in the night, on the day after", night, "2026-01-04 05:59:59", true, "2026-01-10 22:00:00"},
		{"after the night", night, "2026-01-04 06:00:00", false, "2026-01-10 22:00:00"},
		{"the night of another day", night, "2026-01-04 23:00:00", false, "2026-01-10 22:00:00"},
		{"the morning before", night, "2026-01-03 05:00:00", false, "2026-01-03 22:00:00"},
		{"all day", &Hours{}, "2026-01-03 23:59:59", true, "2026-01-04 00:00:00"},
		{"all day, from a minute on", &Hours{From: 60, To: 60}, "2026-01-03 00:59:00", true, "2026-01-03 01:00:00"},
		{"to the end of the day", &Hours{From: 60, To: minutesOfDay}, "2026-01-03 23:59:59", true, "2026-01-04 01:00:00"},
		{"until the day ends, not into the next", &Hours{From: 60, To: minutesOfDay}, "2026-01-03 00:00:00", false, "2026-01-03 01:00:00"},
		// Clocks go forward from 02:00 to 03:00 on 2026-03-29, and back from 03:00 on 2026-10-25.
		{"an hour that is not there", &Hours{From: 150, To: 240, Location: berlin}, "2026-03-29 01:59:59", false, "2026-03-29 03:30:00"},
		{"after it", &Hours{From: 150, To: 240, Location: berlin}, "2026-03-29 03:00:00", true, "2026-03-29 03:30:00"},
		{"an hour that is there twice", &Hours{From: 120, To: 180, Location: berlin}, "2026-10-25 02:30:00", true, "2026-10-26 02:00:00"},
	} {
		location := time.UTC
		if tc.hours != nil && tc.hours.Location != nil {
			location = tc.hours.Location
		}
		now, err := time.ParseInLocation(time.DateTime, tc.at, location)
		if err != nil {
			t.Fatal(err)
		}
		if got := tc.hours.active(now.In(time.FixedZone("", 5*3600))); got != tc.active {
			t.Errorf("%s: active %v at %v", tc.name, got, now)
		}
		if tc.hours == nil {
			continue
		}
		if got := tc.hours.begin(now); got.Format(time.DateTime) != tc.begin {
			t.Errorf("%s: begin %v, want %s", tc.name, got, tc.begin)
		}
	}
}

func TestHoursAreValid(t *testing.T) {
	for _, tc := range []struct {
		hours *Hours
		want  string
	}{
		{nil, "<nil>"},
		{&Hours{}, "<nil>"},
		{&Hours{From: 1439, To: 1440, Days: []time.Weekday{time.Sunday, time.Saturday}}, "<nil>"},
		{&Hours{From: -1, To: -1}, "hours: from minute -1: want 0 to 1439\nhours: to minute -1: want 0 to 1440"},
		{&Hours{From: 1440, To: 1441}, "hours: from minute 1440: want 0 to 1439\nhours: to minute 1441: want 0 to 1440"},
		{&Hours{Days: []time.Weekday{7, -1}}, "hours: day 7: want 0 (Sunday) to 6\nhours: day -1: want 0 (Sunday) to 6"},
	} {
		if got := fmt.Sprint(tc.hours.validate()); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.hours, got, tc.want)
		}
	}
}

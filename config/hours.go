package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // an image from scratch has no time zones
)

// ActiveHours say when a churn may scale. Outside of them it puts back the
// baseline and waits.
type ActiveHours struct {
	From     TimeOfDay `yaml:"from"`
	To       TimeOfDay `yaml:"to"`        // of the next day where it is not after From
	Days     []Day     `yaml:"days"`      // on which they begin; none: on all
	TimeZone TimeZone  `yaml:"time_zone"` // zero: UTC
}

// TimeOfDay is minutes since midnight, up to 24:00.
type TimeOfDay struct {
	minutes int
	written bool
}

// Minutes returns the minutes since midnight, from 0 to 1440.
func (t TimeOfDay) Minutes() int { return t.minutes }

func (t *TimeOfDay) parseText(text string) error {
	hour, minute, _ := strings.Cut(text, ":")
	h, hourErr := strconv.Atoi(hour)
	m, minuteErr := strconv.Atoi(minute)
	if hourErr != nil || minuteErr != nil || len(hour) != 2 || len(minute) != 2 || h < 0 || m < 0 || m > 59 || h*60+m > 24*60 {
		return fmt.Errorf("%s is not a time of day; write HH:MM from 00:00 to 24:00, such as \"08:30\"", quote(text))
	}
	*t = TimeOfDay{minutes: h*60 + m, written: true}
	return nil
}

// String returns the time as HH:MM.
func (t TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d", t.minutes/60, t.minutes%60) }

// MarshalText returns the same as String.
func (t TimeOfDay) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Day is a day of the week.
type Day struct{ day time.Weekday }

// Weekday returns the day.
func (d Day) Weekday() time.Weekday { return d.day }

func dayNames() []string { return []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} }

func (d *Day) parseText(text string) error {
	i := slices.Index(dayNames(), text)
	if i < 0 {
		return fmt.Errorf("%s is not a day; write mon, tue, wed, thu, fri, sat or sun", quote(text))
	}
	d.day = time.Weekday(i)
	return nil
}

// String returns the first three letters of the day, in lower case.
func (d Day) String() string { return dayNames()[d.day] }

// MarshalText returns the same as String.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// TimeZone is a time zone by its name. The zero TimeZone is UTC.
type TimeZone struct{ location *time.Location }

// Location returns the time zone.
func (z TimeZone) Location() *time.Location {
	if z.location == nil {
		return time.UTC
	}
	return z.location
}

func (z *TimeZone) parseText(text string) error {
	location, err := time.LoadLocation(text)
	if err != nil || text == "" || text == "Local" {
		return fmt.Errorf("%s is not a time zone; write its name in the IANA database, such as Europe/Berlin, or UTC", quote(text))
	}
	z.location = location
	return nil
}

// String returns the name of the time zone.
func (z TimeZone) String() string { return z.Location().String() }

// MarshalText returns the same as String.
func (z TimeZone) MarshalText() ([]byte, error) { return []byte(z.String()), nil }

// activeHours checks that there is a time within them, and one outside.
func (c *checker) activeHours(h *ActiveHours) {
	for _, t := range []struct {
		path string
		time TimeOfDay
	}{{"active_hours.from", h.From}, {"active_hours.to", h.To}} {
		if !t.time.written && c.good(t.path) {
			c.fail(t.path, "is missing; write a time of day such as \"08:30\"")
		}
	}
	if h.From.minutes == 24*60 && c.good("active_hours.from") {
		c.fail("active_hours.from", "24:00 is the end of a day; write 00:00 of the next one")
	}
	if h.From.minutes == h.To.minutes && c.good("active_hours.from", "active_hours.to") {
		c.fail("active_hours.to", "is the same time as from; write a later one, or 00:00 to 24:00 for whole days")
	}
	for i, d := range h.Days {
		if at := "active_hours.days[" + strconv.Itoa(i) + "]"; c.goodList("active_hours.days", len(h.Days)) && slices.Contains(h.Days[:i], d) {
			c.fail(at, "%s is there twice; remove one", quote(d.String()))
		}
	}
}

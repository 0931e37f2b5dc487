package churn

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// minutesOfDay is how many minutes a day has on its clock.
const minutesOfDay = 24 * 60

// Hours are when a churn may change anything, by the clock of a place. Outside
// of them it is paused, and the baseline is restored.
type Hours struct {
	From int // minute of the day with which they begin, 0 to 1,439
	To   int // minute of the day before which they end, 0 to 1,440; not after From: on the next day
	// Days are the days on which they begin. None: every day.
	Days []time.Weekday
	// Location is whose clock and calendar it is. nil: UTC.
	Location *time.Location
}

func (h *Hours) validate() error {
	if h == nil {
		return nil
	}
	var all []error
	if h.From < 0 || h.From >= minutesOfDay {
		all = append(all, fmt.Errorf("hours: from minute %d: want 0 to %d", h.From, minutesOfDay-1))
	}
	if h.To < 0 || h.To > minutesOfDay {
		all = append(all, fmt.Errorf("hours: to minute %d: want 0 to %d", h.To, minutesOfDay))
	}
	for _, d := range h.Days {
		if d < time.Sunday || d > time.Saturday {
			all = append(all, fmt.Errorf("hours: day %d: want 0 (Sunday) to 6", d))
		}
	}
	return errors.Join(all...)
}

// local returns now on the clock of the hours.
func (h *Hours) local(now time.Time) time.Time {
	if h.Location == nil {
		return now.UTC()
	}
	return now.In(h.Location)
}

// active reports whether now is within the hours. Without any it always is.
func (h *Hours) active(now time.Time) bool {
	if h == nil {
		return true
	}
	t := h.local(now)
	minute, today := t.Hour()*60+t.Minute(), t.Weekday()
	if h.From < h.To {
		return h.on(today) && h.From <= minute && minute < h.To
	}
	yesterday := (today + 6) % 7
	return h.on(today) && minute >= h.From || h.on(yesterday) && minute < h.To
}

func (h *Hours) on(d time.Weekday) bool { return len(h.Days) == 0 || slices.Contains(h.Days, d) }

// begin returns when the hours begin next, after now.
func (h *Hours) begin(now time.Time) time.Time {
	t := h.local(now)
	for day := range 9 { // a week, and the day that it may have begun too early on
		at := time.Date(t.Year(), t.Month(), t.Day()+day, 0, h.From, 0, 0, t.Location())
		if at.After(now) && h.on(at.Weekday()) {
			return at
		}
	}
	return time.Time{}
}

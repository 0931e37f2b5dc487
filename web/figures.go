package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// dash stands for a figure that there is not.
const dash = "–"

// seconds returns a duration with a unit and about three digits.
func seconds(n Number) string {
	switch s := float64(n); {
	case math.IsNaN(s):
		return dash
	case s < 0.0009995:
		return strconv.FormatFloat(s*1e6, 'f', 0, 64) + " µs"
	case s < 0.009995:
		return strconv.FormatFloat(s*1e3, 'f', 2, 64) + " ms"
	case s < 0.09995:
		return strconv.FormatFloat(s*1e3, 'f', 1, 64) + " ms"
	case s < 0.9995:
		return strconv.FormatFloat(s*1e3, 'f', 0, 64) + " ms"
	default:
		return strconv.FormatFloat(s, 'f', 2, 64) + " s"
	}
}

// count returns n with its thousands apart.
func count(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// percent returns the share of part in whole to two or three digits; what happened is
// never shown as nothing.
func percent(part, whole uint64) string {
	if whole == 0 {
		return dash
	}
	switch p := 100 * float64(part) / float64(whole); {
	case part == whole:
		return "100 %"
	case part == 0:
		return "0 %"
	case p < 0.01:
		return "< 0.01 %"
	case part < whole && p >= 99.95:
		return "> 99.9 %"
	case p >= 10:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(p, 'g', 2, 64) + " %"
	}
}

// perSecond returns a rate to three digits, or all of its digits before the
// point.
func perSecond(n Number) string {
	v := float64(n)
	switch {
	case math.IsNaN(v):
		return dash
	case v >= 100:
		return count(uint64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// age returns how long something lasts, in its two largest units.
func age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// clock returns the time of the day of t.
func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

// instant is an instant as the page shows it.
type instant struct{ Machine, Text, Ago string }

// instantOf returns t with its date where that is not the day of now.
func instantOf(t, now time.Time) instant {
	t, now = t.UTC(), now.UTC()
	i := instant{Machine: t.Format(time.RFC3339), Text: clock(t), Ago: age(now.Sub(t))}
	if t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		i.Text = t.Format("2006-01-02 15:04:05 UTC")
	}
	return i
}

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(*Input)
		distrust string // part of the only reason; empty: trustworthy
		remark   string // part of the only remark; empty: none
		kept     bool
	}{
		{name: "healthy", change: func(*Input) {}, kept: true},
		{
			name:   "lateness of 1 ms is the limit where the door is fast",
			change: func(in *Input) { in.Lateness = histogram(t, span{990 * time.Microsecond, 100}) },
			kept:   true,
		},
		{
			name:     "lateness above 1 ms",
			change:   func(in *Input) { in.Lateness = histogram(t, span{1100 * time.Microsecond, 100}) },
			distrust: "lateness p99 is 1.10ms, above 1.00ms",
			kept:     true,
		},
		{
			// 5 % of 40 ms are 2 ms.
			name: "lateness of 1.9 ms before a slow door",
			change: func(in *Input) {
				in.Lateness = histogram(t, span{1900 * time.Microsecond, 100})
				in.ServiceTime = histogram(t, span{40 * time.Millisecond, 100})
			},
			kept: true,
		},
		{
			name: "self latency of 2.1 ms before a slow door",
			change: func(in *Input) {
				in.SelfLatency = histogram(t, span{2100 * time.Microsecond, 100})
				in.ServiceTime = histogram(t, span{40 * time.Millisecond, 100})
			},
			distrust: "self latency p99 is 2.10ms, above 2.00ms",
			kept:     true,
		},
		{
			name: "lateness of 1.4 ms under economical pacing",
			change: func(in *Input) {
				in.Economy = true
				in.Lateness = histogram(t, span{1400 * time.Microsecond, 100})
			},
			remark: "pacing is economical",
			kept:   true,
		},
		{
			name: "lateness above 1.5 ms under economical pacing",
			change: func(in *Input) {
				in.Economy = true
				in.Lateness = histogram(t, span{1600 * time.Microsecond, 100})
			},
			distrust: "lateness p99 is 1.60ms, above 1.50ms",
			remark:   "pacing is economical",
			kept:     true,
		},
		{
			name: "self latency under economical pacing",
			change: func(in *Input) {
				in.Economy = true
				in.SelfLatency = histogram(t, span{1400 * time.Microsecond, 100})
			},
			distrust: "self latency p99 is 1.40ms, above 1.00ms",
			remark:   "pacing is economical",
			kept:     true,
		},
		{
			// The standard deviation of 30,000 is 173: 29,969 - 866 = 29,103.
			name: "ticks at random, few of them",
			change: func(in *Input) {
				in.Poisson = true
				in.Ledger.Scheduled = 29104
				in.Ledger.Completed[probe.NoChurn][probe.Success] = 29104
			},
			kept: true,
		},
		{
			name: "ticks at random, too few of them",
			change: func(in *Input) {
				in.Poisson = true
				in.Ledger.Scheduled = 29102
				in.Ledger.Completed[probe.NoChurn][probe.Success] = 29102
			},
			remark: "29102 of 30000 ticks scheduled",
		},
		{
			// (29,500-296)/30 s are 98.997 % of the 983.33 that were due.
			name: "ticks at random, and a backlog at the end",
			change: func(in *Input) {
				in.Poisson = true
				in.Ledger.Scheduled = 29500
				in.Ledger.Completed[probe.NoChurn][probe.Success] = 29500
				in.AtEnd = in.Ledger
				in.AtEnd.Backlog = 296
				in.AtEnd.Completed[probe.NoChurn][probe.Success] -= 296
			},
			remark: "973.47 of 1000 requests/s begun in time, 296 ticks waiting",
		},
		{
			name:     "saturated",
			change:   func(in *Input) { in.Saturated = []string{"ports"} },
			distrust: "ran short: ports",
			kept:     true,
		},
		{
			name:     "a lost tick",
			change:   func(in *Input) { in.Ledger.Completed[probe.NoChurn][probe.Success]-- },
			distrust: "30000 scheduled, but 29999 completed",
			kept:     true,
		},
		{
			// 30,000 less a thousandth less one are 29,969.
			name: "fewer ticks than the rate makes",
			change: func(in *Input) {
				in.Ledger.Scheduled = 29968
				in.Ledger.Completed[probe.NoChurn][probe.Success] = 29968
			},
			remark: "29968 of 30000 ticks scheduled",
		},
		{
			name: "a window with ragged borders",
			change: func(in *Input) {
				in.Ledger.Scheduled = 29969
				in.Ledger.Completed[probe.NoChurn][probe.Success] = 29969
			},
			kept: true,
		},
		{
			name: "one tick stopped",
			change: func(in *Input) {
				in.Ledger.Completed[probe.NoChurn][probe.Success]--
				in.Ledger.Completed[probe.NoChurn][probe.ScheduleShutdown]++
			},
			remark: "1 tick without an outcome when the run was stopped",
		},
		{
			// (30,000-301)/30 s are 98.997 % of 1,000.
			name: "a backlog at the end of the window",
			change: func(in *Input) {
				in.AtEnd = in.Ledger
				in.AtEnd.Backlog = 301
				in.AtEnd.Completed[probe.NoChurn][probe.Success] -= 301
			},
			remark: "989.97 of 1000 requests/s begun in time, 301 ticks waiting",
		},
		{
			name:   "clamped",
			change: func(in *Input) { in.Clamped = 2 },
			remark: "2 samples above the recordable range",
			kept:   true,
		},
		{
			name:   "no window",
			change: func(in *Input) { in.Duration = 0 },
			remark: "the measured window is empty",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := healthy(t)
			tt.change(&in)
			r := New(in)
			only(t, "distrust", r.Distrust, tt.distrust)
			only(t, "remarks", r.Remarks, tt.remark)
			if r.Trustworthy != (tt.distrust == "") {
				t.Errorf("trustworthy is %v", r.Trustworthy)
			}
			if r.ScheduleKept != tt.kept {
				t.Errorf("schedule kept is %v", r.ScheduleKept)
			}
		})
	}
}

// only checks that a list has one line, which contains want, or none.
func only(t *testing.T, name string, got []string, want string) {
	t.Helper()
	if want == "" && len(got) > 0 {
		t.Errorf("%s: %q, want none", name, got)
	}
	if want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
		t.Errorf("%s: %q, want one with %q", name, got, want)
	}
}

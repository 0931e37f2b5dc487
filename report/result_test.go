package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		name   string
		inputs []Input
	}{
		{"healthy", []Input{healthy(t)}},
		{"sick", []Input{sick(t)}},
		{"nothing", []Input{nothing()}},
		{"two", []Input{healthy(t), sick(t)}},
		{"closed", []Input{closed(t)}},
		{"users", []Input{users(t)}},
		{"none", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var results []Result
			for _, in := range tt.inputs {
				results = append(results, New(in))
			}
			var text, document bytes.Buffer
			if err := WriteText(&text, results, TextOptions{Spectra: true}); err != nil {
				t.Fatal(err)
			}
			if err := WriteJSON(&document, results); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name+".txt", text.String())
			golden(t, tt.name+".json", document.String())
			for _, out := range []string{text.String(), document.String()} {
				if strings.Contains(out, "secret") {
					t.Errorf("the report shows a secret:\n%s", out)
				}
			}
		})
	}
}

func TestJSONRoundTrip(t *testing.T) {
	results := []Result{New(healthy(t)), New(sick(t)), New(nothing()), New(closed(t)), New(users(t))}
	var first bytes.Buffer
	if err := WriteJSON(&first, results); err != nil {
		t.Fatal(err)
	}
	var read struct{ Results []Result }
	dec := json.NewDecoder(bytes.NewReader(first.Bytes()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(results, read.Results, cmpopts.IgnoreUnexported(Result{})); diff != "" {
		t.Errorf("results changed on their way through JSON (-want +got):\n%s", diff)
	}
	var second bytes.Buffer
	if err := WriteJSON(&second, read.Results); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.String(), second.String()); diff != "" {
		t.Errorf("written again (-want +got):\n%s", diff)
	}
	if err := WriteText(&second, read.Results, TextOptions{Spectra: true}); err != nil {
		t.Errorf("text of a result that was read from JSON: %v", err)
	}
}

func TestNewFigures(t *testing.T) {
	r := New(sick(t))
	// 2,000 scheduled, of which 80 waited and 300 had expired when the window
	// of 10 s ended: (2000-80-300)/10 s.
	if r.AchievedRate != 162 {
		t.Errorf("achieved rate %v, want 162", r.AchievedRate)
	}
	// 2000-1500 successes, less the 10 without an outcome.
	if r.Failures != 490 || r.Completed != 1990 {
		t.Errorf("%d of %d failed, want 490 of 1990", r.Failures, r.Completed)
	}
	if diff := cmp.Diff(map[string]uint64{"200": 1500, "503": 55, "other": 10}, r.Responses); diff != "" {
		t.Errorf("responses (-want +got):\n%s", diff)
	}
	// HDR cells of three digits are at most 0.1 % wide.
	for name, got := range map[string][2]float64{
		"p50": {r.Latency.P50, 0.2}, "p90": {r.Latency.P90, 5.2}, "max": {r.Latency.Max, 5.2},
		"mean": {r.Latency.Mean, (1500*0.2 + 490*5.2) / 1990},
	} {
		if math.Abs(got[0]-got[1]) > got[1]/1000 {
			t.Errorf("latency %s is %v s, want %v s", name, got[0], got[1])
		}
	}
}

// What came after the window is in no rate: an overloaded door answers for long
// after it, and would seem fast.
func TestRatesAreOfTheWindow(t *testing.T) {
	for _, tt := range []struct {
		name         string
		in           Input
		text         []string
		achievedRate float64
	}{
		{
			// 1500 successes and 65 other statuses in the window, 2 MB / 10 s.
			"open loop", sick(t),
			[]string{"  1565 requests answered in 10.00s, 2.00MB read\n", "Requests/sec:     156.50\n", "Transfer/sec:   204.80KB\n"}, 162,
		},
		{
			// 699,975+20 answered and 5 timed out in the window, 700 MB / 10 s.
			"closed loop", closed(t),
			[]string{"  699995 requests answered in 10.00s, 667.57MB read\n", "Requests/sec:   69999.50\n", "Transfer/sec:    66.76MB\n"}, 70000,
		},
		{
			// 30,000 × 1,200 B / 30 s.
			"no account of the window", healthy(t),
			[]string{"  30000 requests answered in 30.00s, 34.33MB read\n", "Requests/sec:    1000.00\n", "Transfer/sec:     1.14MB\n"}, 1000,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := New(tt.in)
			if r.AchievedRate != tt.achievedRate {
				t.Errorf("achieved rate %v, want %v", r.AchievedRate, tt.achievedRate)
			}
			var text bytes.Buffer
			if err := WriteText(&text, []Result{r}, TextOptions{Spectra: true}); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.text {
				if !strings.Contains(text.String(), want) {
					t.Errorf("no %q in\n%s", want, &text)
				}
			}
		})
	}
}

// dead is a run of 1 s at 20 requests/s against a port that nobody listens on.
func dead(t *testing.T) Input {
	in := healthy(t)
	in.Rate, in.RateText, in.Duration = 20, "20", time.Second
	in.Ledger = probe.Ledger{Scheduled: 20}
	in.Ledger.Completed[probe.NoChurn][probe.ConnectRefused] = 20
	in.Responses, in.Handshakes, in.Latency, in.ServiceTime = nil, nil, nil, nil
	return in
}

// A door that answers nothing has no requests per second, although the schedule
// was kept, and the words say which is which.
func TestDeadDoor(t *testing.T) {
	r := New(dead(t))
	if r.AchievedRate != 20 || r.AnsweredRate != 0 || r.WithinWindow.Answered != 0 || !r.ScheduleKept {
		t.Errorf("achieved %v, answered %v requests/s, schedule kept %v", r.AchievedRate, r.AnsweredRate, r.ScheduleKept)
	}
	var text bytes.Buffer
	if err := WriteText(&text, []Result{r}, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  0 requests answered in 1.00s, 0.00B read\n",
		"  Rate: 20 requests/s configured, 20.00 achieved: begun in time, answered or not (100.00% of those due)\n",
		"Requests/sec:       0.00\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// The achieved rate is compared with what was due, not with a rate that a short
// window cannot have.
func TestAchievedShare(t *testing.T) {
	for _, tt := range []struct {
		name      string
		rate      float64
		duration  time.Duration
		scheduled uint64
		waiting   uint64
		poisson   bool
		want      string
		kept      bool
	}{
		{"one tick in a fifth of a period", 0.2, time.Second, 1, 0, false, "1.00 achieved: begun in time, answered or not (100.00% of those due)", true},
		{"that tick waited", 0.2, time.Second, 1, 1, false, "0.00 achieved: begun in time, answered or not (0.00% of those due)", false},
		// Due at 0 and at 5 s: 1/2.
		{"one of two", 0.2, 6 * time.Second, 2, 1, false, "0.17 achieved: begun in time, answered or not (50.00% of those due)", false},
		// 0.1 × 30 is a little more than 3 in binary.
		{"a product that is not exact", 0.1, 30 * time.Second, 3, 0, false, "(100.00% of those due)", true},
		{"more at random than on average", 10, time.Second, 14, 7, true, "7.00 achieved: begun in time, answered or not (50.00% of those due)", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := dead(t)
			in.Rate, in.RateText, in.Duration, in.Poisson = tt.rate, "", tt.duration, tt.poisson
			in.Ledger.Scheduled = tt.scheduled
			in.Ledger.Completed[probe.NoChurn][probe.ConnectRefused] = tt.scheduled
			in.AtEnd = in.Ledger
			in.AtEnd.Completed[probe.NoChurn][probe.ConnectRefused] -= tt.waiting
			in.AtEnd.Backlog = tt.waiting
			r := New(in)
			var text bytes.Buffer
			if err := WriteText(&text, []Result{r}, TextOptions{}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text.String(), tt.want) || r.ScheduleKept != tt.kept {
				t.Errorf("schedule kept %v, want %v; no %q in\n%s", r.ScheduleKept, tt.kept, tt.want, &text)
			}
		})
	}
}

func TestInterruptedIsSaid(t *testing.T) {
	in := healthy(t)
	in.Interrupted, in.Duration = true, 1500*time.Millisecond
	in.Rate = 20000
	r := New(in)
	only(t, "remarks", r.Remarks, "the run was interrupted")
	var text, document bytes.Buffer
	if err := errors.Join(WriteText(&text, []Result{r}, TextOptions{}), WriteJSON(&document, []Result{r})); err != nil {
		t.Fatal(err)
	}
	if head, _, _ := strings.Cut(text.String(), "\n"); head != "Running 1.50s test @ https://shop.example.com/healthz (interrupted)" {
		t.Errorf("the head is %q", head)
	}
	if !strings.Contains(document.String(), `"interrupted": true,`) {
		t.Errorf("JSON does not say so:\n%s", &document)
	}
}

func TestDistinguish(t *testing.T) {
	for _, tt := range []struct {
		name      string
		got, want []string
	}{
		{"none", nil, nil},
		{"different", []string{"a", "b"}, []string{"a", "b"}},
		{"the same", []string{"a", "b", "a", "a"}, []string{"a", "b", "a #2", "a #3"}},
		{"a name that is taken", []string{"a", "a #2", "a"}, []string{"a", "a #2", "a #3"}},
		{"a name that was given", []string{"a", "a", "a #2"}, []string{"a", "a #2", "a #2 #2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			results := make([]Result, len(tt.got))
			for i, name := range tt.got {
				results[i].Target = name
			}
			Distinguish(results)
			var got []string
			for _, r := range results {
				got = append(got, r.Target)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

// A closed loop shows nothing of what has no meaning in it, whatever it is given.
func TestClosedLoopHasNoLatency(t *testing.T) {
	in := healthy(t)
	in.Closed, in.Clamped = true, 3
	in.Lateness = histogram(t, span{time.Second, 100})
	r := New(in)
	if r.Rate != 0 || r.Loop != "closed" || r.Latency != (Summary{}) || r.Lateness != (Summary{}) || r.Clamped != 0 || r.ServiceTime.Count == 0 {
		t.Errorf("%+v", r)
	}
	if !r.Trustworthy || !r.ScheduleKept || len(r.Remarks) > 0 {
		t.Errorf("distrust %q, remarks %q", r.Distrust, r.Remarks)
	}
	in.SelfLatency = histogram(t, span{2 * time.Millisecond, 100})
	only(t, "distrust", New(in).Distrust, "self latency p99 is 2.00ms, above 1.00ms")
}

// TestRandomLedgers checks what must hold for every ledger and input.
func TestRandomLedgers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		in := randomInput(t, rng)
		r := New(in)
		var failures, codes uint64
		for _, n := range r.FailuresBy {
			failures += n
		}
		for _, n := range r.Responses {
			codes += n
		}
		if failures != r.Failures {
			t.Errorf("failures %d, by outcome %d", r.Failures, failures)
		}
		if success := r.Completed - r.Failures; success != in.Ledger.Failures(probe.Success) {
			t.Errorf("%d completed without failure, want %d", success, in.Ledger.Failures(probe.Success))
		}
		if codes != in.Responses[0].Count+in.Responses[1].Count {
			t.Errorf("%d responses by code, want %d", codes, in.Responses[0].Count+in.Responses[1].Count)
		}
		if r.Scheduled != r.Completed+r.InFlight+r.Backlog {
			t.Errorf("%d scheduled, %d completed, %d in flight, %d in the backlog", r.Scheduled, r.Completed, r.InFlight, r.Backlog)
		}
		if len(r.Distrust) > 0 {
			t.Errorf("not trusted: %q", r.Distrust)
		}
		var out bytes.Buffer
		if err := WriteJSON(&out, []Result{r}); err != nil {
			t.Fatalf("%v for %+v", err, in)
		}
		if bytes.Contains(out.Bytes(), []byte("null")) {
			t.Errorf("null in\n%s", &out)
		}
		if err := WriteText(&out, []Result{r}, TextOptions{Spectra: true}); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(out.Bytes(), []byte("NaN")) || bytes.Contains(out.Bytes(), []byte("Inf")) {
			t.Errorf("a number that is none in\n%s", &out)
		}
	}
}

func randomInput(t *testing.T, rng *rand.Rand) Input {
	// Half of the counts are 0; the largest keep all sums below 2^63.
	count := func() uint64 { return rng.Uint64N(2) * (rng.Uint64() >> (8 + rng.IntN(56))) }
	in := Input{
		URL:      "http://door.test/",
		Rate:     []float64{0, -1, 0.001, 1e6, math.NaN(), math.Inf(1), math.MaxFloat64}[rng.IntN(7)],
		Duration: []time.Duration{-1, 0, 1, time.Second, math.MaxInt64}[rng.IntN(5)],
		Clamped:  count(),
		Closed:   rng.IntN(3) == 0,
		Economy:  rng.IntN(3) == 0,
		Poisson:  rng.IntN(3) == 0,
		Latency:  histogram(t, span{time.Duration(rng.Int64N(int64(time.Hour))), rng.Int64N(1 << 40)}),
		Responses: []record.ResponseCount{
			{Code: uint16(rng.IntN(600)), Count: count()},
			{Code: 0, Count: count()},
		},
	}
	for c := range in.Ledger.Completed {
		for o := range in.Ledger.Completed[c] {
			in.Ledger.Completed[c][o] = count()
		}
	}
	in.Ledger.InFlight, in.Ledger.Backlog = count(), count()
	in.Ledger.Scheduled = in.Ledger.Done() + in.Ledger.InFlight + in.Ledger.Backlog
	return in
}

func TestDifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		start := randomInput(t, rng).Ledger
		end := start
		// Of what was open at the start, all completes; 7 ticks follow.
		end.Completed[probe.Settled][probe.Success] += start.InFlight + start.Backlog + 4
		end.Scheduled += 7
		end.InFlight, end.Backlog = 1, 2
		end.Bytes.Received += 9
		end.Closed[probe.ClosePeer] += 3
		d := Difference(start, end)
		if d.Scheduled != d.Done()+d.InFlight+d.Backlog {
			t.Errorf("%d scheduled, %d done, %d in flight, %d in the backlog", d.Scheduled, d.Done(), d.InFlight, d.Backlog)
		}
		if want := start.InFlight + start.Backlog + 7; d.Scheduled != want {
			t.Errorf("%d scheduled, want %d", d.Scheduled, want)
		}
		if d.Failed() != 0 || d.Bytes != (probe.Bytes{Received: 9}) || d.Closed[probe.ClosePeer] != 3 {
			t.Errorf("%+v", d)
		}
	}
}

func TestMaskURL(t *testing.T) {
	for name, tt := range map[string]struct{ raw, want string }{
		"plain":         {"http://door.test/a/b", "http://door.test/a/b"},
		"everything":    {"https://u:p@door.test:8443/a?k=v#f", "https://door.test:8443/a"},
		"empty query":   {"https://door.test/?", "https://door.test/"},
		"not parseable": {"http://user:sec%ret@door.test/", "(not a valid URL)"},
		"a name":        {"shop-ingress", "shop-ingress"},
		"IPv6":          {"http://[::1]:80/", "http://[::1]:80/"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := maskURL(tt.raw); got != tt.want {
				t.Errorf("maskURL(%q) = %q, want %q", tt.raw, got, tt.want)
			}
		})
	}
}

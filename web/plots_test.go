package web

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html/atom"

	"github.com/steadyprobe/steadyprobe/internal/plot"
)

// plotKit has two targets and a closed loop, one of them with an outlier of 2 s
// at 19:20:05 and failures.
func plotKit() *kit {
	k := newKit()
	k.targets = []Target{{Name: "a", Loop: "open", Churn: "web"}, {Name: "<b>", Loop: "open"}, {Name: "c", Loop: loopClosed}}
	k.cells = distributed
	k.timeline = func(name string, span time.Duration) Timeline {
		t := Timeline{Target: name, Span: Number(span.Seconds())}
		for at := testNow.Add(-2 * time.Minute); at.Before(testNow); at = at.Add(span) {
			m := Moment{From: at, Completed: 200, P50: 0.001, P99: 0.002, Max: 0.003}
			if name == "<b>" && at.Equal(time.Date(2026, 11, 30, 19, 20, 5, 0, time.UTC)) {
				m.P99, m.Max, m.Failed = 1, 2, 7
			}
			t.Moments = append(t.Moments, m)
		}
		return t
	}
	return k
}

func TestPlots(t *testing.T) {
	const names = "there is no theme \"blue\"; there are light, dark\n"
	for _, row := range []struct {
		name, path string
		change     func(*kit)
		wantStatus int
		want       []string // in the text of the plot
	}{
		{"percentiles", "percentiles.svg", nil, 200, []string{"Latency by percentile, the last 5 minutes", "<b>", "99 %"}},
		{"percentiles of an hour, dark and narrow", "percentiles.svg?window=1h&theme=dark&form=narrow", nil, 200, []string{"Latency by percentile, the last hour"}},
		{"seconds", "seconds.svg?t=12", nil, 200, []string{"Worst latency of each second", "<b>", "19:20"}},
		{"hour", "hour.svg?theme=light&form=wide", nil, 200, []string{"p99 of each 10 seconds", "19:00"}},
		{"of no targets", "seconds.svg", func(k *kit) { k.targets = nil }, 200, []string{"Worst latency of each second"}},
		{"before the first request", "hour.svg", func(k *kit) {
			k.timeline = func(name string, _ time.Duration) Timeline { return Timeline{Target: name} }
		}, 200, nil},
		{"without latencies", "percentiles.svg", func(k *kit) { k.cells = func(string, time.Duration) []Cell { return nil } }, 200, []string{"no requests yet"}},
		{"all of them failed", "percentiles.svg", func(k *kit) {
			k.cells = func(string, time.Duration) []Cell { return nil }
			k.targets[0].Failures = []Failure{{"connect", "refused", 9, 9, nil}}
		}, 200, []string{"no latency: all requests failed", "a (no latency: all requests failed)"}},
		{"of a young process", "percentiles.svg", func(k *kit) { k.status.Started = testNow.Add(-70 * time.Second) }, 200, []string{"Latency by percentile, the last 70 s"}},
		{"too few for a p99", "hour.svg", func(k *kit) {
			all := k.timeline
			k.timeline = func(name string, span time.Duration) Timeline {
				t := all(name, span)
				for i := range t.Moments {
					t.Moments[i].P99 = none()
				}
				return t
			}
		}, 200, []string{"no p99: too few requests"}},
		{"wrong theme", "seconds.svg?theme=blue", nil, 400, []string{names}},
		{"wrong form", "seconds.svg?form=round", nil, 400, []string{"there is no form \"round\"; there are wide, narrow\n"}},
		{"wrong window", "percentiles.svg?window=2m", nil, 400, []string{"there is no window \"2m\"; there are 5m, 1m, 1h\n"}},
		{"wrong query", "hour.svg?%zz", nil, 400, []string{"parsing the query"}},
		{"no such plot", "day.svg", nil, 404, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := plotKit()
			if row.change != nil {
				row.change(k)
			}
			r := ask(k.handler(t), "GET", "/plot/"+row.path)
			text := body(t, r)
			if r.StatusCode != row.wantStatus {
				t.Fatalf("status %d: %s", r.StatusCode, text)
			}
			if r.StatusCode == 200 {
				if got := r.Header.Get("Content-Type"); got != "image/svg+xml" {
					t.Errorf("content type %q", got)
				}
				if got := r.Header.Get("Content-Security-Policy"); strings.Contains(got, "script") || !strings.HasPrefix(got, "default-src 'none'; ") {
					t.Errorf("content security policy %q", got)
				}
				text = xmlText(t, text)
			}
			for _, want := range row.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
		})
	}
}

// xmlText returns the text of a document, and fails where it is not well formed.
func xmlText(t *testing.T, document string) string {
	t.Helper()
	var b strings.Builder
	d := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if text, ok := token.(xml.CharData); ok {
			b.Write(text)
			b.WriteByte('\n')
		}
	}
}

func TestPlotThatFails(t *testing.T) {
	k := newKit()
	o := k.options()
	p := newPlots(&o)
	p.draw = func(*Options, plotKey) ([]byte, error) { return nil, errors.New("test") }
	w := httptest.NewRecorder()
	p.serve(w, httptest.NewRequest("GET", "/plot/hour.svg", nil))
	if w.Code != 500 || w.Body.String() != "The plot cannot be drawn, see the log.\n" || !strings.Contains(k.log.String(), "err=test") {
		t.Errorf("status %d, %q, log %q", w.Code, w.Body, &k.log)
	}
}

// TestPictures checks what the page says of its plots: address, gist, room.
func TestPictures(t *testing.T) {
	k := plotKit()
	h := k.handler(t)
	page := loadPage(t, h)
	alts := map[string]string{}
	for _, i := range page.all(atom.Img) {
		path, _, _ := strings.Cut(i.attribute("src"), "?")
		alts[path] = i.attribute("alt")
	}
	want := map[string]string{
		pathPercentiles: "Latency by percentile over the last 5 minutes. p99: a –, <b> –.",
		pathSeconds:     "Worst latency of each second: the highest is 2.00 s, of <b> at 19:20:05 UTC. 7 requests failed.",
		pathHour:        "p99 of each 10 seconds: the highest is 1.00 s, of <b> at 19:20:05 UTC. 7 requests failed.",
	}
	for path, alt := range want {
		if alts[path] != alt {
			t.Errorf("%s has alt\n%s\nwant\n%s", path, alts[path], alt)
		}
	}
	if len(alts) != len(want) {
		t.Errorf("there are %d pictures", len(alts))
	}
}

func TestPicturesOfNothing(t *testing.T) {
	k := plotKit()
	k.timeline = func(name string, _ time.Duration) Timeline { return Timeline{Target: name} }
	text := body(t, ask(k.handler(t), "GET", "/"))
	if want := `alt="Worst latency of each second: there is none yet."`; !strings.Contains(text, want) {
		t.Errorf("%s is not on the page", want)
	}
}

// TestRoomOfPlots has the page keep the room that a plot took when it was drawn.
func TestRoomOfPlots(t *testing.T) {
	k := newKit()
	o := k.options()
	p := newPlots(&o)
	key := plotKey{path: pathHour}
	if got := p.size(key); got != (size{760, 440}) {
		t.Errorf("before the first one %v", got)
	}
	dark := key
	dark.dark = true
	_, _ = p.drawn.get(t.Context(), dark, func() ([]byte, error) { return []byte(`<svg viewBox="0 0 760 512.6">`), nil })
	if got := p.size(key); got != (size{760, 513}) {
		t.Errorf("after a dark one %v", got)
	}
	for _, svg := range []string{"", `<svg viewBox="0 0 760`, `<svg viewBox="0 0 760">`, `<svg viewBox="0 0 a b">`} {
		if got, ok := sizeOf([]byte(svg)); ok {
			t.Errorf("%q has size %v", svg, got)
		}
	}
	real, err := draw(&o, key)
	if got, ok := sizeOf(real); err != nil || !ok || got.Width != 760 {
		t.Errorf("what is drawn has size %v, error %v", got, err)
	}
}

func TestOverlaid(t *testing.T) {
	var targets []Target
	for i := range 12 {
		targets = append(targets, Target{Name: fmt.Sprint(i), Loop: "open", Condition: Condition{State: stateUp}})
	}
	targets[3].Loop = loopClosed
	targets[11].Condition.State = stateDown
	targets[10].Latency = []Window{{"5m", quantiles(0, 1, 0)}}
	shown, of := overlaid(targets)
	var names []string
	for _, s := range shown {
		names = append(names, s.Name)
	}
	if want := []string{"0", "1", "2", "4", "5", "6", "10", "11"}; of != 11 || !slices.Equal(names, want) {
		t.Errorf("of %d %v, want of 11 %v", of, names, want)
	}
}

func TestBands(t *testing.T) {
	at := func(s int) time.Time { return testNow.Add(time.Duration(s) * time.Second) }
	churns := []Churn{
		{Name: "web", History: []PhaseChange{{"scaling_up", at(-90)}, {"settled", at(-70)}, {"scaling_down", at(-30)}, {"settled", at(-20)}, {"scaling_up", at(-5)}}},
		{Name: "other", History: []PhaseChange{{"scaling_up", at(-90)}}},
	}
	var many []PhaseChange
	for i := range 2*maxBands + 2 {
		many = append(many, PhaseChange{[]string{"scaling_up", "settled"}[i%2], at(i - 1000)})
	}
	for _, row := range []struct {
		name  string
		shown []Target
		back  int
		want  []plot.Band
	}{
		{"of one churn", []Target{{Churn: "web"}, {}, {Churn: "web"}}, 60,
			[]plot.Band{{From: at(-30), To: at(-20), Kind: plot.ScalingDown}, {From: at(-5), To: testNow, Kind: plot.ScalingUp}}},
		{"longer ago", []Target{{Churn: "web"}}, 80, []plot.Band{{From: at(-90), To: at(-70), Kind: plot.ScalingUp},
			{From: at(-30), To: at(-20), Kind: plot.ScalingDown}, {From: at(-5), To: testNow, Kind: plot.ScalingUp}}},
		{"of two churns", []Target{{Churn: "web"}, {Churn: "other"}}, 60, nil},
		{"of none", []Target{{}}, 60, nil},
		{"of one that is not there", []Target{{Churn: "gone"}}, 60, nil},
		{"too many", []Target{{Churn: "many"}}, 2000, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := bands(append(churns, Churn{Name: "many", History: many}), row.shown, at(-row.back), testNow)
			if !slices.Equal(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestDuration(t *testing.T) {
	if got := duration(Number(math.NaN())); got != 0 {
		t.Errorf("none is %v", got)
	}
	if got := duration(0.0015); got != 1500*time.Microsecond {
		t.Errorf("1.5 ms is %v", got)
	}
}

// TestCache has many ask at once, and again and again.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[string](4 * time.Second)
		made, atOnce := 0, 0
		get := func(key string) string {
			content, err := c.get(t.Context(), key, func() ([]byte, error) {
				atOnce++
				time.Sleep(time.Second)
				if made++; atOnce != 1 {
					t.Errorf("%d are made at once", atOnce)
				}
				atOnce--
				return fmt.Append(nil, key, made), nil
			})
			if err != nil {
				t.Error(err)
			}
			return string(content)
		}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() { get([]string{"a", "b"}[i%2]) })
		}
		all.Wait()
		if made != 2 {
			t.Errorf("made %d for 20 who asked for two things", made)
		}
		if got := string(c.last("a")); !strings.HasPrefix(got, "a") || c.last("c") != nil {
			t.Errorf("the last one is %q", got)
		}
		time.Sleep(4 * time.Second)
		if get("a"); made != 3 {
			t.Errorf("made %d after it was old, want 3", made)
		}
		if _, err := c.get(t.Context(), "c", func() ([]byte, error) { return nil, errors.New("test") }); err == nil {
			t.Error("an error was swallowed")
		}
		if get("c"); made != 4 {
			t.Error("an error was kept")
		}
		gone, cancel := context.WithCancel(t.Context())
		go get("d")
		synctest.Wait()
		cancel()
		if _, err := c.get(gone, "e", func() ([]byte, error) { return nil, nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("who is gone got error %v", err)
		}
		time.Sleep(time.Second)
	})
}

func TestBegin(t *testing.T) {
	for _, row := range []struct {
		name    string
		ago     time.Duration
		wantAgo time.Duration
	}{
		{"old", time.Hour, 5 * time.Minute},
		{"just old enough", 5 * time.Minute, 5 * time.Minute},
		{"young", 2 * time.Minute, 2 * time.Minute},
		{"just started", time.Second, time.Minute},
		{"started by a clock that was set back", -time.Hour, time.Minute},
	} {
		if got := testNow.Sub(begin(testNow.Add(-row.ago), testNow, 5*time.Minute)); got != row.wantAgo {
			t.Errorf("%s: %v ago, want %v", row.name, got, row.wantAgo)
		}
	}
}

// TestPlotsOverTimeTellOfAsManyFailures has a process of 85 s: 8 slices of 10 s
// are over, and 5 seconds since. Its clock began a little before it had started.
func TestPlotsOverTimeTellOfAsManyFailures(t *testing.T) {
	k := newKit()
	k.targets = []Target{{Name: "a", Loop: "open"}}
	k.status.Started = testNow.Add(-85 * time.Second)
	k.timeline = func(name string, span time.Duration) Timeline {
		t := Timeline{Target: name, Span: Number(span.Seconds())}
		from := k.status.Started.Add(-time.Second / 4)
		if span == time.Second {
			from = from.Add(3 * time.Microsecond) // it is asked for a little later
		}
		for ; !from.Add(span).After(testNow.Add(time.Millisecond)); from = from.Add(span) {
			n := uint64(span / time.Second)
			t.Moments = append(t.Moments, Moment{From: from, Completed: 200 * n, Failed: n, P50: 0.001, P99: 0.002, Max: 0.003})
		}
		return t
	}
	o := k.options()
	hour := history(&o, "a", 10*time.Second)
	if len(hour) != 8+5 {
		t.Errorf("the hour has %d moments, want 8 slices and 5 seconds", len(hour))
	}
	for i, m := range hour {
		if there := !math.IsNaN(float64(m.P99)); there != (i < 8) {
			t.Errorf("moment %d has a p99 of %v", i, m.P99)
		}
	}
	for _, what := range []over{bySecond(), byHour()} {
		if alt := timelineAlt(what, &o, k.targets); !strings.HasSuffix(alt, " 85 requests failed.") {
			t.Errorf("%s", alt)
		}
		var svg bytes.Buffer
		if err := drawTimelines(&svg, plot.Look{}, &o, k.targets, what); err != nil || !strings.Contains(svg.String(), "a: 85 failed") {
			t.Errorf("%s: 85 failures are not drawn, error %v", what.title, err)
		}
	}
}

func TestLately(t *testing.T) {
	for _, row := range []struct {
		old, span time.Duration
		want      string
	}{
		{time.Hour, time.Hour, "hour"},
		{59 * time.Minute, time.Hour, "59 min"},
		{2 * time.Minute, 5 * time.Minute, "2 min"},
		{119 * time.Second, 5 * time.Minute, "119 s"},
		{5 * time.Minute, 5 * time.Minute, "5 minutes"},
		{time.Minute, time.Minute, "minute"},
		{59 * time.Second, time.Minute, "59 s"},
		{0, time.Hour, "1 s"},
		{-time.Hour, time.Hour, "1 s"}, // by a clock that was set back
	} {
		if got := lately(&Status{Started: testNow.Add(-row.old), Now: testNow}, row.span); got != row.want {
			t.Errorf("%v of %v: %q, want %q", row.old, row.span, got, row.want)
		}
	}
}

// TestPlotsShareTargets asks for all plots of a page: the targets are looked at
// once, and again when a second is over.
func TestPlotsShareTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		targets := shared(func() []Target {
			asked++
			return []Target{{Scheduled: uint64(asked)}}
		})
		for range 3 {
			if got := targets(); got[0].Scheduled != 1 {
				t.Errorf("targets of look %d, want those of the first", got[0].Scheduled)
			}
			time.Sleep(sharedFor / 4)
		}
		time.Sleep(sharedFor / 4)
		if got := targets(); got[0].Scheduled != 2 || asked != 2 {
			t.Errorf("targets of look %d after %d looks, want the second", got[0].Scheduled, asked)
		}
	})
}

package web

import (
	"fmt"
	"html/template"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html/atom"
)

// pageTarget is a target with a churn, whose figures are all different.
func pageTarget() Target {
	window := func(name string, p50, p99, p999, max float64) Window {
		return Window{name, Quantiles{{0.5, Number(p50)}, {0.99, Number(p99)}, {0.999, Number(p999)}, {1, Number(max)}}}
	}
	t := door("shop", [3]float64{0.0041, 0.0042, 0.312}, [3]uint64{0, 0, 13})
	t.URL, t.Rate, t.RateKept = "https://shop.example.com/a", 1000, 999.6
	t.Condition = Condition{State: stateDegraded, Since: testNow.Add(-72 * time.Second), Reason: "response/status"}
	t.Responses = map[string]uint64{"200": 2985, "502": 13, "other": 2}
	t.Objective = &Objective{0.25, 0.999, 2985} // 2,985 of 3,000 are 99.5 %
	t.Scheduled, t.Completed, t.InFlight, t.Backlog = 3007, 3000, 4, 3
	t.Connections = Connections{Open: 3, Limit: 50, Opened: 1234, Closed: map[string]uint64{"peer": 7, "max_age": 1200, "error": 7}}
	t.Latency = []Window{window("1m", 0.00013, 0.0182, 0.3, 1.5), window("5m", 0.00014, 0.0183, 0.31, 1.6), window("1h", 1, 1, 1, 1)}
	t.ServiceTime, t.Lateness = quantiles(0.00012, 0.0171, 0), quantiles(0.00003, 0.00011, 0)
	return t
}

func TestPageOfATarget(t *testing.T) {
	k := newKit()
	k.targets = []Target{pageTarget()}
	k.churns = []Churn{{Name: "web", State: "running", Phase: "scaling_down", Since: testNow.Add(-2 * time.Second),
		Baseline: 4, Desired: 2, Ready: 3, ReadyEndpoints: 1, Steps: 1212}}
	page := loadPage(t, k.handler(t))
	for _, row := range []struct {
		heading string
		want    []string
	}{
		{"Targets", []string{"shop https://shop.example.com/a | 1,000 | 1,000 | 130 µs | 18.2 ms | 300 ms | 1.50 s | 140 µs | 18.3 ms | 310 ms | 1.60 s | 13 | 13"}},
		{"By churn phase", []string{"shop",
			"settled | 1,000 | 0 | 0 % | none | 1.00 ms | 4.10 ms | 4.10 ms",
			"scaling up | 1,000 | 0 | 0 % | none | 1.00 ms | 4.20 ms | 4.20 ms",
			"scaling down worst | 1,000 | 13 | 1.3 % | 13 response/status (HTTP 502 Bad Gateway) | 1.00 ms | 312 ms | 312 ms"}},
		{"Connections, and the probe’s own part",
			[]string{"shop | 3 | 50 | 1,234 | 1,200 max_age, 7 error, 7 peer | 3,007 | 3,000 | 4 | 3 | 120 µs | 17.1 ms | 30 µs | 110 µs"}},
		{"Failures by stage and reason", []string{"shop",
			"response/status (HTTP 502 Bad Gateway) | 13 | 13 | The door answered with a status that is not expected. The door got no valid answer from its backend."}},
		// 2,985 + 13 + 2 = 3,000 answers.
		{"Answers by status", []string{"shop", "200 OK | 2,985 | 99.5 % | As expected.",
			"502 Bad Gateway | 13 | 0.43 % | Not expected: it counts as response/status. The door got no valid answer from its backend.",
			"other | 2 | 0.067 % | As expected."}},
		{"Objectives", []string{"shop missed | 99.9 % within 250 ms | 2,985 | 3,000 | 99.5 %"}},
	} {
		if got := page.section(t, row.heading).rows(); !slices.Equal(got, row.want) {
			t.Errorf("%s:\n%s\nwant\n%s", row.heading, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
	for _, row := range []struct{ heading, want string }{
		{"Is it well?", "as of 19:21:05 UTC , after 2 h 13 min, by the configuration of 19:08:05 UTC The target is degraded. ✓ The figures are trustworthy. Half of the time the probe itself adds at most 90 µs to a figure, in 1 of 100 cases 300 µs or more. " +
			"▲ degraded shop since 19:19:53 UTC (1 min), most often response/status (HTTP 502 Bad Gateway)"},
		{"What stands out", "shop : p99 is 312 ms while scaling down, 4.10 ms while settled. 1.3 % of its requests failed while scaling down, none while settled, all as response/status (HTTP 502 Bad Gateway). 502 Bad Gateway: the door got no valid answer from its backend."},
		{"Churn", "web running ; scaling down since 19:21:03 UTC (2 s) Desired replicas 2 Ready replicas 3 Ready endpoints 1 Baseline 4 Steps begun 1,212"},
	} {
		if got := page.section(t, row.heading).text(); got != row.heading+" "+row.want {
			t.Errorf("%s: got\n%s\nwant\n%s", row.heading, got, row.want)
		}
	}
}

func TestPageWithLittle(t *testing.T) {
	closed := pageTarget()
	closed.Loop, closed.Rate, closed.RateKept, closed.Latency, closed.Lateness, closed.Phases = loopClosed, none(), 63123, nil, nil, nil
	for _, row := range []struct {
		name      string
		change    func(*kit)
		want, not []string
	}{
		{"no targets", nil, []string{"There are no targets.", "The figures are trustworthy."},
			[]string{"What stands out", "By churn phase", "Desired replicas", "Connections, and", "Failures by", "Answers by status", "Objectives", "The last 5 minutes", "Requests/s"}},
		{"no self latency yet", func(k *kit) { k.status.Trust.SelfLatency = nil }, []string{"The figures are trustworthy."}, []string{"adds"}},
		{"before the first request", func(k *kit) {
			k.targets = []Target{{Name: "new", Loop: "open", Rate: 0.2, RateKept: none(), Condition: Condition{State: stateStarting, Since: testNow}}}
		}, []string{"The target is starting.", "○ starting new since 19:21:05 UTC (0 s)", "new – 0.2 – – – – – – – – 0 0"}, []string{"Failures by", "NaN", "What stands out"}},
		{"all is well", func(k *kit) { k.targets = []Target{windowed(0.01, 0.01, 0.01), windowed(0.01, 0.01, 0.01)} },
			[]string{"All 2 targets are up."}, []string{"What stands out", "worst"}},
		{"one is well", func(k *kit) { k.targets = []Target{windowed(0.01, 0.01, 0.01)} }, []string{"The target is up."}, nil},
		{"closed loop", func(k *kit) { k.targets = []Target{closed} },
			[]string{"or a closed loop, which has no intended times", "63,123 closed loop – – – – – – – – 13 13"}, []string{"By churn phase", "The last 5 minutes", "NaN"}},
		{"not to be trusted", func(k *kit) { k.status.Trust = Trust{Reasons: []string{"One <b>.", "Two."}} },
			[]string{"✕ The figures are not to be trusted. One <b>. Two. Failure counts, answers by status and connection counts still hold, but"}, []string{"are trustworthy"}},
		{"no objective", func(k *kit) { t := pageTarget(); t.Objective = nil; k.targets = []Target{t} }, nil, []string{"Objectives", "missed"}},
		{"objective without a ratio", func(k *kit) {
			t := pageTarget()
			t.Objective.Ratio = none()
			k.targets = []Target{t}
		}, []string{"shop within 250 ms 2,985 3,000 99.5 %"}, []string{"missed", "NaN"}},
		{"young", func(k *kit) {
			k.targets = []Target{pageTarget()}
			k.status.Started = testNow.Add(-70 * time.Second)
		}, []string{"The last 70 s, second by second", "The last 70 s, by percentile", "The last 70 s, every 10 seconds"}, []string{"The last 5 minutes", "The last hour"}},
		{"in trouble", func(k *kit) { k.since, k.ready = time.Minute, false },
			[]string{"steadyprobe is not healthy: the pacer woke 1m0s ago, it must wake every 10s.", "steadyprobe is not ready: "}, nil},
		{"paused churn", func(k *kit) {
			k.churns = []Churn{{Name: "web", State: "dry_run", Reason: "somebody scaled it", Since: testNow}}
		}, []string{"web dry run : somebody scaled it since 19:21:05 UTC"}, nil},
		{"more stands out than is said", func(k *kit) {
			for range maxFindings + 3 {
				k.targets = append(k.targets, pageTarget())
			}
		}, []string{"So do 3 more targets."}, []string{"Of 11 targets, the"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit()
			if row.change != nil {
				row.change(k)
			}
			text := loadPage(t, k.handler(t)).all(atom.Main)[0].text()
			for _, want := range row.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not on the page:\n%s", want, text)
				}
			}
			for _, not := range row.not {
				if strings.Contains(text, not) {
					t.Errorf("%q is on the page:\n%s", not, text)
				}
			}
		})
	}
}

// TestPageOfAShard says which it is, so that nobody takes its part for all.
func TestPageOfAShard(t *testing.T) {
	const says = "as shard 1 of 3, counted from 0: rates and connections are those of its part"
	k := newKit()
	if strings.Contains(body(t, ask(k.handler(t), "GET", "/")), "as shard") {
		t.Error("a process that is alone is a shard")
	}
	k = newKit()
	k.status.Shard = Shard{Index: 1, Shards: 3}
	if !strings.Contains(body(t, ask(k.handler(t), "GET", "/")), says) {
		t.Errorf("the page does not say %q", says)
	}
}

// TestPageWithManyTargets shows the least well in detail and the rest in a line.
func TestPageWithManyTargets(t *testing.T) {
	k := newKit()
	for i := range 1000 {
		one := windowed(0.01, 0.01, 0.01)
		one.Name = fmt.Sprintf("t%03d", i)
		k.targets = append(k.targets, one)
	}
	k.targets[700].Condition.State = stateDown
	k.targets[800].Condition.State = stateDegraded
	k.targets[900].Latency[1].Quantiles = quantiles(0.01, 0.011, 0.01) // the slowest that is up
	h := k.handler(t)
	page := loadPage(t, h)
	var names []string
	for _, row := range page.section(t, "Targets").rows() {
		name, _, _ := strings.Cut(row, " ")
		names = append(names, name)
	}
	if want := []string{"t700", "t800", "t900", "t000", "t001"}; len(names) != maxDetailed || !slices.Equal(names[:5], want) {
		t.Errorf("%d in detail, first %v, want %d, first %v", len(names), names[:5], maxDetailed, want)
	}
	if conditions := len(page.section(t, "Is it well?").all(atom.Li)); conditions != 2 {
		t.Errorf("%d conditions are listed, want those 2 that are not up", conditions)
	}
	rest := page.id(t, "rest").rows()
	if want := "t047 | ● up | 0 | 10.0 ms | 0"; len(rest) != 950 || rest[0] != want {
		t.Errorf("%d others, the first is %q, want 950 and %q", len(rest), rest[0], want)
	}
	text := page.all(atom.Main)[0].text()
	for _, want := range []string{"Of 1,000 targets: 1 down, 1 degraded, 998 up.", "Of 1,000 targets, the 50 least well are shown in detail",
		"Plots show 8 of 1,000 targets: the least well."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	if n := len(body(t, ask(h, "GET", "/"))); n > 1<<20 {
		t.Errorf("the page has %d bytes", n)
	}
}

// TestPageEscapes has names that would be a script if they were taken as such.
func TestPageEscapes(t *testing.T) {
	evil := `"><script>alert('x')</script><img/src=x`
	k := newKit()
	one := pageTarget()
	one.Name, one.URL, one.Condition.Reason, one.Condition.State = evil, "https://a/"+evil, evil, evil
	one.Failures[0].Reason, one.Phases[2].Failures[0].Reason, one.Phases[0].Phase = evil, evil, evil
	one.Connections.Closed[evil], one.Responses[evil], one.Failures[0].Codes = 1, 1, []string{evil}
	k.targets = []Target{one}
	k.churns = []Churn{{Name: evil, State: evil, Reason: evil, Phase: evil}}
	k.status.Version, k.status.Trust = evil, Trust{Reasons: []string{evil}}
	page := loadPage(t, k.handler(t))
	if scripts := page.all(atom.Script); len(scripts) != 1 || scripts[0].attribute("src") != "page.js" || scripts[0].FirstChild != nil {
		t.Errorf("the page has %d scripts", len(scripts))
	}
	for _, i := range page.all(atom.Img) {
		if !strings.HasPrefix(i.attribute("src"), "plot/") {
			t.Errorf("there is a picture %q", i.attribute("src"))
		}
	}
	if !strings.Contains(page.section(t, "Targets").text(), evil) {
		t.Error("the name is not shown as it is")
	}
}

// TestPageIsAccessible checks what needs no eyes: language, landmarks, the order
// of headings, scopes and labels of tables, texts of pictures, and that ids are
// there once.
func TestPageIsAccessible(t *testing.T) {
	k := newKit()
	for i := range maxDetailed + 1 {
		one := pageTarget()
		one.Name = fmt.Sprint(i)
		k.targets = append(k.targets, one)
	}
	k.churns = []Churn{{Name: "web", State: "running", Phase: "settled"}}
	page := loadPage(t, k.handler(t))
	if got := page.all(atom.Html)[0].attribute("lang"); got != "en" {
		t.Errorf("language %q", got)
	}
	for _, landmark := range []atom.Atom{atom.Header, atom.Nav, atom.Main, atom.H1} {
		if n := len(page.all(landmark)); n != 1 {
			t.Errorf("%d of %v", n, landmark)
		}
	}
	before := 0
	for _, h := range page.all(atom.H1, atom.H2, atom.H3) {
		level := int(h.Data[1] - '0')
		if level > before+1 {
			t.Errorf("heading %q of level %d comes after level %d", h.text(), level, before)
		}
		before = level
	}
	ids := map[string]int{}
	for _, e := range page.all() {
		if id := e.attribute("id"); id != "" {
			ids[id]++
		}
		if e.attribute("style") != "" || e.DataAtom == atom.Style {
			t.Errorf("%s has a style that the policy refuses", e.Data)
		}
		if e.attribute("tabindex") != "" && e.attribute("id") == "" {
			t.Errorf("%s can have the focus and has no id to find it again", e.Data)
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("#%s is there %d times", id, n)
		}
	}
	for _, e := range page.all() {
		if by := e.attribute("aria-labelledby"); by != "" && ids[by] != 1 {
			t.Errorf("%s is labelled by #%s, which is not there", e.Data, by)
		}
	}
	for _, table := range page.all(atom.Table) {
		checkTable(t, table)
	}
	for _, i := range page.all(atom.Img) {
		if len(i.attribute("alt")) < 20 || i.attribute("width") == "" || i.attribute("height") == "" {
			t.Errorf("the picture %q has alt %q, width %q, height %q", i.attribute("src"), i.attribute("alt"), i.attribute("width"), i.attribute("height"))
		}
	}
}

// checkTable looks for a caption, and a scope or a label in each cell.
func checkTable(t *testing.T, table node) {
	t.Helper()
	captions := table.all(atom.Caption)
	if len(captions) != 1 {
		t.Fatalf("%d captions", len(captions))
	}
	caption := captions[0].text()
	for _, h := range table.all(atom.Th) {
		if h.attribute("scope") == "" || h.attribute("role") == "" {
			t.Errorf("%s: the heading %q has no scope or no role", caption, h.text())
		}
	}
	for _, d := range table.all(atom.Td) {
		if d.attribute("data-label") == "" || d.attribute("role") != "cell" {
			t.Fatalf("%s: the cell %q has no label or no role", caption, d.text())
		}
	}
}

// TestPageLoadsNothingFromElsewhere follows all links: each is relative, so that
// a prefix of a proxy holds, and is served here.
func TestPageLoadsNothingFromElsewhere(t *testing.T) {
	k := newKit()
	k.targets = []Target{pageTarget()}
	h := k.handler(t)
	r := ask(h, "GET", "/")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
		if got := r.Header.Get("Content-Security-Policy"); !slices.Contains(strings.Split(got, "; "), want) {
			t.Errorf("content security policy %q lacks %s", got, want)
		}
	}
	links := map[string]bool{}
	for _, e := range loadPage(t, h).all() {
		for _, name := range []string{"href", "src", "srcset"} {
			if link := e.attribute(name); link != "" && !strings.HasPrefix(link, "#") {
				links[link] = true
			}
		}
	}
	if len(links) < 14 {
		t.Errorf("only %d links were found: %v", len(links), links)
	}
	for link := range links {
		if strings.HasPrefix(link, "/") || strings.Contains(link, "//") || strings.Contains(link, ":") {
			t.Errorf("%q is not relative", link)
		}
		if r := ask(h, "GET", "/"+link); r.StatusCode != 200 {
			t.Errorf("%q: status %d", link, r.StatusCode)
		}
	}
	for _, text := range []string{string(pageStyle), string(pageScript)} {
		if strings.Contains(text, "//") && strings.Contains(text, "http") || strings.Contains(text, "url(") || strings.Contains(text, "@import") {
			t.Error("a style or a script names another place")
		}
	}
}

// TestPageIsMadeOnceInAWhile has a crowd look at it: what it costs to ask all
// targets is paid once.
func TestPageIsMadeOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit()
		o := k.options()
		asked := 0
		o.Targets = func() []Target { asked++; return nil }
		h, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			ask(h, "GET", "/")
		}
		time.Sleep(pageFresh)
		ask(h, "GET", "/")
		if asked != 2 {
			t.Errorf("made %d times, want 2", asked)
		}
	})
}

// TestPageThatFails has a template that asks for what there is not.
func TestPageThatFails(t *testing.T) {
	k := newKit()
	o := k.options()
	p, err := newPage(&o, newPlots(&o))
	if err != nil {
		t.Fatal(err)
	}
	p.template = template.Must(template.New("").Parse("half a page {{.Nothing}}"))
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 500 || w.Body.String() != "The page cannot be shown, see the log.\n" || !strings.Contains(k.log.String(), "rendering: ") {
		t.Errorf("status %d, %q, log %q", w.Code, w.Body, &k.log)
	}
}

func BenchmarkPageOf1000Targets(b *testing.B) {
	k := newKit()
	for i := range 1000 {
		one := pageTarget()
		one.Name = fmt.Sprint(i)
		k.targets = append(k.targets, one)
	}
	o := k.options()
	p, err := newPage(&o, newPlots(&o))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.make(); err != nil {
			b.Fatal(err)
		}
	}
}

// A target that tells addresses and backends apart has a table of each; the one
// that does not has none.
func TestPagePlaces(t *testing.T) {
	k := newKit()
	k.targets = []Target{apiTarget(), {Name: "plain"}}
	text := body(t, ask(k.handler(t), "GET", "/"))
	for _, want := range []string{
		`<th role="rowheader" scope="row" class="word">10.0.0.1</th>
<td role="cell" data-label="Requests">8</td>
<td role="cell" data-label="Failed" class="bad">2</td>
<td role="cell" data-label="p50">100 µs</td>
<td role="cell" data-label="p99">–</td>`,
		`<th role="rowheader" scope="row" class="word">web-1</th>
<td role="cell" data-label="Answers">7</td>
<td role="cell" data-label="Share">100 %</td>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have\n%s", want)
		}
	}
	k = newKit()
	k.targets = []Target{{Name: "plain"}}
	text = body(t, ask(k.handler(t), "GET", "/"))
	if strings.Contains(text, "By address") || strings.Contains(text, "By backend") {
		t.Error("the page has tables of what nothing is known of")
	}
}

func TestRateKept(t *testing.T) {
	for _, row := range []struct {
		rate, kept float64
		want       string
	}{
		{200, 199.5, "200"}, {0.2, 0.2, "0.2"}, {1. / 60, 0, "0"}, {0.016, 0, "–"}, {float64(none()), 1000, "1,000"},
	} {
		if got := rateKept(&Target{Rate: Number(row.rate), RateKept: Number(row.kept)}); got != row.want {
			t.Errorf("kept %v of %v is %q, want %q", row.kept, row.rate, got, row.want)
		}
	}
}

package web

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hostile is a name with all that URLs, HTML and JSON have a meaning for.
const hostile = `a/b?c=%d&<b>'#+;{}/..`

// apiTarget is a target with a figure in every field.
func apiTarget() Target {
	return Target{
		Name: "shop", URL: "https://shop.example.com/a", Labels: map[string]string{"site": "fra1"},
		Loop: "open", Rate: 0.2, RateKept: none(), Churn: "web",
		Condition: Condition{State: "degraded", Since: testNow.Add(-time.Minute), Reason: "read/timeout"},
		Scheduled: 12, Completed: 10, InFlight: 1, Backlog: 1, Failed: 2,
		Failures:  []Failure{{"read", "timeout", 2, 1, nil}, {"response", "status", 1, 0, []string{"502"}}},
		Responses: map[string]uint64{"200": 8, "502": 1, "other": 1}, Objective: &Objective{0.05, none(), 7},
		Connections: Connections{Open: 3, Limit: 50, Opened: 5, Closed: map[string]uint64{"peer": 2}},
		Latency:     []Window{{"1m", Quantiles{{0.5, 0.00013}, {1, none()}}}},
		ServiceTime: Quantiles{{0.5, 0.0001}}, Lateness: Quantiles{{0.5, 0.00003}},
		Addresses: []Address{{"10.0.0.1", 8, 2, Quantiles{{0.5, 0.0001}}}, {"other", 1, 0, nil}},
		Backends:  []Backend{{"web-1", 7}},
		Phases: []ChurnPhase{{Phase: "settled", Completed: 10, Failed: 2, Failures: []Failure{{"read", "timeout", 2, 0, nil}},
			Latency: Quantiles{{0.99, none()}}}},
	}
}

const apiTargetJSON = `{"name":"shop","url":"https://shop.example.com/a","labels":{"site":"fra1"},"loop":"open",` +
	`"rate":0.2,"rate_kept":null,"churn":"web",` +
	`"condition":{"state":"degraded","since":"2026-11-30T19:20:05Z","reason":"read/timeout"},` +
	`"scheduled":12,"completed":10,"in_flight":1,"backlog":1,"failed":2,` +
	`"failures":[{"failure_stage":"read","reason":"timeout","total":2,"last_5m":1},` +
	`{"failure_stage":"response","reason":"status","total":1,"last_5m":0,"codes":["502"]}],` +
	`"responses":{"200":8,"502":1,"other":1},"objective":{"latency":0.05,"ratio":null,"within":7},` +
	`"connections":{"open":3,"limit":50,"opened":5,"closed":{"peer":2}},` +
	`"latency":[{"window":"1m","quantiles":[{"q":0.5,"seconds":0.00013},{"q":1,"seconds":null}]}],` +
	`"service_time":[{"q":0.5,"seconds":0.0001}],"lateness":[{"q":0.5,"seconds":3e-05}],` +
	`"addresses":[{"address":"10.0.0.1","requests":8,"failed":2,"latency":[{"q":0.5,"seconds":0.0001}]},` +
	`{"address":"other","requests":1,"failed":0,"latency":[]}],"backends":[{"backend":"web-1","answers":7}],` +
	`"churn_phases":[{"phase":"settled","completed":10,"failed":2,` +
	`"failures":[{"failure_stage":"read","reason":"timeout","total":2,"last_5m":0}],"latency":[{"q":0.99,"seconds":null}]}]}`

// apiChurn is a churn with a figure in every field.
func apiChurn() Churn {
	return Churn{
		Name: "web", Workload: "deployment/web in namespace shop", Targets: []string{"shop"}, State: "running", Cause: "conflict", Reason: "again",
		Phase: "settled", Since: testStart, Baseline: 4, Desired: 2, Ready: 2, ReadyEndpoints: 3, Floor: 2, Ceiling: 8, Steps: 7, Kills: 1, Cycles: 3,
		Leader: true, LeaderName: "probe-0", RestorePending: true, LastBeat: Time{testStart}, Next: &NextStep{At: testNow, Replicas: 4},
		PausedByHand: true, PausedUntil: Time{testNow}, Errors: map[string]uint64{"conflict": 2}, History: []PhaseChange{{"settled", testStart}},
	}
}

const apiChurnJSON = `{"name":"web","workload":"deployment/web in namespace shop","targets":["shop"],"state":"running","cause":"conflict","reason":"again",` +
	`"phase":"settled","since":"2026-11-30T17:08:05Z","baseline_replicas":4,"desired_replicas":2,"ready_replicas":2,"ready_endpoints":3,` +
	`"floor_replicas":2,"ceiling_replicas":8,"steps":7,"kills":1,"cycles":3,"leader":true,"leader_name":"probe-0","restore_pending":true,` +
	`"last_beat":"2026-11-30T17:08:05Z","next_step":{"at":"2026-11-30T19:21:05Z","replicas":4,"kill":0},"paused_by_hand":true,` +
	`"paused_until":"2026-11-30T19:21:05Z","errors":{"conflict":2},"history":[{"phase":"settled","from":"2026-11-30T17:08:05Z"}]}`

// emptyChurnJSON is a churn named b of which nothing is known yet.
const emptyChurnJSON = `{"name":"b","workload":"","targets":[],"state":"","phase":"","since":"0001-01-01T00:00:00Z","baseline_replicas":0,` +
	`"desired_replicas":0,"ready_replicas":0,"ready_endpoints":0,"floor_replicas":0,"ceiling_replicas":0,"steps":0,"kills":0,"cycles":0,` +
	`"leader":false,"leader_name":"","restore_pending":false,"last_beat":null,"next_step":null,"paused_by_hand":false,"paused_until":null,"errors":{},"history":[]}`

// emptyTargetJSON is a target of which nothing is known yet.
const emptyTargetJSON = `{"name":"new","url":"","labels":{},"loop":"","rate":0,"rate_kept":0,` +
	`"condition":{"state":"","since":"0001-01-01T00:00:00Z"},"scheduled":0,"completed":0,"in_flight":0,"backlog":0,` +
	`"failed":0,"failures":[],"responses":{},"objective":null,"connections":{"open":0,"limit":0,"opened":0,"closed":{}},"latency":[],"service_time":[],` +
	`"lateness":[],"addresses":[],"backends":[],"churn_phases":[]}`

func success(data string) string { return `{"status":"success","data":` + data + "}\n" }

func failure(kind, message string) string {
	text, _ := json.Marshal(message)
	return `{"status":"error","errorType":"` + kind + `","error":` + string(text) + "}\n"
}

func TestAPI(t *testing.T) {
	full := func(k *kit) { k.targets = []Target{apiTarget()} }
	const window = `there is no window "2m"; there are 5m, 1m, 1h`
	paths := "/api/v1/status, /api/v1/targets, /api/v1/targets/{name}, /api/v1/targets/{name}/distribution, " +
		"/api/v1/targets/{name}/timeline, /api/v1/churns, /api/v1/discovery, /api/v1/churns/{name}/pause, /api/v1/churns/{name}/resume, /api/v1/churns/{name}/restore"
	for _, row := range []struct {
		name, method, path string
		change             func(*kit)
		wantStatus         int
		want               string
	}{
		{"status", "GET", "status", nil, 200, success(`{"version":"1.2.3","revision":"0123abc",` +
			`"started":"2026-11-30T17:08:05Z","now":"2026-11-30T19:21:05Z","ready":true,"configuration":{"loaded":"2026-11-30T19:08:05Z","failed":null},"shard":{"index":0,"shards":1},"trust":{"trustworthy":true,"reasons":[],` +
			`"self_latency":[{"q":0.5,"seconds":9e-05},{"q":0.99,"seconds":0.0003}]}}`)},
		{"targets", "GET", "targets", func(k *kit) { k.targets = []Target{apiTarget(), {Name: "new"}} }, 200,
			success("[" + apiTargetJSON + "," + emptyTargetJSON + "]")},
		{"no targets", "GET", "targets", nil, 200, success("[]")},
		{"one target", "GET", "targets/shop", full, 200, success(apiTargetJSON)},
		{"hostile target", "GET", "targets/a%2Fb%3Fc=%25d%26%3Cb%3E'%23+%3B%7B%7D%2F..",
			func(k *kit) { k.targets = []Target{{Name: hostile}} }, 200,
			success(strings.Replace(emptyTargetJSON, `"new"`, `"a/b?c=%d\u0026\u003cb\u003e'#+;{}/.."`, 1))},
		{"target named as a folder", "GET", "targets/%2E%2E", func(k *kit) { k.targets = []Target{{Name: ".."}} }, 200,
			success(strings.Replace(emptyTargetJSON, "new", "..", 1))},
		{"unknown target", "GET", "targets/shp", full, 404, failure("not_found", `there is no target "shp"; there are "shop"`)},
		{"target of none", "GET", "targets/shp", nil, 404, failure("not_found", `there is no target "shp"; there are no targets`)},
		{"target of many", "GET", "targets/x", func(k *kit) {
			for i := range 12 {
				k.targets = append(k.targets, Target{Name: fmt.Sprint(i)})
			}
		}, 404, failure("not_found", `there is no target "x"; there are "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" and 2 more, see /api/v1/targets`)},
		{"churns", "GET", "churns", func(k *kit) { k.churns = []Churn{apiChurn(), {Name: "b", Cause: "unreachable", Reason: "lost"}} }, 200,
			success("[" + apiChurnJSON + "," + strings.Replace(emptyChurnJSON, `"state":""`, `"state":"","cause":"unreachable","reason":"lost"`, 1) + "]")},
		{"no churns", "GET", "churns", nil, 200, success("[]")},
		{"timeline", "GET", "targets/shop/timeline?span=10s", func(k *kit) {
			full(k)
			k.timeline = func(name string, span time.Duration) Timeline {
				return Timeline{Target: name, Span: Number(span.Seconds()), Moments: []Moment{
					{From: testStart, Completed: 3, Failed: 1, P50: 0.001, P99: none(), Max: 0.002}}}
			}
		}, 200, success(`{"target":"shop","span":10,"moments":[{"from":"2026-11-30T17:08:05Z","completed":3,"failed":1,"p50":0.001,"p99":null,"max":0.002}]}`)},
		{"timeline by seconds unless told", "GET", "targets/shop/timeline", full, 200, success(`{"target":"shop","span":1,"moments":[]}`)},
		{"timeline of a wrong span", "GET", "targets/shop/timeline?span=1m", full, 400, failure("bad_data", `there is no span "1m"; there are 1s, 10s`)},
		{"timeline of no target", "GET", "targets/x/timeline", full, 404, failure("not_found", `there is no target "x"; there are "shop"`)},
		{"empty distribution", "GET", "targets/shop/distribution?window=1h", full, 200,
			success(`{"target":"shop","window":"1h","count":0,"min":null,"mean":null,"max":null,"percentiles":[]}`)},
		{"distribution of a wrong window", "GET", "targets/shop/distribution?window=2m", full, 400, failure("bad_data", window)},
		{"distribution of an empty window", "GET", "targets/shop/distribution?window=", full, 400, failure("bad_data", strings.Replace(window, "2m", "", 1))},
		{"distribution of a wrong format", "GET", "targets/shop/distribution?format=xml", full, 400, failure("bad_data", `there is no format "xml"; there are json, hgrm`)},
		{"distribution of no target", "GET", "targets/x/distribution", full, 404, failure("not_found", `there is no target "x"; there are "shop"`)},
		{"query that is none", "GET", "targets/shop/distribution?window=%zz", full, 400,
			failure("bad_data", `parsing the query "window=%zz": invalid URL escape "%zz"`)},
		{"unknown path", "GET", "target", nil, 404, failure("not_found", `there is no "/api/v1/target"; there are `+paths)},
		{"nothing", "GET", "", nil, 404, failure("not_found", `there is no "/api/v1/"; there are `+paths)},
		{"below a target", "DELETE", "targets/a/b", nil, 404, failure("not_found", `there is no "/api/v1/targets/a/b"; there are `+paths)},
		{"post", "POST", "targets", nil, 405, failure("method_not_allowed", "this is read only; use GET or HEAD")},
		{"delete", "DELETE", "targets/shop/distribution", full, 405, failure("method_not_allowed", "this is read only; use GET or HEAD")},
		{"figure that JSON has not", "GET", "status", func(k *kit) { k.status.Trust.SelfLatency[0].Q = math.NaN() }, 500,
			failure("internal", "the question cannot be answered; see the log")},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit()
			if row.change != nil {
				row.change(k)
			}
			r := ask(k.handler(t), row.method, "/api/v1/"+row.path)
			if r.StatusCode != row.wantStatus {
				t.Errorf("status %d, want %d", r.StatusCode, row.wantStatus)
			}
			if got := r.Header.Get("Content-Type"); got != "application/json" {
				t.Errorf("content type %q", got)
			}
			if diff := cmp.Diff(row.want, body(t, r)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if got := r.Header.Get("Allow"); (got == "GET, HEAD") != (row.wantStatus == http.StatusMethodNotAllowed) {
				t.Errorf("allow %q with status %d", got, row.wantStatus)
			}
			if got := r.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("cache control %q", got)
			}
		})
	}
}

// distributed is 98 requests of 1 ms, one of 10 ms and one of 2 s.
func distributed(string, time.Duration) []Cell {
	return []Cell{{time.Millisecond, 98}, {10 * time.Millisecond, 1}, {2 * time.Second, 1}}
}

// TestDistribution has a mean of (98 × 1 ms + 10 ms + 2000 ms) / 100 = 21.08
// ms, to three digits as all values.
func TestDistribution(t *testing.T) {
	k := newKit()
	k.targets, k.cells = []Target{apiTarget()}, distributed
	var got struct{ Data Distribution }
	if err := json.Unmarshal([]byte(body(t, ask(k.handler(t), "GET", "/api/v1/targets/shop/distribution"))), &got); err != nil {
		t.Fatal(err)
	}
	d := got.Data
	if d.Count != 100 || d.Window != "5m" || d.Target != "shop" {
		t.Errorf("got %d of window %q and target %q", d.Count, d.Window, d.Target)
	}
	for _, row := range []struct {
		name      string
		got, want float64
	}{{"min", float64(d.Min), 0.001}, {"mean", float64(d.Mean), 0.02108}, {"max", float64(d.Max), 2}} {
		if math.Abs(row.got-row.want) > row.want/1000 {
			t.Errorf("%s is %v, want %v to three digits", row.name, row.got, row.want)
		}
	}
	before := Percentile{Percentile: -1}
	for _, p := range d.Percentiles {
		if p.Percentile <= before.Percentile || p.Seconds < before.Seconds || p.Count < before.Count {
			t.Errorf("%+v comes after %+v", p, before)
		}
		// Rank: the share of latencies up to its value is at least the percentile.
		if float64(p.Count) < p.Percentile {
			t.Errorf("%+v is reached by %d of 100", p, p.Count)
		}
		before = p
	}
	if before.Percentile != 100 || before.Seconds != d.Max || before.Count != 100 {
		t.Errorf("the last one is %+v", before)
	}
	// 5 ticks to each half: 0, 10, 20, 30, 40, 50, 55, …
	for i, want := range []float64{0, 10, 20, 30, 40, 50, 55, 60} {
		if got := d.Percentiles[i].Percentile; math.Abs(got-want) > 1e-9 {
			t.Errorf("percentile %d is %v, want %v", i, got, want)
		}
	}
}

func TestHGRM(t *testing.T) {
	k := newKit()
	k.targets, k.cells = []Target{apiTarget()}, distributed
	r := ask(k.handler(t), "GET", "/api/v1/targets/shop/distribution?format=hgrm&window=1m")
	if got := r.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	lines := strings.Split(body(t, r), "\n")
	for i, want := range map[int]string{
		0: " Value\tPercentile\tTotalCount\t1/(1-Percentile)",
		1: "",
		2: "       1.000     0.000000           98         1.00",
		// The last line but three of the footer and the end; 2 s are to three
		// digits 2,000.683 ms at most.
		len(lines) - 5: "    2000.683     1.000000          100          inf",
		len(lines) - 3: "#[Max     =     2000.683, Total count    =          100]",
	} {
		if lines[i] != want {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
}

func TestEmptyHGRM(t *testing.T) {
	k := newKit()
	k.targets = []Target{apiTarget()}
	got := body(t, ask(k.handler(t), "GET", "/api/v1/targets/shop/distribution?format=hgrm"))
	if strings.Contains(got, "NaN") || !strings.Contains(got, "Total count    =            0]") {
		t.Errorf("an empty window is\n%s", got)
	}
}

// TestHistogramOfAnyCells records what is above an hour as an hour.
func TestHistogramOfAnyCells(t *testing.T) {
	h, err := histogram([]Cell{{0, 1}, {25 * time.Hour, 2}})
	if err != nil || h.TotalCount() != 3 || !h.ValuesAreEquivalent(h.Max(), int64(time.Hour)) {
		t.Errorf("got %d with a highest of %d, and error %v", h.TotalCount(), h.Max(), err)
	}
	k := newKit()
	k.targets = []Target{apiTarget()}
	k.cells = func(string, time.Duration) []Cell { return []Cell{{1, math.MaxUint64}, {2, math.MaxUint64}} }
	if r := ask(k.handler(t), "GET", "/api/v1/targets/shop/distribution"); r.StatusCode != 500 {
		t.Errorf("status %d for counts that no histogram holds", r.StatusCode)
	}
	if got := k.log.String(); !strings.Contains(got, "counting 18446744073709551615 latencies of 2ns: ") {
		t.Errorf("the log does not say why:\n%s", got)
	}
}

// TestAPIOverTheWire asks as clients do: with an encoded name, by HEAD, and
// more at once than are answered.
func TestAPIOverTheWire(t *testing.T) {
	k := newKit()
	k.targets = []Target{{Name: hostile}}
	inside, leave := make(chan struct{}), make(chan struct{})
	k.cells = func(string, time.Duration) []Cell { inside <- struct{}{}; <-leave; return nil }
	server := httptest.NewServer(k.handler(t))
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	get := func(path string) (int, string) {
		r, err := client.Get(server.URL + "/api/v1/" + path)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(text)
	}
	encoded := "targets/" + url.PathEscape(hostile)
	if status, text := get(encoded); status != 200 {
		t.Errorf("%s: status %d: %s", encoded, status, text)
	}
	r, err := client.Head(server.URL + "/api/v1/" + encoded)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(r.Body); r.StatusCode != 200 || len(text) != 0 || r.ContentLength <= 0 {
		t.Errorf("HEAD: status %d with %d bytes and length %d", r.StatusCode, len(text), r.ContentLength)
	}
	codes := make(chan int)
	for range maxAnswers {
		go func() { status, _ := get(encoded + "/distribution"); codes <- status }()
		<-inside
	}
	status, text := get("status")
	if want := failure("unavailable", "too many questions at once; ask again in a second"); status != 503 || text != want {
		t.Errorf("one too many: status %d: %s", status, text)
	}
	close(leave)
	for range maxAnswers {
		if status := <-codes; status != 200 {
			t.Errorf("one of the first: status %d", status)
		}
	}
}

// TestAPIPage holds docs/API.md to the code: all paths, parameters and fields.
func TestAPIPage(t *testing.T) {
	text, err := os.ReadFile("../docs/API.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, r := range (&api{}).routes() {
		if !strings.Contains(page, "`/"+r.path+"`") {
			t.Errorf("/%s is not in docs/API.md", r.path)
		}
	}
	for _, path := range []string{"", pathMetrics, pathHealthy, pathReady, pathConfig, pathPercentiles, pathSeconds, pathHour,
		pathStyle, pathScript, pathIcon} {
		if !strings.Contains(page, "`/"+path+"`") {
			t.Errorf("/%s is not in docs/API.md", path)
		}
	}
	var values []string
	for _, c := range windows() {
		values = append(values, c.name)
	}
	for _, c := range spans() {
		values = append(values, c.name)
	}
	for _, c := range writers() {
		values = append(values, c.name)
	}
	for _, c := range append(themes(), forms()...) {
		values = append(values, c.name)
	}
	for _, v := range values {
		if !strings.Contains(page, "`"+v+"`") {
			t.Errorf("the value %s is not in docs/API.md", v)
		}
	}
	for _, v := range []any{envelope{}, Status{}, Target{}, Churn{}, Timeline{}, Distribution{}} {
		for field := range fields(reflect.TypeOf(v)) {
			if !strings.Contains(page, "| `"+field+"` |") {
				t.Errorf("the field %s of %T is not in docs/API.md", field, v)
			}
		}
	}
}

// fields returns the names in JSON of all fields of t and of what it holds.
func fields(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return fields(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			names[name] = true
			for inner := range fields(t.Field(i).Type) {
				names[inner] = true
			}
		}
	}
	return names
}

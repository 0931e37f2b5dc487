package test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/monitoring"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
)

// Targets of the shards, and of the process that does the same alone: fast has
// as many requests as tell rates, ticks so few that each can be told from the
// next, rare fewer connections than there are processes.
const shardedTargets = `
defaults: {timeout: 10s}
targets:
  - {name: fast, url: "http://%[1]s/%[2]s/fast", rate: %[3]s, connections: 10}
  - {name: ticks, url: "http://%[1]s/%[2]s/ticks", rate: %[4]s, connections: 10}
  - {name: rare, url: "http://%[1]s/%[2]s/rare", rate: %[5]s, connections: 2}
  - {name: users, url: "http://%[1]s/%[2]s/users", rate: %[6]s, connections: 10, arrival: poisson}
  - {name: dealt-0, url: "http://%[1]s/%[2]s/dealt-0", rate: %[7]s, sharding: targets}
  - {name: dealt-1, url: "http://%[1]s/%[2]s/dealt-1", rate: %[7]s, sharding: targets}
  - {name: dealt-2, url: "http://%[1]s/%[2]s/dealt-2", rate: %[7]s, sharding: targets}
  - {name: dealt-3, url: "http://%[1]s/%[2]s/dealt-3", rate: %[7]s, sharding: targets}
`

// shards are three processes that probe an nginx together, one that does so
// alone, and a Prometheus that scrapes them all.
type shards struct {
	t          *testing.T
	nginx      *testbed.NGINXServer
	three      []*testbed.ProbeServer
	alone      *testbed.ProbeServer
	prometheus *testbed.PrometheusServer
	names      []string
}

// configuration returns that of processes whose requests begin with a path.
func (s *shards) configuration(path string, rates ...any) string {
	return fmt.Sprintf(shardedTargets, append([]any{s.nginx.HTTP, path}, rates...)...)
}

// usualRates are those of a sound process, slowRates of one that is to stand still.
func usualRates() []any { return []any{"90", "4", "0.7", "60", "3"} }
func slowRates() []any  { return []any{"0.001", "0.001", "0.001", "0.001", "0.001"} }

func startShards(t *testing.T) *shards {
	s := &shards{t: t, names: []string{"fast", "ticks", "rare", "users", "dealt-0", "dealt-1", "dealt-2", "dealt-3"}}
	s.nginx = testbed.NGINX(t, testbed.NGINXOptions{AccessLog: true, Note: "$msec $uri"})
	program := testbed.BuildProbe(t)
	for k := range 3 {
		// One after the other: each takes its moment to start.
		s.three = append(s.three, testbed.Probe(t, program, s.configuration("three", usualRates()...),
			"--shard.count=3", "--shard.index="+strconv.Itoa(k), "--web.enable-lifecycle"))
	}
	s.alone = testbed.Probe(t, program, s.configuration("alone", usualRates()...))
	// Another one that is index 1, as after a mistake; it probes nobody else.
	twice := testbed.Probe(t, program, "targets: [{name: other, url: 'http://"+s.nginx.HTTP+"/other', rate: 1}]",
		"--shard.count=3", "--shard.index=1")
	s.prometheus = testbed.Prometheus(t, testbed.PrometheusOptions{ScrapeConfigs: scrapeJob("alone", s.alone) +
		scrapeJob("three", s.three...) + scrapeJob("twice", twice, s.three[1])})
	return s
}

// scrapeJob is testbed.ScrapeJob for several processes.
func scrapeJob(job string, processes ...*testbed.ProbeServer) string {
	first := processes[0].Address
	all := make([]string, len(processes))
	for i, p := range processes {
		all[i] = strconv.Quote(p.Address)
	}
	return strings.Replace(testbed.ScrapeJob(job, first), strconv.Quote(first), strings.Join(all, ", "), 1)
}

// TestShards lets three processes probe together what a fourth probes alone, and
// holds them against it: by Prometheus, by the instants at which nginx was
// asked, and in the end by every counter.
func TestShards(t *testing.T) {
	checkLeaks(t)
	s := startShards(t)
	s.prometheus.WaitForQuery(`min(count_over_time(steadyprobe_requests_scheduled_total{target="fast"}[25s])) >= 24`, 2*time.Minute)
	t.Run("settings add up", s.settings)
	t.Run("rates add up", s.rates)
	t.Run("each is there once", s.indexes)
	t.Run("instants are those of one schedule", s.instants)
	t.Run("counts are those of the door", s.counts)
}

// each returns a query of one job's value of a family, summed by target.
func (s *shards) each(t *testing.T, expr string) map[string]float64 {
	t.Helper()
	result, remarks := s.prometheus.Query(expr)
	if len(remarks) > 0 {
		t.Errorf("Prometheus remarks on %s: %v", expr, remarks)
	}
	by := map[string]float64{}
	for _, one := range result {
		by[string(one.Metric["target"])] = float64(one.Value)
	}
	return by
}

func (s *shards) settings(t *testing.T) {
	for _, family := range []string{"steadyprobe_target_requests_per_second", "steadyprobe_connections_limit"} {
		three := s.each(t, `sum by (target) (`+family+`{job="three"})`)
		alone := s.each(t, family+`{job="alone"}`)
		for _, name := range s.names {
			if math.Abs(three[name]-alone[name]) > 1e-9 || alone[name] == 0 {
				t.Errorf("%s of %s: %v together, %v alone", family, name, three[name], alone[name])
			}
		}
	}
	processes := s.each(t, `count by (target) (steadyprobe_target_info{job="three"})`)
	for name, want := range map[string]float64{"fast": 3, "ticks": 3, "rare": 2, "users": 3, "dealt-0": 1, "dealt-1": 1, "dealt-2": 1, "dealt-3": 1} {
		if processes[name] != want {
			t.Errorf("%v processes probe %s, want %v", processes[name], name, want)
		}
	}
}

// rates compares 20 s of counters. Each process is scraped at its own moments,
// so that a counter may be one tick further, or less far, than its time says.
func (s *shards) rates(t *testing.T) {
	three := s.each(t, `sum by (target) (rate(steadyprobe_requests_scheduled_total{job="three"}[20s]))`)
	alone := s.each(t, `rate(steadyprobe_requests_scheduled_total{job="alone"}[20s])`)
	for name, want := range map[string]struct{ rate, off float64 }{
		"fast": {90, 0.03}, // a busy machine answers a scrape some 100 ms after the time that Prometheus notes
		// 60/s for 20 s are 1,200, with a standard deviation of 35.
		"users": {60, 0.15},
	} {
		for who, got := range map[string]float64{"three together": three[name], "one alone": alone[name]} {
			if math.Abs(got/want.rate-1) > want.off {
				t.Errorf("%s have %v requests/s of %s, want %v", who, got, name, want.rate)
			}
		}
	}
	failed, _ := s.prometheus.Query(`sum(steadyprobe_request_failures_total)`)
	if len(failed) != 1 || failed[0].Value != 0 {
		t.Errorf("failures: %v", failed)
	}
}

// indexes evaluates what the shipped alert says: nothing of the three, and
// something of the job in which two have the same index.
func (s *shards) indexes(t *testing.T) {
	rules, err := monitoring.Rules(filepath.Join(testbed.Root(t), "alerts", "probe.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if r.Alert != "SteadyprobeShardDuplicate" {
			continue
		}
		result, _ := s.prometheus.Query(r.Expr)
		if len(result) != 1 || result[0].Metric["job"] != "twice" || result[0].Metric["index"] != "1" || result[0].Value != 2 {
			t.Errorf("%s is %v, want index 1 of the job twice, with 2", r.Alert, result)
		}
		return
	}
	t.Error("there is no alert SteadyprobeShardDuplicate")
}

// asked returns when nginx was asked for each path, in order, as seconds since
// 1970.
func (s *shards) asked(t *testing.T) map[string][]float64 {
	t.Helper()
	at := map[string][]float64{}
	for note, n := range s.nginx.Log().Notes {
		second, uri, _ := strings.Cut(note, " ")
		v, err := strconv.ParseFloat(second, 64)
		if err != nil {
			t.Fatalf("reading %q: %v", note, err)
		}
		for range n {
			at[uri] = append(at[uri], v)
		}
	}
	for _, all := range at {
		slices.Sort(all)
	}
	return at
}

// instants gives each request to the tick of the common schedule that it was
// sent for, which is 250 ms before the next: from the moment on from which all
// three ran, each tick was sent once.
func (s *shards) instants(t *testing.T) {
	rate, err := schedule.NewRate(big.NewRat(4, 1))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("ticks"))
	origin := probe.Instant(0).Add(schedule.Spread(binary.BigEndian.Uint64(sum[:]), rate))
	common := schedule.Schedule{Origin: origin, Rate: rate}
	var numbers []uint64
	var late []time.Duration
	for _, second := range s.asked(t)["/three/ticks"] {
		// What is logged is when the answer was sent, to the millisecond.
		at := probe.Instant(math.Round(second*1000) * 1e6)
		number := common.Count(at.Add(time.Millisecond)) - 1
		numbers, late = append(numbers, number), append(late, at.Sub(common.At(number)))
	}
	// Each has begun with the first of its ticks in the first 750 ms after it
	// started, and the last one started seconds ago.
	const lastOnes = 60
	if len(numbers) < lastOnes {
		t.Fatalf("%d ticks", len(numbers))
	}
	numbers, late = numbers[len(numbers)-lastOnes:], late[len(late)-lastOnes:]
	for i, n := range numbers {
		if n != numbers[0]+uint64(i) {
			t.Fatalf("ticks %v were sent, want each once", numbers)
		}
	}
	// And soon: those of one that is off, a third of all, would be late for any
	// time up to 250 ms. A busy machine may be late now and then.
	slices.Sort(late)
	if most := late[lastOnes*8/10]; most > 60*time.Millisecond {
		t.Errorf("a fifth of the ticks are %v late or more", most)
	}
}

// counts lets all three stand still, by a reload, and holds every counter
// against those of nginx.
func (s *shards) counts(t *testing.T) {
	for _, p := range s.three {
		s.reload(t, p, s.configuration("three", slowRates()...))
	}
	sums := map[string]float64{}
	for k, p := range s.three {
		for name, n := range s.settled(t, k, p) {
			sums[name] += n
		}
	}
	asked := s.asked(t)
	for _, name := range s.names {
		if got := len(asked["/three/"+name]); float64(got) != sums[name] || got == 0 {
			t.Errorf("nginx was asked for %s %d times, the three have counted %v", name, got, sums[name])
		}
	}
}

// reload gives a daemon another configuration.
func (s *shards) reload(t *testing.T, p *testbed.ProbeServer, configuration string) {
	t.Helper()
	p.Configure(configuration)
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Post("http://"+p.Address+"/-/reload", "", nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("reloading: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
}

// settled returns the requests of each target when no more come.
func (s *shards) settled(t *testing.T, index int, p *testbed.ProbeServer) map[string]float64 {
	t.Helper()
	d := &daemon{t: t, address: p.Address, client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	by, before := map[string]float64{}, -1.0
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		now, err := d.scrape()
		if err != nil {
			t.Fatal(err)
		}
		scheduled := now.sum("steadyprobe_requests_scheduled_total")
		if scheduled != before || scheduled != now.sum("steadyprobe_requests_total") {
			before = scheduled
			continue
		}
		for _, name := range s.names {
			by[name] = now.sum("steadyprobe_requests_total", "target", name)
		}
		if info := now["steadyprobe_shard_info"].GetMetric(); len(info) != 1 || label(info[0], "index") != strconv.Itoa(index) || label(info[0], "shards") != "3" {
			t.Errorf("process %d says it is %v", index, info)
		}
		return by
	}
	out := p.Output()
	t.Fatalf("process %d does not stand still: %s", index, out[max(0, len(out)-2000):])
	return nil
}

package app

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// TestReloadsAtRandom reloads random configurations of random targets, good and
// bad ones, with doors that answer, stall and refuse. After each, all accounts add
// up and no counter of a target that stays has shrunk; in the end every
// request that a good door was sent has been counted.
func TestReloadsAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	ca := testcert.NewCA(t, "door", testcert.Options{})
	plain := faultdoor.Listen(t, good())
	secure := faultdoor.Listen(t, faultdoor.TLS(serverTLS(ca.Leaf(t, testcert.Options{})), good()))
	slow := faultdoor.Listen(t, faultdoor.HTTP(faultdoor.Delay(200*time.Millisecond, faultdoor.OK())))
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "first")
	urls := []string{
		plain.URL("http"), plain.URL("http") + "/other", secure.URL("https"), slow.URL("http"),
		"http://" + faultdoor.Refused(t), "http://localhost:" + plain.Addr()[strings.LastIndex(plain.Addr(), ":")+1:], plain.URL("tcp"),
	}
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	random := func(name string) string {
		url := one(urls...)
		settings := []string{
			"rate: " + one("0.5", "10", "100", "300", "max"),
			fmt.Sprintf("connections: %d", 1+rng.IntN(10)),
			"timeout: " + one("1s", "2s"),
		}
		open := settings[0] != "rate: max"
		if open {
			settings = append(settings, "backlog: "+one("500ms", "10s"), "arrival: "+one("uniform", "poisson"), "pacing: "+one("precise", "economy"),
				"objective: "+one("{}", "{latency: 100ms}"), "catch_up: "+one("0", "2"))
		}
		if !strings.HasPrefix(url, "tcp") {
			settings = append(settings,
				"connection: "+one("{}", "{reuse: false}", "{warm: true}", "{max_requests: 5}", "{max_age: 1s}"),
				"http: "+one("{}", "{method: HEAD}", "{headers: {A: {files: ["+secret+"]}}}"),
				"backend: "+one("{}", "{header: Server}"),
			)
		}
		if strings.HasPrefix(url, "https") {
			settings = append(settings, "tls: {ca_file: "+ca.WriteCA(t)+"}")
		}
		settings = append(settings, "dns: "+one("{}", "{per_address: true}"), "labels: "+one("{}", "{site: a}", "{site: b, front: c}"))
		return targetOf(name, url, strings.Join(settings, ", "))
	}
	targets := map[string]string{}
	text := func() string {
		all := "limits: {allow_closed_loop: true}\nmetrics: " + one("{}", "{classic: false}", "{native_schema: 1}") + "\ntargets:\n" +
			targetOf("steady", plain.URL("http"), "rate: 500, connections: 10, connection: {warm: true}")
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			all += targets[name]
		}
		return all
	}
	file := configured(t, text())
	var log logged
	o := options(file, "127.0.0.1:0")
	o.Lifecycle, o.Logger = true, log.logger()
	r := start(t, o)
	generation := map[string]int{}
	check := accounts{t: t, seen: map[string]map[string]float64{}}
	for round := range 20 {
		for range 1 + rng.IntN(3) {
			switch name := one("a", "b", "c", "d", "e", "f"); rng.IntN(4) {
			case 0:
				delete(targets, name)
				generation[name]++
			default:
				targets[name] = random(name)
			}
		}
		write(t, secret, fmt.Sprintf("secret %d", round))
		whole, want := text(), http.StatusOK
		if rng.IntN(5) == 0 {
			whole, want = whole+"  - {name: bad}\n", http.StatusInternalServerError
		}
		write(t, file, whole)
		if status, answer := r.reload(); status != want {
			t.Fatalf("round %d: answered %d, want %d, to\n%s\n%s", round, status, want, whole, answer)
		}
		if want != http.StatusOK {
			continue
		}
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
		_, page := get(r.url + "/metrics")
		check.page(page, generation)
	}
	clear(targets)
	write(t, file, text())
	if status, answer := r.reload(); status != http.StatusOK {
		t.Fatalf("the last reload was answered %d %s", status, answer)
	}
	_, page := get(r.url + "/metrics")
	if n := metric(page, `steadyprobe_request_failures_total{`); n != 0 {
		t.Errorf("%v requests of the target that was never changed failed", n)
	}
	if n := metric(page, `steadyprobe_connections_opened_total{`); n != 10 {
		t.Errorf("the target that was never changed has opened %v connections, want 10", n)
	}
	r.stop()
	if c := plain.Counts(); c.Requests != c.Answers {
		t.Errorf("a good door was sent %d requests and could answer %d of them", c.Requests, c.Answers)
	}
	if strings.Contains(log.String(), "secret ") {
		t.Error("a secret was logged")
	}
}

// accounts holds scrapes against what must be true of each, and of two in turn.
type accounts struct {
	t    *testing.T
	seen map[string]map[string]float64 // counters by target and its generation
}

func (a *accounts) page(page string, generation map[string]int) {
	a.t.Helper()
	sums := map[string]float64{} // by family and target
	for line := range strings.Lines(page) {
		family, rest, found := strings.Cut(strings.TrimPrefix(line, "steadyprobe_"), "{")
		if _, name, of := strings.Cut(rest, `target="`); found && of && !strings.HasSuffix(family, "_bucket") {
			name, _, _ = strings.Cut(name, `"`)
			sums[family+" "+name] += metric(line, "")
		}
	}
	for _, name := range []string{"steady", "a", "b", "c", "d", "e", "f"} {
		of := func(family string) float64 { return sums[family+" "+name] }
		scheduled, completed := of("requests_scheduled_total"), of("requests_total")
		if open := of("requests_in_flight") + of("requests_backlog"); scheduled != completed+open {
			a.t.Fatalf("%s: %v scheduled, %v completed, %v open", name, scheduled, completed, open)
		}
		if opened, closed := of("connections_opened_total"), of("connections_closed_total"); opened-closed != of("connections") {
			a.t.Fatalf("%s: %v connections opened, %v closed, %v open", name, opened, closed, of("connections"))
		}
		key := fmt.Sprint(name, generation[name])
		for _, family := range []string{"requests_scheduled_total", "requests_total", "request_failures_total", "responses_total", "latency_seconds_count",
			"service_time_seconds_count", "connections_opened_total", "connections_closed_total", "lookups_total", "sent_bytes_total"} {
			now, before := of(family), a.seen[key][family]
			if now < before && scheduled > 0 && (family != "lookups_total" || now > 0) {
				a.t.Fatalf("%s: %s went from %v to %v", name, family, before, now)
			}
			if a.seen[key] == nil {
				a.seen[key] = map[string]float64{}
			}
			a.seen[key][family] = max(now, before)
		}
	}
}

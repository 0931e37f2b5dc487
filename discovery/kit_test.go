package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parsed returns a configuration with the text as its profiles and sources, and
// a target of its own where it has none.
func parsed(t testing.TB, text string) *config.Config {
	t.Helper()
	c, _, err := config.Parse([]byte(text), filepath.Join(t.TempDir(), "steadyprobe.yml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// prepared returns the plan of a configuration.
func prepared(t testing.TB, text string) *Plan {
	t.Helper()
	p, err := Prepare(parsed(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// group returns a group of targets with these addresses and common labels, each
// NAME=VALUE.
func group(source string, addresses []string, common ...string) *targetgroup.Group {
	g := &targetgroup.Group{Source: source, Labels: labelSet(common...)}
	for _, a := range addresses {
		g.Targets = append(g.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(a)})
	}
	return g
}

func labelSet(pairs ...string) model.LabelSet {
	set := model.LabelSet{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		set[model.LabelName(name)] = model.LabelValue(value)
	}
	return set
}

// fakeMechanism finds what a test tells it to.
type fakeMechanism struct{ found chan []*targetgroup.Group }

func newFakeMechanism() *fakeMechanism {
	return &fakeMechanism{found: make(chan []*targetgroup.Group)}
}

// finds has the mechanism find groups, and returns when they are taken.
func (f *fakeMechanism) finds(groups ...*targetgroup.Group) { f.found <- groups }

func (f *fakeMechanism) Name() string { return "fake" }

func (f *fakeMechanism) NewDiscoverer(sd.DiscovererOptions) (sd.Discoverer, error) { return f, nil }

func (f *fakeMechanism) NewDiscovererMetrics(prometheus.Registerer, sd.RefreshMetricsInstantiator) sd.DiscovererMetrics {
	return &sd.NoopDiscovererMetrics{}
}

func (f *fakeMechanism) Run(ctx context.Context, updates chan<- []*targetgroup.Group) {
	for {
		select {
		case <-ctx.Done():
			return
		case groups := <-f.found:
			select {
			case <-ctx.Done():
				return
			case updates <- groups:
			}
		}
	}
}

// instead lets fake mechanisms find what the plan's own would, one for each
// source. The identity says which are the same.
func (p *Plan) instead(mechanisms ...*fakeMechanism) *Plan {
	for i, m := range mechanisms {
		p.entries[i].mechanisms = []mechanism{{name: "fake", identity: fmt.Sprintf("%p", m), config: m}}
	}
	return p
}

// fakeNames answers lookups.
type fakeNames struct {
	mu    sync.Mutex
	known map[string][]netip.Addr
	asked []string
	delay time.Duration
}

// set has a name lead to addresses, separated by blanks; none: to nothing.
func (f *fakeNames) set(name, addresses string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[string][]netip.Addr{}
	}
	f.known[name] = nil
	for _, text := range strings.Fields(addresses) {
		f.known[name] = append(f.known[name], netip.MustParseAddr(text))
	}
}

func (f *fakeNames) lookup(ctx context.Context, q Question) ([]netip.Addr, error) {
	f.mu.Lock()
	f.asked = append(f.asked, q.Host)
	found, known := f.known[q.Host]
	delay := f.delay
	f.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !known {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil // a door of somebody
	}
	if len(found) == 0 {
		return nil, errors.New("no such host")
	}
	return found, nil
}

func (f *fakeNames) times(name string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.asked {
		if a == name {
			n++
		}
	}
	return n
}

// bench is a set and what it logs.
type bench struct {
	*Set
	t     *testing.T
	names *fakeNames
	log   *logged
}

// logged keeps what is logged. It may be written concurrently.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newBench returns a set that is closed when the test ends. The pace is that of
// the product in virtual time, and faster in real time.
func newBench(t *testing.T, quiet, apart time.Duration) *bench {
	b := &bench{t: t, names: &fakeNames{}, log: &logged{}}
	handler := slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})
	b.Set = newSet(Options{Logger: slog.New(handler), Agent: "steadyprobe/test", Lookup: b.names.lookup}, quiet, apart)
	t.Cleanup(b.Close)
	return b
}

// run applies a plan.
func (b *bench) run(p *Plan) []config.Target {
	b.t.Helper()
	built, err := b.Build(p)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Apply(built)
	if promised, got := namesOf(built.Targets()), namesOf(b.Targets()); promised != got {
		b.t.Errorf("the build promises %q, and there are %q", promised, got)
	}
	return b.Targets()
}

// is fails the test unless the targets have these names, separated by blanks.
func (b *bench) is(want string) {
	b.t.Helper()
	if got := namesOf(b.Targets()); got != want {
		b.t.Errorf("targets are %q, want %q", got, want)
	}
}

func namesOf(targets []config.Target) string {
	var names []string
	for i := range targets {
		names = append(names, targets[i].Name)
	}
	return strings.Join(names, " ")
}

// refused returns how many targets of a source are refused, by reason.
func (b *bench) refused(source int) string {
	s := b.Sources()[source]
	return summary(&s.Refused)
}

// eventually waits in real time until what returns says what is wanted.
func eventually(t *testing.T, want string, what func() string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if got = what(); got == want {
			return
		}
	}
	t.Fatalf("got %q, want %q", got, want)
}

// write writes a file as an editor does: beside it, then in its place.
func write(t *testing.T, path, text string) {
	t.Helper()
	beside := path + ".new"
	if err := os.WriteFile(beside, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, path); err != nil {
		t.Fatal(err)
	}
}

package bed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// Owner is what a Bed belongs to and ends with: any testing.TB, or a program
// that has a testbed.Holder. Skipf does as that of testing.TB and does not
// return.
type Owner interface {
	testbed.Owner
	Skipf(format string, args ...any)
}

// Bed is a running cluster of one node. Its methods are for the goroutine of
// their test, unless they say otherwise: what fails ends the test.
type Bed struct {
	t Owner
	*plane
}

// Start starts a cluster that ends with the test. Where there is no network
// namespace for it, see [Main], the test is skipped, and fails where CI is set.
func Start(t Owner) *Bed {
	t.Helper()
	if why := os.Getenv(notEntered); why != "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("starting a cluster: %s", why)
		}
		t.Skipf("starting a cluster: %s", why)
	}
	if os.Getenv(programsIn) == "" {
		t.Fatalf("starting a cluster: this process is not in a network namespace; TestMain has to call bed.Main")
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Bed{t: t, plane: &plane{
		dir:     t.TempDir(),
		program: testbed.Tool(t, "kubernetes", "kubernetes"),
		parts:   map[string]*part{},
		names:   map[string]int{},
		never:   map[string]bool{},
		ctx:     ctx,
		cancel:  cancel,
	}}
	t.Cleanup(b.end)
	b.prepare()
	b.startAPIServer(b.startEtcd())
	b.startControllers()
	b.startKubelet()
	return b
}

// end ends everything, and says what the parts printed if the test failed.
func (b *Bed) end() {
	b.t.Helper()
	b.cancel()
	b.others.Wait()
	for _, name := range slices.Backward(b.order) {
		if err := b.process(name).Kill(); err != nil {
			b.t.Error(err)
		}
		if b.t.Failed() {
			b.t.Logf("end of what %s printed:\n%s", name, b.printed(name))
		}
	}
}

// In returns the same cluster for a subtest: what fails ends that one, and what
// is started belongs to it.
func (b *Bed) In(t Owner) *Bed { return &Bed{t: t, plane: b.plane} }

// Rest returns a configuration for clients that may do everything. It is the
// caller's.
func (b *Bed) Rest() *rest.Config { return rest.CopyConfig(b.config) }

// context returns one for a call of the API server, as a test makes it.
func (b *Bed) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, callLimit)
}

// unique returns a name that begins as told and is not used yet.
func (b *Bed) unique(name string) string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.names[name]++
	return fmt.Sprintf("%s-%d", name, b.names[name])
}

// KillAPIServer ends the API server as a crash would. What it has stored stays.
func (b *Bed) KillAPIServer() {
	b.t.Helper()
	if err := b.process(apiServer).Kill(); err != nil {
		b.t.Fatal(err)
	}
}

// StopAPIServer ends the API server in order: it answers what was asked, and
// ends all watches.
func (b *Bed) StopAPIServer() {
	b.t.Helper()
	if err := b.process(apiServer).Stop(startLimit); err != nil {
		b.t.Fatal(err)
	}
}

// StartAPIServer starts the API server again, after it was killed or stopped,
// and returns when it is ready. Controller manager and scheduler are started
// anew: they would wait, for a minute at times, until they ask again. Other
// clients may take longer to come back.
func (b *Bed) StartAPIServer() {
	b.t.Helper()
	b.relaunch(apiServer)
	b.await(apiServer, b.apiServerReady)
	b.restartControllers()
}

// PauseAPIServer makes the API server answer nothing more, with all its
// connections open, until ContinueAPIServer.
func (b *Bed) PauseAPIServer() {
	b.t.Helper()
	if err := b.process(apiServer).Pause(); err != nil {
		b.t.Fatal(err)
	}
}

// ContinueAPIServer lets a paused API server go on. As StartAPIServer, it starts
// controller manager and scheduler anew.
func (b *Bed) ContinueAPIServer() {
	b.t.Helper()
	if err := b.process(apiServer).Continue(); err != nil {
		b.t.Fatal(err)
	}
	b.restartControllers()
}

// NeverReady makes all pods of a namespace that are started from now on never
// become ready.
func (b *Bed) NeverReady(namespace string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.never[namespace] = true
}

func (p *plane) neverReady(namespace string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.never[namespace]
}

// Processes returns the process ids of all parts that run, by name.
func (b *Bed) Processes() map[string]int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	ids := map[string]int{}
	for name, p := range b.parts {
		if p.process.Running() {
			ids[name] = p.process.ID()
		}
	}
	return ids
}

// Probe starts steadyprobe as a process of its own with a configuration file's
// text and further flags. It ends with the test.
func (b *Bed) Probe(configuration string, flags ...string) *testbed.ProbeServer {
	b.t.Helper()
	return testbed.Probe(b.t, ProbeProgram(), configuration, flags...)
}

// ProbeProgram returns the path of the steadyprobe that was built of this tree.
func ProbeProgram() string { return built(probeProgram) }

// built returns the path of a program that was built before the namespace was
// entered.
func built(name string) string { return filepath.Join(os.Getenv(programsIn), name) }

package testbed

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// BuildProbe builds the command of this project and returns its path.
func BuildProbe(t Owner) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steadyprobe")
	build := exec.Command("go", "build", "-o", path, "./cmd/steadyprobe")
	build.Dir = Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v: %s", err, out)
	}
	return path
}

// ProbeServer is a running steadyprobe, as a process of its own.
type ProbeServer struct {
	Address string // of its endpoints, "127.0.0.1:port"
	Health  string // of the two health paths alone; empty: there is no such address

	*server
	client *http.Client
}

// Probe starts the program that BuildProbe returned as a daemon with a
// configuration file's text, and with further flags. It ends with the test, and its targets are started
// on return.
//
// It is urgent: it shares the machine with who watches, and maybe with much
// else, where it would have one of its own.
func Probe(t Owner, program, configuration string, flags ...string) *ProbeServer {
	t.Helper()
	p := newProbe(t, program)
	p.Health = freeAddress(t) // the endpoints may be protected
	p.args = append([]string{"--config.file=" + p.write("steadyprobe.yml", configuration), "--web.listen-address=" + p.Address,
		"--web.health.listen-address=" + p.Health}, flags...)
	p.urgent = urgentProbe
	p.Start()
	return p
}

// ProbeDemo is Probe for the demo, which brings a configuration, doors and a
// churn of its own.
func ProbeDemo(t Owner, program string) *ProbeServer {
	t.Helper()
	p := newProbe(t, program)
	p.args = []string{"demo", "--web.listen-address=" + p.Address}
	p.Start()
	return p
}

func newProbe(t Owner, program string) *ProbeServer {
	t.Helper()
	return &ProbeServer{Address: freeAddress(t), server: newServer(t, program), client: questions()}
}

func (p *ProbeServer) ready() bool {
	code, _, err := fetch(p.client, "http://"+cmp.Or(p.Health, p.Address)+"/-/ready")
	return err == nil && code == http.StatusOK
}

// Configure writes another text into the configuration file of a Probe, which
// does not know of it yet.
func (p *ProbeServer) Configure(configuration string) {
	p.t.Helper()
	p.write("steadyprobe.yml", configuration)
}

// Start starts the daemon again, with the same configuration file and address,
// and returns when its targets are started.
func (p *ProbeServer) Start() { p.t.Helper(); p.start(p.ready) }

// Stop ends the daemon and waits.
func (p *ProbeServer) Stop() { p.t.Helper(); p.stop() }

// Terminate tells the daemon to end, and does not wait.
func (p *ProbeServer) Terminate() {
	p.t.Helper()
	if err := p.process.signal(sigTerm); err != nil {
		p.t.Error(err)
	}
}

// Kill ends the daemon as a crash would, and waits.
func (p *ProbeServer) Kill() {
	p.t.Helper()
	if err := p.process.stop(os.Kill); err != nil {
		p.t.Error(err)
	}
}

// Scrape asks the daemon for its metrics. It may be called from any goroutine.
func (p *ProbeServer) Scrape() (Scrape, error) {
	code, text, err := fetch(p.client, "http://"+p.Address+"/metrics")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("asking for the metrics: status %d", code)
	}
	if err != nil {
		return nil, err
	}
	return ParseScrape([]byte(text))
}

// Running reports whether the daemon has not ended.
func (p *ProbeServer) Running() bool { return p.process.running() }

// Output returns the end of what the daemon printed, up to 1 MB, over all its
// starts.
func (p *ProbeServer) Output() string { return tail(p.output, 1<<20) }

// Starve takes the processor away from the daemon: again and again it is
// stopped for a while and then runs for a while, until the function that
// Starve returns is called or the test ends.
func (p *ProbeServer) Starve(stopped, running time.Duration) (end func()) {
	p.t.Helper()
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if err := stall(p.process.cmd.Process.Pid, stopped); err != nil {
				p.t.Errorf("starving steadyprobe: %v", err)
				return
			}
			select {
			case <-over:
				return
			case <-time.After(running):
			}
		}
	}()
	end = sync.OnceFunc(func() { close(over); <-ended })
	p.t.Cleanup(end) // before that which ends the daemon
	return end
}

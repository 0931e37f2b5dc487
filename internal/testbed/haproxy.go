package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// HAProxyOptions says what kind of door a HAProxy is. The zero value serves
// HTTP and HTTPS with TLS 1.2 and 1.3.
type HAProxyOptions struct {
	TLS              TLSVersions
	NoResumption     bool             // every handshake is a full one
	KeepaliveTimeout time.Duration    // how long an idle connection is kept; 0: a minute
	AccessLog        bool             // needed for Log
	CA               *testcert.CA     // signs its certificate; nil: one of its own
	Certificate      testcert.Options // what is special about its certificate
	Backends         []string         // addresses that requests are passed to; none: HAProxy answers
	Slots            int              // servers slot1, slot2 and so on of the backend "servers", which Ask fills while HAProxy runs
	Backend          string           // further lines of the backend, in HAProxy's language, such as servers of its own
	TCP              bool             // connections are passed to the backends as they are; from HTTPS after TLS has ended
	Bind             string           // further words of both bind lines, such as "accept-proxy"
	BindTLS          string           // further words of the bind line of HTTPS
	Addresses        []string         // further addresses of this machine that both ports are served at: "127.0.0.2", "::1"
	Note             string           // what each line of the access log says besides, in HAProxy's log format: see Log
	Server           string           // further words of the backends' server lines, such as "send-proxy"
	Frontend         string           // further lines of the frontend, in HAProxy's language; "http-request lua.wait 100" holds requests for 100 ms and a little
	Global           string           // further lines of the global section
	Urgent           bool             // goes before all that is not urgent, where that is allowed (root)
}

// waitAction makes the action lua.wait of all frontends: it holds a request for
// so many milliseconds, and at random for a tenth more on average, as
// distances do. (inspect-delay is over as soon as a request is whole.)
const waitAction = `core.register_action("wait", {"http-req"}, function(txn, ms)
	core.msleep(math.floor(tonumber(ms) * (1 - 0.1 * math.log(1 - math.random()))))
end, 1)
`

// HAProxyServer is a running HAProxy in master-worker mode. Every path answers
// with [Body], unless there are backends; "/status/404" answers with that
// status, likewise for 403, 429, 500, 502 and 503. With TCP it knows nothing of
// paths and requests: its log has a line for each connection.
type HAProxyServer struct {
	HTTP   string // "127.0.0.1:port"
	HTTPS  string // "127.0.0.1:port", where its certificate names localhost, 127.0.0.1 and ::1
	CA     *testcert.CA
	CAFile string // the root of CA, as a ca_file

	*server
	o        HAProxyOptions
	pair     string          // file with its certificate and key
	sockets  string          // folder of the runtime sockets
	draining []*console      // of workers that were replaced, and may still have connections
	gone     HAProxyCounters // of workers that have ended
}

// HAProxy starts a HAProxy that ends with the test.
func HAProxy(t Owner, o HAProxyOptions) *HAProxyServer {
	t.Helper()
	ca := o.CA
	if ca == nil {
		ca = testcert.NewCA(t, "steadyprobe test authority", testcert.Options{})
	}
	h := &HAProxyServer{
		HTTP:    freeAddress(t, o.Addresses...),
		HTTPS:   freeAddress(t, o.Addresses...),
		CA:      ca,
		CAFile:  ca.WriteCA(t),
		server:  newServer(t, "haproxy"),
		o:       o,
		sockets: shortFolder(t),
	}
	t.Cleanup(h.release)
	h.write("body", Body())
	h.write("wait.lua", waitAction)
	h.pair = h.path("door.pem")
	h.Certify(h.CA.Leaf(h.t, o.Certificate))
	h.write("haproxy.cfg", h.configuration(o))
	if o.Urgent {
		h.urgent = urgentDoor
	}
	h.args = []string{"-W", "-f", h.path("haproxy.cfg"), "-S", h.socket("master")}
	h.begin()
	return h
}

// begin starts the program, whose counters are 0 then.
func (h *HAProxyServer) begin() {
	h.t.Helper()
	h.gone = HAProxyCounters{}
	h.start(func() bool {
		_, err := h.worker()
		return err == nil
	})
}

// HAProxyCounters is what the workers of a HAProxy counted since its process
// was started. A reload keeps them, a restart begins anew.
type HAProxyCounters struct {
	Connections uint64 // connections accepted
	Requests    uint64 // requests received
	TLS         uint64 // TLS connections accepted
	Full        uint64 // full TLS handshakes
	Resumed     uint64 // resumed TLS handshakes
}

func (c *HAProxyCounters) add(o HAProxyCounters) {
	c.Connections += o.Connections
	c.Requests += o.Requests
	c.TLS += o.TLS
	c.Full += o.Full
	c.Resumed += o.Resumed
}

// Counters returns what all workers have counted so far, those that a reload
// replaced included.
func (h *HAProxyServer) Counters() HAProxyCounters {
	h.t.Helper()
	h.settle()
	sum := h.gone
	for _, c := range h.draining {
		part, _, err := c.counters()
		if err != nil {
			h.t.Fatalf("asking a replaced worker of HAProxy for its counters: %v", err)
		}
		sum.add(part)
	}
	c, err := h.console()
	if err != nil {
		h.t.Fatal(err)
	}
	part, _, err := c.counters()
	if err = closing(c, err); err != nil {
		h.t.Fatalf("asking HAProxy for its counters: %v", err)
	}
	sum.add(part)
	return sum
}

// Info returns what the present worker says about itself ("show info"), such
// as CumReq, CumConns and CumSslConns. The bed's own questions are connections
// but not requests in it.
func (h *HAProxyServer) Info() map[string]string {
	h.t.Helper()
	c, err := h.console()
	if err != nil {
		h.t.Fatal(err)
	}
	info, err := c.info()
	if err = closing(c, err); err != nil {
		h.t.Fatalf("asking HAProxy about itself: %v", err)
	}
	return info
}

// Command sends a command to the present worker and returns its answer, such
// as "disable server servers/s0".
func (h *HAProxyServer) Command(command string) string {
	h.t.Helper()
	answer, err := h.Ask(command)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer
}

// Ask is Command for callers on any goroutine.
func (h *HAProxyServer) Ask(command string) (string, error) {
	c, err := h.console()
	if err != nil {
		return "", err
	}
	answer, err := c.ask(command)
	if err = closing(c, err); err != nil {
		return "", fmt.Errorf("giving HAProxy the command %q: %w", command, err)
	}
	return answer, nil
}

// SetBackends writes other backends into the configuration, for HAProxy to
// take at the next Reload or Start. There must be one.
func (h *HAProxyServer) SetBackends(addresses []string) {
	h.t.Helper()
	h.o.Backends = addresses
	h.write("haproxy.cfg", h.configuration(h.o))
}

// socket returns the path of a runtime socket.
func (h *HAProxyServer) socket(name string) string { return filepath.Join(h.sockets, name) }

// shortFolder makes a folder for sockets, whose paths may have 97 bytes in
// HAProxy: the test's own folder bears the test's name, and may be longer.
func shortFolder(t Owner) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatalf("making a folder for sockets: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing the folder for sockets: %v", err)
		}
	})
	return dir
}

func (h *HAProxyServer) console() (*console, error) {
	return openConsole(h.socket("worker"), workerPrompt)
}

var presentWorker = regexp.MustCompile(`(?s)# workers\n(\d+)\s+worker`)

// worker returns the process id of the present worker.
func (h *HAProxyServer) worker() (int, error) {
	c, err := openConsole(h.socket("master"), masterPrompt)
	if err != nil {
		return 0, err
	}
	answer, err := c.ask("show proc")
	if err = closing(c, err); err != nil {
		return 0, err
	}
	m := presentWorker.FindStringSubmatch(answer)
	if m == nil {
		return 0, fmt.Errorf("finding the worker of HAProxy in %q: none", answer)
	}
	return strconv.Atoi(m[1])
}

// Reload makes HAProxy read its configuration again, and returns when a new
// worker serves and the one before takes no further connection. It may be
// called from any goroutine, but not while another method runs.
func (h *HAProxyServer) Reload() {
	h.t.Helper()
	if err := h.reload(); err != nil {
		h.t.Errorf("reloading HAProxy: %v; it printed:\n%s", err, tail(h.output, 2048))
	}
}

func (h *HAProxyServer) reload() error {
	h.settle()
	// A console that stays open keeps the old worker, and so its counters,
	// until its last connection has ended.
	old, err := h.console()
	if err != nil {
		return err
	}
	h.draining = append(h.draining, old)
	before, err := h.worker()
	if err != nil {
		return err
	}
	if err := h.process.signal(sigUsr2); err != nil {
		return err
	}
	return await("its new worker", startLimit, func() bool {
		now, err := h.worker()
		if err != nil || now == before {
			return false
		}
		info, err := old.info()
		return err == nil && info["Stopping"] == "1"
	})
}

// settle takes the last counters of replaced workers that have no connection
// left but the console's, and lets them end.
func (h *HAProxyServer) settle() {
	h.t.Helper()
	var rest []*console
	for _, c := range h.draining {
		part, connections, err := c.counters()
		switch {
		case err != nil:
			h.t.Errorf("asking a replaced worker of HAProxy for its counters: %v", err)
		case connections > 1:
			rest = append(rest, c)
			continue
		}
		h.gone.add(part)
		if err := c.Close(); err != nil {
			h.t.Errorf("closing the console of a replaced worker: %v", err)
		}
	}
	h.draining = rest
}

// release closes the consoles of replaced workers.
func (h *HAProxyServer) release() {
	for _, c := range h.draining {
		_ = c.Close() // the worker may be gone
	}
	h.draining = nil
}

// Stall stops the present worker for d: connections are accepted by the
// kernel, and nothing is answered. It returns when the worker goes on. May be
// called from any goroutine.
func (h *HAProxyServer) Stall(d time.Duration) {
	h.t.Helper()
	pid, err := h.worker()
	if err == nil {
		err = stall(pid, d)
	}
	if err != nil {
		h.t.Errorf("stalling HAProxy: %v", err)
	}
}

// Stop ends HAProxy at once: its connections are closed, and connecting to it
// is refused from then on.
func (h *HAProxyServer) Stop() { h.t.Helper(); h.release(); h.stop() }

// Start starts HAProxy again, on the same ports.
func (h *HAProxyServer) Start() { h.t.Helper(); h.begin() }

// Restart is Stop and Start. Its counters begin anew, its log goes on.
func (h *HAProxyServer) Restart() { h.t.Helper(); h.Stop(); h.Start() }

var haproxyLine = regexp.MustCompile(`^(\S+) (\S+) (\S+) (-?\d+) (.*)$`)

// Log returns what the access log says so far: every request that was
// answered, over all reloads and restarts.
func (h *HAProxyServer) Log() Log {
	h.t.Helper()
	if h.process.running() {
		h.Info() // answered after what it has still to write
	}
	return readLog(h.t, h.output, func(line string) (e entry, ok bool) {
		m := haproxyLine.FindStringSubmatch(line)
		if m == nil {
			return e, false
		}
		code, err := strconv.Atoi(m[4])
		return entry{connection: m[1], tls: m[3], resumed: m[2] == "1", code: code, note: m[5]}, err == nil
	})
}

package testbed

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// NGINXOptions says what kind of door an nginx is. The zero value serves HTTP
// and HTTPS with TLS 1.2 and 1.3 and nginx's own defaults.
type NGINXOptions struct {
	TLS               TLSVersions
	NoSessionCache    bool             // with NoTickets: every handshake is a full one
	NoTickets         bool             // TLS session tickets off
	KeepaliveTimeout  time.Duration    // how long an idle connection is kept; 0: 75 s
	KeepaliveRequests int              // requests per connection; 0: 1,000
	AccessLog         bool             // needed for Log
	CA                *testcert.CA     // signs its certificate; nil: one of its own
	Certificate       testcert.Options // what is special about its certificate
	Backends          []string         // addresses that requests are passed to; none: nginx answers
	Upstream          string           // further words of the upstream, in nginx's language
	Locations         string           // further locations, in nginx's language
	Server            string           // further lines of the server, in nginx's language
	Addresses         []string         // further addresses of this machine that both ports are served at: "127.0.0.2", "::1"
	ProxyProtocol     bool             // both ports insist on a PROXY header
	Note              string           // what each line of the access log says besides, in nginx's variables: see Log
	Urgent            bool             // goes before all that is not urgent, where that is allowed (root)
}

// NGINXServer is a running nginx with one worker. Every path answers with
// [Body], unless there are backends; "/status/404" answers with that status,
// likewise for 204, 301, 403, 429, 500, 502 and 503.
type NGINXServer struct {
	HTTP   string // "127.0.0.1:port"
	HTTPS  string // "127.0.0.1:port", where its certificate names localhost, 127.0.0.1 and ::1
	CA     *testcert.CA
	CAFile string // the root of CA, as a ca_file

	*server
	o                NGINXOptions
	certificate, key string // files
	status           string // address of the counters
	asked            uint64 // how often this process was asked for its counters
	client           *http.Client
}

// NGINX starts an nginx that ends with the test.
func NGINX(t Owner, o NGINXOptions) *NGINXServer {
	t.Helper()
	ca := o.CA
	if ca == nil {
		ca = testcert.NewCA(t, "steadyprobe test authority", testcert.Options{})
	}
	n := &NGINXServer{
		HTTP:   freeAddress(t, o.Addresses...),
		HTTPS:  freeAddress(t, o.Addresses...),
		CA:     ca,
		CAFile: ca.WriteCA(t),
		server: newServer(t, "nginx"),
		o:      o,
		status: freeAddress(t),
		client: questions(),
	}
	n.certificate, n.key = testcert.Write(n.t, n.CA.Leaf(n.t, o.Certificate))
	n.write("nginx.conf", n.configuration(o))
	n.args = []string{"-p", n.dir, "-c", n.path("nginx.conf"), "-e", n.path("error.log")}
	if o.Urgent {
		n.urgent = urgentDoor
	}
	n.output = n.path("error.log") // what it prints before it has read its configuration
	n.begin()
	return n
}

// begin starts the program, whose counters are 0 then.
func (n *NGINXServer) begin() {
	n.t.Helper()
	n.asked = 0
	n.start(func() bool {
		_, err := n.counters()
		return err == nil && n.worker() != 0 // whose start may be logged after its first answer
	})
}

// NGINXCounters is what an nginx counted since its process was started,
// without what the bed itself asked. A reload keeps them, a restart begins anew.
type NGINXCounters struct {
	Accepts  uint64 // connections accepted
	Handled  uint64 // connections served: less than Accepts where a limit was reached
	Requests uint64 // requests begun
}

// Counters asks nginx for its counters.
func (n *NGINXServer) Counters() NGINXCounters {
	n.t.Helper()
	c, err := n.counters()
	if err != nil {
		n.t.Fatalf("asking nginx for its counters: %v", err)
	}
	return c
}

// counters asks over a connection of its own, which nginx counts in all three
// before it answers.
func (n *NGINXServer) counters() (c NGINXCounters, err error) {
	_, text, err := fetch(n.client, "http://"+n.status+"/")
	if err != nil {
		return c, err
	}
	n.asked++
	_, numbers, _ := strings.Cut(text, "requests\n")
	if _, err := fmt.Sscan(numbers, &c.Accepts, &c.Handled, &c.Requests); err != nil {
		return c, fmt.Errorf("reading %q: %w", text, err)
	}
	c.Accepts -= n.asked
	c.Handled -= n.asked
	c.Requests -= n.asked
	return c, nil
}

var workerStarted = regexp.MustCompile(`start worker process (\d+)\n`)

// workers returns the process ids of all workers so far, the present one last.
func (n *NGINXServer) workers() (pids []int) {
	for _, m := range workerStarted.FindAllStringSubmatch(tail(n.path("error.log"), 1<<20), -1) {
		if pid, err := strconv.Atoi(m[1]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// worker returns the process id of the present worker, or 0.
func (n *NGINXServer) worker() int {
	pids := n.workers()
	if len(pids) == 0 {
		return 0
	}
	return pids[len(pids)-1]
}

// SetBackends writes other backends into the configuration, for nginx to take
// at the next Reload or Start. There must be one.
func (n *NGINXServer) SetBackends(addresses []string) {
	n.t.Helper()
	n.o.Backends = addresses
	n.write("nginx.conf", n.configuration(n.o))
}

// Reload makes nginx read its configuration again, and returns when a new
// worker serves and the one before takes no further connection. May be called
// from any goroutine.
func (n *NGINXServer) Reload() {
	n.t.Helper()
	before := n.workers()
	if len(before) == 0 {
		n.t.Error("reloading nginx: it has no worker")
		return
	}
	if err := n.process.signal(sigHup); err != nil {
		n.t.Error(err)
		return
	}
	draining := fmt.Sprintf("%d#%[1]d: gracefully shutting down", before[len(before)-1])
	if err := await("nginx to reload", startLimit, func() bool {
		return len(n.workers()) > len(before) && strings.Contains(tail(n.path("error.log"), 1<<20), draining)
	}); err != nil {
		n.t.Errorf("%v; its log:\n%s", err, tail(n.path("error.log"), 2048))
	}
}

// Stall stops the worker for d: connections are accepted by the kernel, and
// nothing is answered. It returns when the worker goes on. May be called from
// any goroutine.
func (n *NGINXServer) Stall(d time.Duration) {
	n.t.Helper()
	if err := stall(n.worker(), d); err != nil {
		n.t.Errorf("stalling nginx: %v", err)
	}
}

// Stop ends nginx at once: its connections are closed, and connecting to it is
// refused from then on.
func (n *NGINXServer) Stop() { n.t.Helper(); n.stop() }

// Start starts nginx again, on the same ports.
func (n *NGINXServer) Start() { n.t.Helper(); n.begin() }

// Restart is Stop and Start. Its counters begin anew, its log goes on.
func (n *NGINXServer) Restart() { n.t.Helper(); n.Stop(); n.Start() }

var nginxLine = regexp.MustCompile(`^(\S+) (\d+) "(\S*)" "(\S*)" (\d+) (.*)$`)

// Log returns what the access log says so far: every request that was
// answered, over all reloads and restarts.
func (n *NGINXServer) Log() Log {
	n.t.Helper()
	if n.process.running() {
		n.Counters() // answered after what it has still to write
	}
	return readLog(n.t, n.path("access.log"), func(line string) (e entry, ok bool) {
		m := nginxLine.FindStringSubmatch(line)
		if m == nil {
			return e, false
		}
		code, err := strconv.Atoi(m[5])
		return entry{connection: m[1], tls: m[4], resumed: m[3] == "r", code: code, note: m[6]}, err == nil
	})
}

package wire

import (
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Options say how a target is spoken to in HTTP.
type Options struct {
	Way
	Loop    *Loop // reads plain connections; nil: goroutines do
	Request Request
	Reuse   bool

	ResponseTimeout time.Duration // from sending the request; 0: no limit of its own

	Statuses  Statuses    // that are a success
	Expect    Expect      // of an answer of such a status
	Backend   BackendRule // who answered; the zero value: nothing tells
	Turns     *Turns      // of all targets of the process, to match much text; nil: none are taken
	MaxHeader int         // bytes of the answer's header
	MaxBody   int64       // bytes of the answer's body
}

// DefaultMaxHeader is the most bytes that an answer's header may have.
const DefaultMaxHeader = 64 << 10

// Opener opens HTTP/1.1 connections for one target. It implements
// [probe.Opener] and may be used concurrently.
type Opener struct {
	way
	options Options
	request atomic.Pointer[[]byte]
	head    bool
	judge   *judge // nil: only the status counts
}

// NewOpener returns an Opener.
func NewOpener(o Options) *Opener {
	if o.MaxHeader == 0 {
		o.MaxHeader = DefaultMaxHeader
	}
	head := o.Request.Method == "HEAD"
	opener := &Opener{
		way: newWay(o.Way),

		options: o,
		head:    head,
		judge:   newJudge(o.Expect, o.Backend, head, o.Turns),
	}
	request := o.Request.bytes(!o.Reuse)
	opener.request.Store(&request)
	return opener
}

// text returns what the next request says.
func (o *Opener) text() []byte { return *o.request.Load() }

// SetRequest makes all further requests say something else, whatever connection
// they are sent on. It returns false, and changes nothing, where that must be
// said on other connections: the method is another one, or only one of both
// requests is so long that it takes a writer of its own.
func (o *Opener) SetRequest(r Request) bool {
	request := r.bytes(!o.options.Reuse)
	if r.Method != o.options.Request.Method || long(request) != long(o.text()) {
		return false
	}
	o.request.Store(&request)
	return true
}

// shortest returns the shortest limit that a request can have.
func (o *Opener) shortest() time.Duration {
	if t := o.options.ResponseTimeout; t > 0 {
		return min(t, o.Timeout)
	}
	return o.Timeout
}

// Open begins an opening in a goroutine of its own.
func (o *Opener) Open(l *probe.Link) { go o.open(l) }

func (o *Opener) open(l *probe.Link) {
	c := &http1{opener: o, clock: o.Clock, link: l}
	p := o.begin(l, &c.sample)
	if !p.establish() {
		return
	}
	c.socket, c.conn = p.socket, p.conn
	c.address, c.roundTrip = c.sample.Address, p.roundTrip
	o.giveToLoop(c)
	c.run()
}

// giveToLoop lets the loop read a connection that it can read. TLS, requests
// that take a writer of their own, and connections for one request stay with
// their goroutine, and so does what may take long over a large body: it would
// delay all others of the loop.
func (o *Opener) giveToLoop(c *http1) {
	loop := o.options.Loop
	if loop == nil || o.TLSConfig != nil || !o.options.Reuse || long(o.text()) || o.judge.readsBody() {
		return
	}
	if conn, ok := loop.adopt(c.socket.Conn); ok {
		before := c.socket.take() // of the opening
		c.socket = newSocket(conn)
		c.socket.sent.Store(before.Sent)
		c.socket.received.Store(before.Received)
		c.conn = c.socket
		c.loop = loop
	}
}

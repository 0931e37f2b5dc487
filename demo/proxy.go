package demo

import (
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"
)

const (
	oneTry     = false
	anotherTry = true
)

// idlePerBackend is more than a door ever has in flight at one backend, so
// that connections are not thrown away after a burst.
const idlePerBackend = 100

// copyBuffer is enough for a backend's answer, in bytes.
const copyBuffer = 4 << 10

var errNoEndpoint = errors.New("there is no backend to route to")

// proxy is what both doors are made of: it passes requests on to the backends
// in turn, over connections that are kept.
type proxy struct {
	retry     bool // another backend, when one cannot be connected to
	transport *http.Transport
	buffers   buffers
	next      atomic.Uint32
	logger    *slog.Logger
	log       *log.Logger // the same at debug level, as net/http wants it
}

func newProxy(retry bool, logger *slog.Logger) *proxy {
	dialer := &net.Dialer{Timeout: time.Second}
	return &proxy{
		retry: retry,
		transport: &http.Transport{
			DialContext:         dialer.DialContext,
			DisableCompression:  true,
			MaxIdleConnsPerHost: idlePerBackend,
			IdleConnTimeout:     30 * time.Second,
		},
		logger: logger,
		log:    slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// close closes the connections to the backends. No request may be in flight.
func (p *proxy) close() { p.transport.CloseIdleConnections() }

// handler returns a handler that routes to the addresses that endpoints
// returns for each request.
func (p *proxy) handler(endpoints func() []string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme = "http"
			r.SetXForwarded()
		},
		Transport:  &route{proxy: p, endpoints: endpoints},
		BufferPool: &p.buffers,
		ErrorLog:   p.log,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errNoEndpoint) {
				http.Error(w, "no backend is ready", http.StatusServiceUnavailable)
				return
			}
			http.Error(w, "the backend cannot be reached", http.StatusBadGateway)
		},
	}
}

// route chooses a backend for each request.
type route struct {
	proxy     *proxy
	endpoints func() []string
}

// RoundTrip sends the request to the next backend in turn.
func (r *route) RoundTrip(request *http.Request) (*http.Response, error) {
	endpoints := r.endpoints()
	if len(endpoints) == 0 {
		return nil, errNoEndpoint
	}
	tries := 1
	if r.proxy.retry && (request.Body == nil || request.Body == http.NoBody) {
		tries = len(endpoints)
	}
	// Not as an int, which is negative in time where it has 32 bits.
	first := int(r.proxy.next.Add(1) % uint32(len(endpoints)))
	var err error
	for i := range tries {
		var response *http.Response
		if response, err = r.send(request, endpoints[(first+i)%len(endpoints)]); err == nil {
			return response, nil
		}
		if !unconnected(err) || request.Context().Err() != nil {
			break
		}
	}
	return nil, err
}

func (r *route) send(request *http.Request, address string) (*http.Response, error) {
	url := *request.URL
	url.Host = address
	out := request.WithContext(request.Context()) // a copy: a RoundTripper leaves what it was given as it was
	out.URL = &url
	return r.proxy.transport.RoundTrip(out)
}

// unconnected reports whether a request failed before a byte of it was sent,
// so that sending it elsewhere cannot do anything twice.
func unconnected(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}

// buffers keeps the memory through which answers are copied.
type buffers struct{ pool sync.Pool }

// Get returns a buffer.
func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[copyBuffer]byte); ok {
		return kept[:]
	}
	return make([]byte, copyBuffer)
}

// Put takes a buffer back that Get returned.
func (b *buffers) Put(buffer []byte) { b.pool.Put((*[copyBuffer]byte)(buffer)) }

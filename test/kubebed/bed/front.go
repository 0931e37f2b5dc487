package bed

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// Behaviour is what a [Front] does with requests. The zero value passes them.
type Behaviour struct {
	// Only says which requests this is about, nil: all. It is called from many
	// goroutines.
	Only func(*http.Request) bool

	Delay      time.Duration // before anything else is done
	Status     int           // the front answers with this status itself, such as 429 or 403; 0: it does not
	RetryAfter int           // seconds that such an answer says to wait; 0: it says nothing
	LoseAnswer bool          // the API server is asked, and the connection is cut before its answer
	Cut        bool          // connections are cut when a request comes, and those that are open at once
	Hang       bool          // nothing is answered until the behaviour changes
}

// Front stands between clients and the API server, as a load balancer does, and
// makes it slow or unwilling. Its methods may be called from any goroutine,
// except for Kubeconfig.
type Front struct {
	b         *Bed
	address   string
	authority []byte // PEM
	proxy     *httputil.ReverseProxy

	mutex     sync.Mutex
	behaviour Behaviour
	changed   chan struct{} // closed when the behaviour changes
	open      map[net.Conn]bool
	requests  map[string]int
}

// Front starts a Front that ends with the test.
func (b *Bed) Front() *Front {
	b.t.Helper()
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: b.authority}})
	if err != nil {
		b.t.Fatalf("making a front of the API server: %v", err)
	}
	ca := testcert.NewCA(b.t, "front of the API server", testcert.Options{})
	f := &Front{
		b: b, authority: ca.PEM(), changed: make(chan struct{}), open: map[net.Conn]bool{}, requests: map[string]int{},
		proxy: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: b.server}),
	}
	f.proxy.Transport, f.proxy.FlushInterval = transport, -1
	f.proxy.ErrorLog = log.New(io.Discard, "", 0) // that the API server is away is what tests are about
	f.proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{ca.Leaf(b.t, testcert.Options{})}, NextProtos: []string{"h2", "http/1.1"},
	})
	if err != nil {
		b.t.Fatalf("making a front of the API server: %v", err)
	}
	f.address = listener.Addr().String()
	server := &http.Server{
		Handler: f, ErrorLog: f.proxy.ErrorLog, ReadHeaderTimeout: time.Minute,
		ConnState: f.connection,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
	}
	var over sync.WaitGroup
	over.Go(func() { _ = server.Serve(listener) }) // it ends by Close
	b.t.Cleanup(func() {
		_ = server.Close() // its connections may be cut already
		over.Wait()
		f.Set(Behaviour{}) // for those that hang
	})
	return f
}

// Kubeconfig returns the path of a copy of a kubeconfig that goes through the
// front.
func (f *Front) Kubeconfig(kubeconfig string) string {
	f.b.t.Helper()
	c, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		f.b.t.Fatalf("reading a kubeconfig: %v", err)
	}
	current := c.Contexts[c.CurrentContext]
	return f.b.kubeconfig(current.AuthInfo, f.address, f.authority, c.AuthInfos[current.AuthInfo].Token, current.Namespace)
}

// Set changes what the front does with requests, from the next one on; those
// that hang are cut.
func (f *Front) Set(b Behaviour) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.behaviour = b
	close(f.changed)
	f.changed = make(chan struct{})
	if b.Cut && b.Only == nil {
		for c := range f.open {
			_ = c.Close() // it may be closed by its peer
		}
	}
}

// Requests returns how often each request came, as "PATCH /apis/…", without
// the query. A watch counts when it begins.
func (f *Front) Requests() map[string]int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return maps.Clone(f.requests)
}

// connection notes which connections are open.
func (f *Front) connection(c net.Conn, state http.ConnState) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch state {
	case http.StateNew:
		f.open[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(f.open, c)
	}
}

// ServeHTTP does with a request what it was told.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	f.requests[r.Method+" "+r.URL.Path]++
	b, changed := f.behaviour, f.changed
	f.mutex.Unlock()
	if b.Only != nil && !b.Only(r) {
		b = Behaviour{}
	}
	wait := func(until <-chan time.Time) {
		select {
		case <-until:
		case <-changed:
		case <-r.Context().Done():
		}
	}
	if b.Delay > 0 {
		wait(time.After(b.Delay))
	}
	switch {
	case b.Cut:
		cut(r)
	case b.Hang:
		wait(nil)
		cut(r)
	case b.Status != 0:
		refuse(w, b)
	case b.LoseAnswer:
		f.proxy.ServeHTTP(nowhere{http.Header{}}, r)
		cut(r)
	default:
		f.proxy.ServeHTTP(w, r)
	}
}

// connectionKey is where a request's context has the connection.
type connectionKey struct{}

// cut closes the connection of a request, and with it the other requests on it.
func cut(r *http.Request) {
	_ = r.Context().Value(connectionKey{}).(net.Conn).Close() // it may be closed by its peer
	panic(http.ErrAbortHandler)
}

// refuse answers as the API server does.
func refuse(w http.ResponseWriter, b Behaviour) {
	reason := map[int]meta.StatusReason{
		http.StatusForbidden: meta.StatusReasonForbidden, http.StatusTooManyRequests: meta.StatusReasonTooManyRequests,
	}[b.Status]
	body, err := json.Marshal(meta.Status{
		TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: meta.StatusFailure,
		Code: int32(b.Status), Reason: reason, Message: fmt.Sprintf("the front of the test bed answers with %d", b.Status),
	})
	if err != nil {
		panic(err) // there is nothing in it that cannot be written
	}
	w.Header().Set("Content-Type", "application/json")
	if b.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(b.RetryAfter))
	}
	w.WriteHeader(b.Status)
	_, _ = w.Write(body) // the client may be gone
}

// nowhere is where an answer goes that nobody gets.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}

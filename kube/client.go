package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	callTimeout       = 5 * time.Second // of one call at most, whatever the caller's context
	longestRetryAfter = 30 * time.Second
	queriesPerSecond  = 20
	queryBurst        = 40
)

// listVersion is what list options are encoded as.
var listVersion = schema.GroupVersion{Version: "v1"}

// client makes calls to one API server. Each is made once, ends with its
// context, and tells the server to give up then too. It may be used
// concurrently.
type client struct {
	rest      rest.Interface
	discovery *discovery.DiscoveryClient
	where     string // which cluster it is, for errors
	courtesy  *courtesy

	config *rest.Config
	http   *http.Client
}

// newClient takes over the configuration. where describes the cluster, without
// anything secret.
func newClient(config *rest.Config, where string) (*client, error) {
	config.QPS, config.Burst = queriesPerSecond, queryBurst
	// One connection for all calls would take the watch, and the renewal of the
	// lease, down with it when it dies in silence: HTTP/2 finds out after 45 s. So
	// each call has one, and a call that ends without an answer leaves it.
	config.NextProtos = []string{"http/1.1"}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = "", ""
	c := &client{where: where, courtesy: &courtesy{}, config: config}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return polite{next, c.courtesy} })
	var err error
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}
	return c.another()
}

// another returns a client with the same connections, whose calls do not wait
// for those of c.
func (c *client) another() (*client, error) {
	requests, err := rest.UnversionedRESTClientForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil, err
	}
	shared := *c.config
	shared.RateLimiter = requests.GetRateLimiter()
	d, err := discovery.NewDiscoveryClientForConfigAndClient(&shared, c.http)
	if err != nil {
		return nil, err
	}
	out := *c
	out.rest, out.discovery = requests, d
	return &out, nil
}

// request is one call.
type request struct {
	verb    string // of HTTP
	path    []string
	list    *metav1.ListOptions
	body    []byte
	content types.PatchType // of the body; empty: JSON
}

// do makes the call and returns the answer's body.
func (c *client) do(ctx context.Context, r request) ([]byte, error) {
	if err := c.courtesy.held(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	if left <= 0 {
		return nil, context.Cause(ctx)
	}
	call := c.rest.Verb(r.verb).AbsPath(r.path...).MaxRetries(0).Timeout(left.Round(time.Millisecond))
	if r.list != nil {
		call = call.SpecificallyVersionedParams(r.list, scheme.ParameterCodec, listVersion)
	}
	if r.content != "" {
		call = call.SetHeader("Content-Type", string(r.content))
	} else if r.body != nil {
		call = call.SetHeader("Content-Type", "application/json")
	}
	if r.body != nil {
		call = call.Body(r.body)
	}
	result := call.Do(ctx)
	if err := result.Error(); err != nil { // that of Raw says less
		return nil, err
	}
	return result.Raw()
}

// courtesy is when a server may be called again.
type courtesy struct {
	mu    sync.Mutex
	until time.Time // no call before
}

// held returns an error while the server has asked not to be called.
func (c *courtesy) held() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := time.Until(c.until)
	if left <= 0 {
		return nil
	}
	return apierrors.NewTooManyRequests(fmt.Sprintf("the server asked to be left alone for another %v", left.Round(time.Millisecond)), 0)
}

// heed takes note of an answer that asks for a pause.
func (c *courtesy) heed(answer *http.Response) {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return
	}
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")) // API servers write no dates
	if err != nil || seconds <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := min(time.Duration(seconds)*time.Second, longestRetryAfter)
	if until := time.Now().Add(wait); until.After(c.until) {
		c.until = until
	}
}

// polite heeds all answers, whoever gets them. client-go forgets about the
// header where the answer's body is a Status.
type polite struct {
	http.RoundTripper
	courtesy *courtesy
}

// RoundTrip passes the request on.
func (p polite) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := p.RoundTripper.RoundTrip(r)
	if err == nil {
		p.courtesy.heed(answer)
	}
	return answer, err
}

func (c *client) get(ctx context.Context, path []string) ([]byte, error) {
	return c.do(ctx, request{verb: http.MethodGet, path: path})
}

// checkServer says why the address of a server cannot be used, without showing
// more of it than may be seen.
func checkServer(host string) error {
	switch u, err := url.Parse(host); {
	case err != nil || u.Host == "":
		return errors.New("the server's address cannot be read")
	case u.User != nil:
		return errors.New("the server's address has a user in it, which would be seen in logs; write it under users")
	}
	return nil
}

// serverOf returns the address of a server that checkServer has nothing against.
func serverOf(host string) string {
	u, err := url.Parse(host)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

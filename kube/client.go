package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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
	callTimeout       = 10 * time.Second // of one call at most, whatever the caller's context
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

	mu   sync.Mutex
	hold time.Time // no call before, because the server asks for it
}

// newClient takes over the configuration. where describes the cluster, without
// anything secret.
func newClient(config *rest.Config, where string) (*client, error) {
	config.QPS, config.Burst = queriesPerSecond, queryBurst
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = "", ""
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	r, err := rest.UnversionedRESTClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, err
	}
	shared := *config
	shared.RateLimiter = r.GetRateLimiter()
	d, err := discovery.NewDiscoveryClientForConfigAndClient(&shared, transport)
	if err != nil {
		return nil, err
	}
	return &client{rest: r, discovery: d, where: where}, nil
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
	if err := c.held(); err != nil {
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
	body, err := call.Do(ctx).Raw()
	c.heed(err)
	if err != nil {
		return nil, err
	}
	return body, nil
}

// held returns an error while the server has asked not to be called.
func (c *client) held() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := time.Until(c.hold)
	if left <= 0 {
		return nil
	}
	return apierrors.NewTooManyRequests(fmt.Sprintf("the server asked to be left alone for another %v", left.Round(time.Millisecond)), 0)
}

// heed takes note of what a failed call says of the next one.
func (c *client) heed(err error) {
	wait := retryAfter(err)
	if wait <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(wait); until.After(c.hold) {
		c.hold = until
	}
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

package kubernetes

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// fakeDiscoverer finds nothing.
type fakeDiscoverer struct{}

func (fakeDiscoverer) Run(ctx context.Context, _ chan<- []*targetgroup.Group) { <-ctx.Done() }

// fakeAPI answers with its status; 0: not at all.
type fakeAPI struct {
	status atomic.Int64
	asked  atomic.Int64
}

func (f *fakeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	f.asked.Add(1)
	status := int(f.status.Load())
	if status == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if r.URL.Path != "/version" {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// TestGuard asks an API server that answers, fails and hangs in turn.
func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAPI{}
		api, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://api", Transport: f})
		if err != nil {
			t.Fatal(err)
		}
		var failures atomic.Int64
		g := &guard{Discoverer: fakeDiscoverer{}, api: api, failed: func(string, error) { failures.Add(1) }}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			g.Run(ctx, nil)
			close(ended)
		}()
		time.Sleep(askLimit) // so that an answer that is waited for is over at each look
		for _, row := range []struct{ status, want int64 }{{200, 0}, {403, 1}, {200, 1}, {0, 2}, {200, 2}} {
			f.status.Store(row.status)
			time.Sleep(askEvery)
			synctest.Wait()
			if got := failures.Load(); got != row.want {
				t.Errorf("%d failures after status %d, want %d", got, row.status, row.want)
			}
		}
		f.status.Store(0)
		time.Sleep(askEvery - askLimit + time.Second) // it is being asked
		cancel()
		<-ended
		if got := failures.Load(); got != 2 || f.asked.Load() != 6 {
			t.Errorf("%d failures of %d questions, want 2 of 6: an end is none", got, f.asked.Load())
		}
	})
}

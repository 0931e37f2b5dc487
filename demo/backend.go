package demo

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// backendHeader says who answered.
	backendHeader = "X-Backend"
	// sharing is by how much of the service time a request takes longer for each
	// other one that the backend has, as long as there are at most mostSharing.
	sharing     = 0.25
	mostSharing = 16
)

// backend answers each request after a while, with its name.
type backend struct {
	timing   timing
	born     time.Time
	body     []byte
	header   []string
	length   []string
	requests atomic.Uint64
	inFlight atomic.Int64
}

func newBackend(name string, born time.Time, t timing) *backend {
	body := []byte("hello from " + name + "\n")
	return &backend{
		timing: t,
		born:   born,
		body:   body,
		header: []string{name},
		length: []string{strconv.Itoa(len(body))},
	}
}

// ServeHTTP answers any request with 200.
func (b *backend) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	others := b.inFlight.Add(1) - 1
	defer b.inFlight.Add(-1)
	if !sleep(request.Context(), b.serviceTime(b.requests.Add(1), others, time.Since(b.born))) {
		panic(http.ErrAbortHandler) // nobody waits for the answer
	}
	header := w.Header()
	header[backendHeader] = b.header
	header["Content-Type"] = []string{"text/plain; charset=utf-8"}
	header["Content-Length"] = b.length
	_, _ = w.Write(b.body)
}

// serviceTime returns how long the n-th request takes at a backend of that age
// that is busy with others.
func (b *backend) serviceTime(n uint64, others int64, age time.Duration) time.Duration {
	service := float64(b.timing.service)
	// A spread from 0.75 to 1.25 that is the same in every run: 7 and 16 have no
	// common divisor, so that the sixteen steps come in a mixed order.
	service *= 0.75 + 0.5*float64(7*n%16)/15
	service *= 1 + sharing*float64(min(others, mostSharing))
	if age < b.timing.cold {
		service += float64(b.timing.coldExtra) * (1 - float64(age)/float64(b.timing.cold))
	}
	return time.Duration(service)
}

package web

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// wakeLimit is how long the pacer may sleep and still be healthy. With nothing
// to do it wakes at least every 100 ms.
const wakeLimit = 10 * time.Second

// Health is what tells whether the process lives and does its work. Neither
// looks at a door: a dead door is a result, not an illness.
type Health struct {
	// SinceWake returns how long ago the pacer last woke; where there are
	// several, the one that has slept longest, and 0 where there is none.
	SinceWake func() time.Duration
	// Ready reports whether the configuration is loaded and the targets are
	// started.
	Ready func() bool
}

// NewHealth returns a handler of the two health paths alone, for a plain
// listen address beside one that is protected. It fails where a function is
// missing.
func NewHealth(h Health) (http.Handler, error) {
	if err := h.validate(); err != nil {
		return nil, fmt.Errorf("setting up the health handler: %w", err)
	}
	mux := http.NewServeMux()
	h.register(mux)
	return guarded(mux, "default-src 'none'; frame-ancestors 'none'"), nil
}

func (h *Health) validate() error {
	if h.SinceWake == nil || h.Ready == nil {
		return errors.New("there is nothing that tells the health")
	}
	return nil
}

func (h *Health) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /"+pathHealthy, h.serveHealthy)
	mux.HandleFunc("GET /"+pathReady, h.serveReady)
}

func (h *Health) serveHealthy(w http.ResponseWriter, _ *http.Request) {
	sentence, ok := h.healthy()
	writeHealth(w, sentence, ok)
}

func (h *Health) serveReady(w http.ResponseWriter, _ *http.Request) {
	sentence, ok := h.ready()
	writeHealth(w, sentence, ok)
}

func writeHealth(w http.ResponseWriter, sentence string, ok bool) {
	status := http.StatusOK
	if !ok {
		status = http.StatusServiceUnavailable
	}
	writeText(w, status, []byte(sentence+"\n"))
}

func (h *Health) healthy() (sentence string, ok bool) {
	since := h.SinceWake()
	if since > wakeLimit {
		return fmt.Sprintf("steadyprobe is not healthy: the pacer woke %v ago, it must wake every %v.",
			since.Round(time.Millisecond), wakeLimit), false
	}
	return "steadyprobe is healthy.", true
}

func (h *Health) ready() (sentence string, ok bool) {
	if !h.Ready() {
		return "steadyprobe is not ready: the configuration is not loaded or the targets are not started.", false
	}
	return "steadyprobe is ready.", true
}

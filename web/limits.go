package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// stallLimit is how long a client may take to read a piece of an answer. One
// that does not read gives its place among the scrapes back that soon.
const stallLimit = 10 * time.Second

// stalling cuts clients off that do not read, or take too long over all of it.
func stalling(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&stallWriter{ResponseWriter: w, control: http.NewResponseController(w), last: time.Now().Add(writeTimeout)}, r)
	})
}

// stallWriter sets a deadline for each piece that is written.
type stallWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	last    time.Time // for all pieces
}

func (w *stallWriter) Write(p []byte) (int, error) {
	// A connection that knows no deadlines has the server's own limit.
	deadline := time.Now().Add(stallLimit)
	if w.last.Before(deadline) {
		deadline = w.last
	}
	_ = w.control.SetWriteDeadline(deadline)
	return w.ResponseWriter.Write(p)
}

// Unwrap lets a http.ResponseController find the connection.
func (w *stallWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// limited serves so many requests at once, and has refuse answer more.
func limited(most int, refuse http.HandlerFunc, h http.Handler) http.Handler {
	places := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			h.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			refuse(w, r)
		}
	})
}

// tooMany refuses a request in words.
func tooMany(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "Too many requests at once, try again.", http.StatusServiceUnavailable)
}

// quietLog logs what libraries say, a line for each second at most. Of a client
// that leaves in the middle of a scrape promhttp says one for each family, and
// net/http says one for each that cannot speak TLS, as often as it comes.
type quietLog struct {
	logger  *slog.Logger
	message string // what has happened; what is said of it is its err

	mu      sync.Mutex
	last    time.Time
	dropped int
}

// Println logs what promhttp says.
func (q *quietLog) Println(v ...any) { q.say(fmt.Sprint(v...)) }

// Write logs what a log.Logger says.
func (q *quietLog) Write(line []byte) (int, error) {
	q.say(strings.TrimSpace(string(line)))
	return len(line), nil
}

// say logs a line, unless there was one within the last second.
func (q *quietLog) say(text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Sub(q.last) < time.Second {
		q.dropped++
		return
	}
	q.logger.Warn(q.message, "err", text, "lines_dropped_before", q.dropped)
	q.last, q.dropped = now, 0
}

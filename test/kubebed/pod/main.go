// Command pod is what the pods of the test bed run: an HTTP server whose
// answers say which pod they are from, and which ends with grace.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// body is what every path answers: 1 KB of text in one line.
var body = strings.Repeat("0123456789abcdef", 64)

// drainLimit is how long the last connections may take to end.
const drainLimit = 5 * time.Second

func main() {
	listen := flag.String("listen", "", "address to serve at")
	name := flag.String("name", "", "of the pod, said in the header X-Backend of each answer")
	answerAfter := flag.Duration("answer-after", 0, "how long each answer takes")
	stopAfter := flag.Duration("stop-after", 0, "how long it goes on to serve after SIGTERM, as with a preStop hook that sleeps")
	flag.Parse()
	if err := serve(*listen, *name, *answerAfter, *stopAfter); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves until SIGTERM, and a while longer.
func serve(listen, name string, answerAfter, stopAfter time.Duration) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	server := &http.Server{Addr: listen, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(answerAfter)
		w.Header().Set("X-Backend", name)
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(body)) // the client may be gone
	})}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving at %q: %w", listen, err)
	case <-ctx.Done():
	}
	time.Sleep(stopAfter)
	drain, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving at %q: %w", listen, err)
	}
	return nil
}

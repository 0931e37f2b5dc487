package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Notice is one alert of a notification that a Webhook received.
type Notice struct {
	Received    time.Time
	Receiver    string            // name of the receiver in Alertmanager's configuration
	Status      string            // firing or resolved
	Labels      map[string]string // of the alert
	Annotations map[string]string
}

// Name returns the name of the alert.
func (n Notice) Name() string { return n.Labels["alertname"] }

// Webhook is who Alertmanager notifies: it records what it receives. Its
// methods may be called concurrently.
type Webhook struct {
	URL string

	mu      sync.Mutex
	notices []Notice
	broken  []string // requests that were no notification
}

// message is the body of a notification, see Alertmanager's documentation of
// webhook_config.
type message struct {
	Version  string `json:"version"`
	Receiver string `json:"receiver"`
	Alerts   []struct {
		Status      string            `json:"status"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"alerts"`
}

// NewWebhook starts a receiver that ends with the test. What it received that
// was no notification fails the test.
func NewWebhook(t Owner) *Webhook {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for notifications: %v", err)
	}
	w := &Webhook{URL: "http://" + l.Addr().String() + "/"}
	s := &http.Server{Handler: http.HandlerFunc(w.receive), ReadHeaderTimeout: startLimit}
	over := make(chan error, 1)
	go func() { over <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), s.Close()); err != nil {
			t.Errorf("stopping the receiver of notifications: %v", err)
		}
		if err := <-over; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("receiving notifications: %v", err)
		}
		for _, why := range w.broken {
			t.Errorf("receiving notifications: %s", why)
		}
	})
	return w
}

func (w *Webhook) receive(rw http.ResponseWriter, r *http.Request) {
	now := time.Now()
	var m message
	err := json.NewDecoder(r.Body).Decode(&m)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || m.Version != "4" {
		w.broken = append(w.broken, "a request that is no notification of version 4")
		http.Error(rw, "this is no notification", http.StatusBadRequest)
		return
	}
	for _, a := range m.Alerts {
		w.notices = append(w.notices, Notice{
			Received: now, Receiver: m.Receiver, Status: a.Status, Labels: a.Labels, Annotations: a.Annotations,
		})
	}
}

// Notices returns what was received so far, in the order of arrival. A
// notification that is repeated is there each time.
func (w *Webhook) Notices() []Notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.notices)
}

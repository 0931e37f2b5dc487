package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steadyprobe/steadyprobe/churn"
)

const (
	eventQueue    = 64              // Events that wait to be written
	eventTimeout  = 5 * time.Second // of one
	eventsAtClose = 3 * time.Second // of all that wait at the end
	longestEvent  = 1024            // bytes of a message that the server takes
	component     = "steadyprobe"
)

// events writes Events, one after the other. client-go's recorder is not used:
// it repeats an Event by a patch, which is a right more, and nobody can wait for
// what it has still to write.
type events struct {
	client   *client
	logger   *slog.Logger
	identity string

	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	queue   chan *corev1.Event
	trouble churn.Reason
}

func newEvents(c *Cluster, calls *client, identity string) *events {
	ctx, cancel := context.WithCancel(context.Background())
	return &events{client: calls, logger: c.logger, identity: identity, ctx: ctx, cancel: cancel, queue: make(chan *corev1.Event, eventQueue)}
}

// announce queues an Event about the workload, or drops it.
func (e *events) announce(t target, a churn.Announcement) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	select {
	case e.queue <- e.event(t, a, time.Now()):
	default:
		e.logger.Debug("an Event is dropped, too many wait", "reason", a.Reason)
	}
}

// event returns the Event of an announcement.
func (e *events) event(t target, a churn.Announcement, now time.Time) *corev1.Event {
	kind := corev1.EventTypeNormal
	if a.Warning {
		kind = corev1.EventTypeWarning
	}
	message := a.Message
	if len(message) > longestEvent {
		message = message[:longestEvent]
	}
	at := metav1.NewTime(now)
	return &corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.object.namespace,
			Name:      fmt.Sprintf("%s.%x", t.object.name, now.UnixNano()),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: t.object.resource.GroupVersion().String(), Kind: t.object.kind,
			Namespace: t.object.namespace, Name: t.object.name, UID: types.UID(t.uid),
		},
		Reason: a.Reason, Message: message, Type: kind,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source:              corev1.EventSource{Component: component, Host: e.identity},
		ReportingController: "steadyprobe.io/" + component, ReportingInstance: e.identity,
	}
}

// run writes what is queued, until close.
func (e *events) run() {
	defer e.cancel()
	for event := range e.queue {
		e.write(event)
	}
}

func (e *events) write(event *corev1.Event) {
	body, err := json.Marshal(event)
	if err == nil {
		ctx, cancel := context.WithTimeout(e.ctx, eventTimeout)
		defer cancel()
		path := groupPath(corev1.SchemeGroupVersion, event.Namespace, "events")
		_, err = e.client.do(ctx, request{verb: http.MethodPost, path: path, body: body})
	}
	reason := churn.NoReason
	if err != nil {
		reason = reasonOf(err)
	}
	before := e.trouble
	if e.trouble = reason; err != nil && reason != before {
		e.logger.Warn("writing Events fails", "reason", reason.String(), "err", e.client.explain("writing an Event of", event.InvolvedObject.Name, err))
	}
}

// close ends run when the queue is empty, or soon.
func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.closed = true
	close(e.queue)
	time.AfterFunc(eventsAtClose, e.cancel)
}

package discovery

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"
)

// repeatAfter is after how long a line that says the same is logged again.
const repeatAfter = 10 * time.Minute

// complaints passes on what the mechanisms of a source log: without what may be
// secret, the same line only once in a while, and remembers the last one. It is
// a [slog.Handler], and may be used concurrently.
type complaints struct {
	slog.Handler
	kept *keptComplaints
}

// keptComplaints is what the handlers of one source share.
type keptComplaints struct {
	mu     sync.Mutex
	logged map[string]time.Time
	last   string
	at     time.Time
}

// mostLines bounds what is remembered of lines.
const mostLines = 100

func newComplaints(logger *slog.Logger) *complaints {
	return &complaints{Handler: logger.Handler(), kept: &keptComplaints{logged: map[string]time.Time{}}}
}

// watchFailure is what the client library of Kubernetes says when it cannot list
// or watch for one of Prometheus's roles. Prometheus only counts that.
const watchFailure = "Failed to watch"

// WatchFailures returns a handler for the client library of Kubernetes, which
// has only one for the whole process: it logs failures to watch as warnings, the
// same one once in a while, and leaves all else to the other handler.
func WatchFailures(logger *slog.Logger, others slog.Handler) slog.Handler {
	return &watchFailures{Handler: others, complaints: newComplaints(logger)}
}

type watchFailures struct {
	slog.Handler
	complaints slog.Handler
}

// Enabled implements [slog.Handler].
func (w *watchFailures) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError || w.Handler.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (w *watchFailures) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case r.Message == watchFailure:
		r.Level, r.Message = slog.LevelWarn, "A source cannot watch objects of a cluster"
		return w.complaints.Handle(ctx, r)
	case !w.Handler.Enabled(ctx, r.Level):
		return nil
	}
	return w.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (w *watchFailures) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &watchFailures{Handler: w.Handler.WithAttrs(attrs), complaints: w.complaints.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (w *watchFailures) WithGroup(name string) slog.Handler {
	return &watchFailures{Handler: w.Handler.WithGroup(name), complaints: w.complaints.WithGroup(name)}
}

// Handle implements [slog.Handler].
func (c *complaints) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		a = clear(a)
		clean.AddAttrs(a)
		line += " " + a.String()
		return true
	})
	if r.Level >= slog.LevelWarn && !c.kept.news(line, r.Level) {
		return nil
	}
	return c.Handler.Handle(ctx, clean)
}

// WithAttrs implements [slog.Handler].
func (c *complaints) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := slices.Clone(attrs)
	for i := range clean {
		clean[i] = clear(clean[i])
	}
	return &complaints{Handler: c.Handler.WithAttrs(clean), kept: c.kept}
}

// WithGroup implements [slog.Handler].
func (c *complaints) WithGroup(name string) slog.Handler {
	return &complaints{Handler: c.Handler.WithGroup(name), kept: c.kept}
}

// news notes a line, and reports whether it is to be logged.
func (k *keptComplaints) news(line string, level slog.Level) bool {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if level >= slog.LevelError {
		k.last, k.at = line, now
	}
	if before, known := k.logged[line]; known && now.Sub(before) < repeatAfter {
		return false
	}
	if len(k.logged) >= mostLines {
		for text := range k.logged {
			delete(k.logged, text)
		}
	}
	k.logged[line] = now
	return true
}

// lastError returns the last error that was logged, empty: none, and when.
func (k *keptComplaints) lastError() (text string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last, k.at
}

// clear returns an attribute as text without what may be secret.
func clear(a slog.Attr) slog.Attr {
	return slog.String(a.Key, withoutSecrets(a.Value.String()))
}

// withoutSecrets returns text with user info and queries of URLs masked, also of
// those that are only a path.
func withoutSecrets(text string) string {
	text = regexp.MustCompile(`://[^\s"'/?#@]*@`).ReplaceAllString(text, "://<secret>@")
	return regexp.MustCompile(`\?[^\s"']+`).ReplaceAllString(text, "?<secret>")
}

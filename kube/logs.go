package kube

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/klog/v2"
)

// klogOnce exists because klog is one for the process, and may not be set while
// it is in use.
var klogOnce sync.Once

// RedirectLogs makes client-go write to the handler, in the whole process, and
// never to standard error. Only the first call has an effect, and it has to be
// made before client-go is in use. Where there was none, [Connect] makes it write
// to what [QuietLogs] returns.
func RedirectLogs(h slog.Handler) { klogOnce.Do(func() { klog.SetSlogLogger(slog.New(h)) }) }

// QuietLogs returns a handler that logs at debug: what matters of client-go is
// returned as an error by this package.
func QuietLogs(logger *slog.Logger) slog.Handler { return quiet{logger.Handler()} }

// quiet is a handler that takes what is worth reading as debug.
type quiet struct{ slog.Handler }

// wordy is where client-go begins to log whole requests and answers: its
// verbosity n is level -n.
const wordy = slog.Level(-3)

// Enabled reports whether a record is logged, given the level that client-go
// wants.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level > wordy && q.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle logs a record. Of errors nobody asks first whether they are wanted.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if !q.Handler.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	r.Level = slog.LevelDebug
	return q.Handler.Handle(ctx, r)
}

// WithAttrs returns the handler with attributes.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup returns the handler with a group.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

// warnings takes what the server warns of.
type warnings struct{ logger *slog.Logger }

// HandleWarningHeaderWithContext logs one warning.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code == 299 && text != "" { // RFC 9111 knows no other that persists
		w.logger.Debug("the API server warns", "text", text)
	}
}

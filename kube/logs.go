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

// redirectLogs makes client-go write to the logger, at debug, and never to
// standard error: what matters of it is returned as an error by this package.
func redirectLogs(logger *slog.Logger) {
	klogOnce.Do(func() { klog.SetSlogLogger(slog.New(quiet{logger.Handler()})) })
}

// quiet is a handler that takes everything as debug.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug)
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }

// warnings takes what the server warns of.
type warnings struct{ logger *slog.Logger }

// HandleWarningHeaderWithContext logs one warning.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code == 299 && text != "" { // RFC 9111 knows no other that persists
		w.logger.Debug("the API server warns", "text", text)
	}
}

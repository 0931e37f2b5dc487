package churn

import (
	"io"
	"log/slog"
)

// textLogger writes level, message and attributes without the time.
func textLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "churn" {
				return slog.Attr{}
			}
			return a
		},
	}))
}

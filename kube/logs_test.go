package kube

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// TestClientLogsAtDebug writes as client-go does, also an error, of which nobody
// asks first whether it is wanted.
func TestClientLogsAtDebug(t *testing.T) {
	for _, row := range []struct {
		name  string
		level slog.Level
		want  []string // of the log, in lines
	}{
		{"at info", slog.LevelInfo, nil},
		{"at debug", slog.LevelDebug, []string{"level=DEBUG msg=failed err=wrong", "level=DEBUG msg=said"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var text bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: row.level}))
			l := logr.FromSlogHandler(quiet{logger.Handler()})
			l.Error(errors.New("wrong"), "failed")
			l.Info("said")
			l.V(9).Info("a whole answer")
			for _, want := range row.want {
				if !strings.Contains(text.String(), want) {
					t.Errorf("the log is %q, want %q in it", text.String(), want)
				}
			}
			if lines := strings.Count(text.String(), "\n"); lines != len(row.want) {
				t.Errorf("the log is %q, want %d lines", text.String(), len(row.want))
			}
		})
	}
}

//go:build !linux

package schedule

import (
	"log/slog"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Precise returns the most precise clock of the system, which is [Portable]
// everywhere but on Linux. The logger is not used.
func Precise(c probe.Clock, _ *slog.Logger) Clock { return Portable(c) }

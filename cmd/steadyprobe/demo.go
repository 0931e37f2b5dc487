package main

import (
	"context"
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/steadyprobe/steadyprobe/app"
	"github.com/steadyprobe/steadyprobe/report"
)

const demoHelp = `Everything runs in this one process, on loopback: backends, a door that copes
with their being scaled, and one that reloads whenever they change, as some
routers do. The page shows which one is bad, when, and why. Needs nothing
installed, changes nothing, and ends with Ctrl-C and a summary. Only warnings
are logged, unless --log.level is given.

Examples:
  steadyprobe demo                              # the page is on http://127.0.0.1:10115/
  steadyprobe demo --web.listen-address=:9999   # for a browser on another machine
  timeout -s INT 60 steadyprobe demo            # one minute of it

` + exitCodes

// addDemo adds the demonstration.
func addDemo(kp *kingpin.Application, stdout io.Writer, stderr *console) (string, command) {
	c := kp.Command("demo", "Probe two doors with churning backends that are built in, and show what it is good for.").HelpLong(demoHelp)
	flags := addWebFlags(c, "127.0.0.1:10115")
	return c.FullCommand(), command{logLevel: "warn", do: func(ctx context.Context, logger *slog.Logger) error {
		ctx, stop := untilHangUp(ctx)
		defer stop()
		o := app.DemoOptions{
			Options: app.Options{Web: flags, Logger: logger, Version: version.Version},
			Out:     stdout,
		}
		if live := stderr.show(); live != nil {
			o.Live = live.Show
			// What comes behind a line begins a new one.
			o.Out = behind{live, stdout}
		}
		return app.Demo(ctx, o)
	}}
}

// untilHangUp returns a context that a SIGHUP ends too: nobody sees a demo whose
// terminal is closed, and its port is missed by the next one. It is ignored
// where it was from the start, by nohup.
func untilHangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// behind writes what belongs below a line that is shown.
type behind struct {
	live *report.Live
	io.Writer
}

// Write ends the line first. A terminal that is gone spoils nothing.
func (b behind) Write(p []byte) (int, error) {
	_ = b.live.Close()
	return b.Writer.Write(p)
}

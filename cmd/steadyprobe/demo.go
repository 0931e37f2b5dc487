package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/steadyprobe/steadyprobe/app"
	"github.com/steadyprobe/steadyprobe/report"
)

const demoHelp = `Everything runs in this one process, on loopback: backends, a door that copes
with their being scaled, and one that reloads whenever they change, as some
routers do. The page shows which one is bad, when, and why. Needs nothing
installed, changes nothing, and ends with Ctrl-C and a summary.

Examples:
  steadyprobe demo                              # the page is on http://127.0.0.1:10115/
  steadyprobe demo --web.listen-address=:9999   # for a browser on another machine
  timeout -s INT 60 steadyprobe demo            # one minute of it

` + exitCodes

// addDemo adds the demonstration.
func addDemo(kp *kingpin.Application, stdout, stderr io.Writer) (string, command) {
	c := kp.Command("demo", "Probe two doors with churning backends that are built in, and show what it is good for.").HelpLong(demoHelp)
	flags := addWebFlags(c, "127.0.0.1:10115")
	return c.FullCommand(), command{logLevel: "warn", do: func(ctx context.Context, logger *slog.Logger) error {
		defer outliveHangUps(logger)()
		o := app.DemoOptions{
			Options: app.Options{Web: flags, Logger: logger, Version: version.Version},
			Out:     stdout,
		}
		var live *report.Live
		if columns, ok := terminal(stderr); ok {
			live = report.NewLive(stderr, columns)
			o.Live = live.Show
			// What comes behind a line begins a new one.
			o.Out = behind{live, stdout}
		}
		return app.Demo(ctx, o)
	}}
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

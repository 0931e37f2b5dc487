package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/steadyprobe/steadyprobe/app"
	"github.com/steadyprobe/steadyprobe/config"
)

const defaultFile = "steadyprobe.yml"

// addServe adds the daemon, which is also what runs without a command.
func addServe(kp *kingpin.Application, _, _ io.Writer) (string, command) {
	c := kp.Command("serve", "Probe the configured targets until stopped, and expose what came of it. The default.").Default()
	file := c.Flag("config.file", "Configuration file.").Default(defaultFile).String()
	health := c.Flag("web.health.listen-address", "Address that serves the two health paths plainly, for an endpoint that is protected. Empty: none.").Default("").String()
	flags := kingpinflag.AddFlags(c, ":10115")
	return c.FullCommand(), command{do: func(ctx context.Context, logger *slog.Logger) error {
		logger.Info("Starting steadyprobe", "version", version.Info(), "build_context", version.BuildContext())
		err := app.Run(ctx, app.Options{
			ConfigFile:    *file,
			Web:           flags,
			HealthAddress: *health,
			Logger:        logger,
			Version:       version.Version,
		})
		var problems *config.Errors
		if *file == defaultFile && errors.As(err, &problems) && errors.Is(err, fs.ErrNotExist) {
			// Most likely the first call of somebody who looks around.
			return fmt.Errorf("%w, or measure a door without one: steadyprobe run URL", err)
		}
		return err
	}}
}

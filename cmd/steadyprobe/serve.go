package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/steadyprobe/steadyprobe/app"
	"github.com/steadyprobe/steadyprobe/config"
)

const defaultFile = "steadyprobe.yml"

// addServe adds the daemon, which is also what runs without a command. What ends
// it is logged, in the format that was asked for, because programs read it.
func addServe(kp *kingpin.Application, _ io.Writer, _ *console) (string, command) {
	c := kp.Command("serve", "Probe the configured targets until stopped, and expose what came of it. The default.").Default().HelpLong(serveHelp)
	file := c.Flag("config.file", "Configuration file.").Default(defaultFile).String()
	health := c.Flag("web.health.listen-address", "Address that serves the two health paths plainly, for an endpoint that is protected.").PlaceHolder("ADDRESS").String()
	flags := addWebFlags(c, ":10115")
	profiles := c.Flag("web.enable-pprof", "Serve the profiles of the Go runtime at /debug/pprof/.").Bool()
	lifecycle := c.Flag("web.enable-lifecycle", "Let who reaches the endpoint reload the configuration (POST or PUT of /-/reload), and pause, resume and restore churns.").Bool()
	auto := &durationValue{flag: "--config.auto-reload-interval"}
	c.Flag("config.auto-reload-interval", "How often to look whether the configuration file, or a file that it names, has changed, and to reload it then; 0s for never.").Default("0s").SetValue(auto)
	shardOf := addShardFlags(c)
	storageOf := addStorageFlags(c)
	return c.FullCommand(), command{failed: logFailure, do: func(ctx context.Context, logger *slog.Logger) error {
		logger.Info("Starting steadyprobe", "version", version.Info(), "build_context", version.BuildContext())
		hangUps := make(chan os.Signal, 1)
		signal.Notify(hangUps, syscall.SIGHUP)
		defer signal.Stop(hangUps)
		shard, err := shardOf()
		if err != nil {
			return fmt.Errorf("starting: %w", err)
		}
		app.LogLibraries(logger)
		err = app.Run(ctx, app.Options{
			ConfigFile:    *file,
			Web:           flags,
			HealthAddress: *health,
			Shard:         shard,
			Storage:       storageOf(),
			Reload:        hangUps,
			Lifecycle:     *lifecycle,
			Profiles:      *profiles,
			AutoReload:    auto.Duration,
			Logger:        logger,
			Version:       version.Version,
		})
		var problems *config.Errors
		if *file == defaultFile && errors.As(err, &problems) && errors.Is(err, fs.ErrNotExist) {
			// Most likely the first call of somebody who looks around.
			return fmt.Errorf("%w, or measure a door without one: steadyprobe run URL, or look around: steadyprobe demo", err)
		}
		return err
	}}
}

// addWebFlags adds the flags of metrics and page to a command. address is the
// default of where they are.
func addWebFlags(c *kingpin.CmdClause, address string) *web.FlagConfig {
	flags := kingpinflag.AddFlags(c, address)
	c.GetFlag("web.listen-address").Help("Address of metrics and page, such as :10115 or [::1]:10115; vsock://:10115 for vsock. Repeatable.")
	c.GetFlag("web.config.file").PlaceHolder("FILE").Help("File that turns on TLS or passwords, see https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md")
	return flags
}

// logFailure logs what ended the daemon, each problem of a configuration as a
// record of its own.
func logFailure(logger *slog.Logger, err error) {
	var problems *config.Errors
	if !errors.As(err, &problems) || len(problems.Problems) == 1 {
		logger.Error("Cannot go on", "err", err)
		return
	}
	for _, p := range problems.Problems {
		logger.Error("Cannot go on", "err", fmt.Errorf("loading --config.file: %w", p))
	}
}

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
	"sync"
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
	lifecycle := c.Flag("web.enable-lifecycle", "Let who reaches the API pause, resume and restore churns (POST).").Bool()
	storage := c.Flag("storage.path", "Folder for what outlives the process: the notes of churns that have no place of their own for it. Made when it is needed.").PlaceHolder("FOLDER").String()
	flags := addWebFlags(c, ":10115")
	return c.FullCommand(), command{failed: logFailure, do: func(ctx context.Context, logger *slog.Logger) error {
		logger.Info("Starting steadyprobe", "version", version.Info(), "build_context", version.BuildContext())
		defer outliveHangUps(logger)()
		err := app.Run(ctx, app.Options{
			ConfigFile:    *file,
			Web:           flags,
			HealthAddress: *health,
			Storage:       app.Storage{Path: *storage},
			Lifecycle:     *lifecycle,
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

// outliveHangUps keeps SIGHUP, which asks other daemons to read their
// configuration anew, from ending this one. It returns what ends that.
func outliveHangUps(logger *slog.Logger) (stop func()) {
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	var telling sync.WaitGroup
	telling.Go(func() {
		for range hangUps {
			logger.Warn("Nothing has changed: this version cannot reload its configuration, start it anew", "signal", "SIGHUP")
		}
	})
	return func() {
		signal.Stop(hangUps)
		close(hangUps)
		telling.Wait()
	}
}

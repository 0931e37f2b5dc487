// Command steadyprobe sends constant-rate traffic through front doors and
// exposes what a user of them felt to Prometheus.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // it could not do what it was asked for
)

func main() {
	// What the linker does for a release.
	version.Version = programVersion(version.Version)
	// Or it would read further arguments from the file of "--body @FILE".
	kingpin.EnableFileExpansion = false
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// command is one of the commands.
type command struct {
	do       func(ctx context.Context, logger *slog.Logger) error
	logLevel string // unless --log.level is given; empty: that flag's default
	// failed tells the error of do; nil: a line of standard error does.
	failed func(logger *slog.Logger, err error)
}

// run parses the command line and does what it says until it is done, or until
// SIGINT or SIGTERM. A second signal ends the process at once.
func run(args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("steadyprobe", "Constant-rate probing of front doors, for Prometheus.")
	app.UsageWriter(stdout).ErrorWriter(stderr).UsageTemplate(usageTemplate())
	app.Version(version.Print("steadyprobe"))
	app.VersionFlag.Short('V')
	app.HelpFlag.Short('h')
	logging := &promslog.Config{Writer: stderr}
	promslogflag.AddFlags(app, logging)
	var levelGiven bool
	app.GetFlag(promslogflag.LevelFlagName).IsSetByUser(&levelGiven)
	ended := -1
	app.Terminate(func(code int) { ended = code })

	commands := map[string]command{}
	for _, add := range []func(*kingpin.Application, io.Writer, io.Writer) (string, command){addServe, addCheck, addRun} {
		name, c := add(app, stdout, stderr)
		commands[name] = c
	}
	name, err := app.Parse(args)
	switch {
	case ended >= 0: // help or version were printed
		return ended
	case err != nil:
		fmt.Fprintf(stderr, "steadyprobe: %s; try steadyprobe --help\n", withoutURLs(explained(app.Model(), err), args))
		return exitFailed
	}
	chosen := commands[name]
	if chosen.logLevel != "" && !levelGiven {
		_ = logging.Level.Set(chosen.logLevel) // it exists
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// From the first signal on the next one ends the process.
	defer context.AfterFunc(ctx, stop)()
	logger := promslog.New(logging)
	err = chosen.do(ctx, logger)
	switch {
	case err == nil:
		return exitOK
	case chosen.failed != nil:
		chosen.failed(logger, err)
	default:
		fmt.Fprintf(stderr, "steadyprobe: %v\n", err)
	}
	return exitFailed
}

// withoutURLs returns a message about the arguments without the URLs among
// them, because these may hold a password.
func withoutURLs(message string, args []string) string {
	for _, a := range args {
		if strings.Contains(a, "://") {
			message = strings.ReplaceAll(message, a, "a URL, which belongs behind the command run")
		}
	}
	return message
}

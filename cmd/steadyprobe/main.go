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
	exitUsage  = 2 // the command line is wrong
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// command does what one of the commands is for.
type command func(ctx context.Context, logger *slog.Logger) error

// run parses the command line and does what it says until it is done, or until
// SIGINT or SIGTERM. A second signal ends the process at once.
func run(args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("steadyprobe", "Constant-rate probing of front doors, for Prometheus.")
	app.UsageWriter(stdout).ErrorWriter(stderr)
	app.Version(version.Print("steadyprobe"))
	app.VersionFlag.Short('V')
	app.HelpFlag.Short('h')
	logging := &promslog.Config{Writer: stderr}
	promslogflag.AddFlags(app, logging)
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
		fmt.Fprintf(stderr, "steadyprobe: %v; try steadyprobe --help\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// From the first signal on the next one ends the process.
	defer context.AfterFunc(ctx, stop)()
	if err := commands[name](ctx, promslog.New(logging)); err != nil {
		fmt.Fprintf(stderr, "steadyprobe: %v\n", err)
		return exitFailed
	}
	return exitOK
}

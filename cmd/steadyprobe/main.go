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
	version.Revision = programRevision(version.Revision, buildSettings())
	// Or it would read further arguments from the file of "--body @FILE".
	kingpin.EnableFileExpansion = false
	os.Exit(run(os.Args[1:], os.Stdout, &console{Writer: os.Stderr}))
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
func run(args []string, stdout io.Writer, stderr *console) int {
	app := kingpin.New("steadyprobe", about)
	logging := &promslog.Config{Level: promslog.NewLevel(), Format: promslog.NewFormat(), Writer: stderr}
	levelGiven := addCommonFlags(app, logging)
	app.UsageWriter(stdout).ErrorWriter(stderr).UsageTemplate(usageTemplate).UsageFuncs(usageFuncs())
	ended := -1
	app.Terminate(func(code int) { ended = code })

	commands := addCommands(app, stdout, stderr)
	args = usualCompletion(args)
	// This adds the command help to the model.
	if _, err := app.ParseContext(nil); err != nil {
		return complain(stderr, app.Model(), args, err)
	}
	if err := misspelled(app.Model(), args); err != nil {
		return complain(stderr, app.Model(), args, err)
	}
	name, err := app.Parse(args)
	switch {
	case ended >= 0: // help or version were printed
		return ended
	case err != nil:
		return complain(stderr, app.Model(), args, explained(app.Model(), args, err))
	}
	chosen := commands[name]
	if chosen.logLevel != "" && !*levelGiven {
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

// addCommands adds all commands, in the order of the help, and returns them by
// their names.
func addCommands(app *kingpin.Application, stdout io.Writer, stderr *console) map[string]command {
	commands := map[string]command{}
	for _, add := range []func(*kingpin.Application, io.Writer, *console) (string, command){
		addServe,
		addDemo,
		addRun,
		addCheck,
		addCompletion,
		addComplete,
	} {
		name, c := add(app, stdout, stderr)
		commands[name] = c
	}
	return commands
}

// addCommonFlags adds the flags of every command, and returns where it will
// stand whether a log level was given.
func addCommonFlags(app *kingpin.Application, logging *promslog.Config) (levelGiven *bool) {
	app.HelpFlag.Short('h').Help("Show help; behind a command, the help of that.")
	app.Version(versionText())
	app.VersionFlag.Short('V').Help("Show version and revision.")
	levelGiven = new(bool)
	level := newLogValue("--"+promslogflag.LevelFlagName, promslog.LevelFlagOptions, logging.Level.Set)
	app.Flag(promslogflag.LevelFlagName, "Log only what is at least so severe: "+wordList(level.words)+".").Default("info").IsSetByUser(levelGiven).SetValue(level)
	format := newLogValue("--"+promslogflag.FormatFlagName, promslog.FormatFlagOptions, logging.Format.Set)
	app.Flag(promslogflag.FormatFlagName, "Format of the log: "+wordList(format.words)+".").Default("logfmt").SetValue(format)
	return levelGiven
}

// complain says what is wrong with the command line and where to look.
func complain(stderr io.Writer, app *kingpin.ApplicationModel, args []string, err error) int {
	help := "steadyprobe --help"
	if c := namedCommand(app, args); c != nil {
		help = "steadyprobe " + c.Name + " --help"
	}
	text := withoutURLs(err.Error(), args)
	if strings.HasSuffix(text, "?") {
		text += " See "
	} else {
		text += "; see "
	}
	fmt.Fprintf(stderr, "steadyprobe: %s%s\n", text, help)
	return exitFailed
}

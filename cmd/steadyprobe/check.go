package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/alecthomas/kingpin/v2"

	"github.com/steadyprobe/steadyprobe/config"
)

// addCheck adds the command that validates configuration files.
func addCheck(app *kingpin.Application, stdout, _ io.Writer) (string, command) {
	c := app.Command("check", "Validate configuration files without running them. Exits 1 when one is not valid.")
	files := c.Arg("file", "Configuration file.").Required().Strings()
	return c.FullCommand(), command{do: func(context.Context, *slog.Logger) error {
		bad := 0
		for _, file := range *files {
			if !check(stdout, file) {
				bad++
			}
		}
		if bad > 0 {
			return fmt.Errorf("checking configuration: %d of %d files are not valid", bad, len(*files))
		}
		return nil
	}}
}

// check writes what is wrong with a file, or that it is valid, and reports
// which.
func check(stdout io.Writer, file string) bool {
	loaded, warnings, err := config.Load(file)
	for _, w := range warnings {
		fmt.Fprintf(stdout, "%s (warning)\n", w)
	}
	if err != nil {
		fmt.Fprintln(stdout, err) // one line for each problem
		return false
	}
	fmt.Fprintf(stdout, "%s: valid, targets: %d\n", file, len(loaded.Targets))
	return true
}

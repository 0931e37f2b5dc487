package main

import (
	"context"
	"errors"
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
	return c.FullCommand(), func(context.Context, *slog.Logger) error {
		bad := 0
		for _, file := range *files {
			loaded, warnings, err := config.Load(file)
			for _, w := range warnings {
				fmt.Fprintf(stdout, "%s: warning\n", w)
			}
			var problems *config.Errors
			switch {
			case errors.As(err, &problems):
				bad++
				for _, p := range problems.Problems {
					fmt.Fprintln(stdout, p)
				}
			case err != nil:
				return err
			default:
				fmt.Fprintf(stdout, "%s: valid, %d targets\n", file, len(loaded.Targets))
			}
		}
		if bad > 0 {
			return fmt.Errorf("checking configuration: %d of %d files are not valid", bad, len(*files))
		}
		return nil
	}
}

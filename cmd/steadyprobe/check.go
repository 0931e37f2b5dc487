package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/steadyprobe/steadyprobe/app"
	"github.com/steadyprobe/steadyprobe/config"
)

// addCheck adds the command that validates configuration files.
func addCheck(kp *kingpin.Application, stdout io.Writer, _ *console) (string, command) {
	c := kp.Command("check", "Validate configuration files without running them. Exits 1 when one is not valid.").HelpLong(checkHelp)
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

// check writes what is wrong with a file in the order of its lines, or that it
// is valid and what its churns would do, and reports which.
func check(stdout io.Writer, file string) bool {
	loaded, warnings, err := config.Load(file)
	if err == nil {
		err = app.Check(loaded)
	}
	type finding struct {
		line int
		text string
	}
	var findings []finding
	var problems *config.Errors
	if errors.As(err, &problems) {
		for _, p := range problems.Problems {
			findings = append(findings, finding{p.Line, p.Error()})
		}
	}
	for _, w := range warnings {
		findings = append(findings, finding{w.Line, w.String() + " (warning)"})
	}
	slices.SortStableFunc(findings, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	for _, f := range findings {
		fmt.Fprintln(stdout, f.text)
	}
	switch {
	case problems != nil:
		return false
	case err != nil:
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(stdout, "%s: %s\n", file, strings.TrimSuffix(line, "\n"))
		}
		return false
	}
	sources := ""
	if n := len(loaded.Discovery); n > 0 {
		sources = fmt.Sprintf(", sources: %d", n)
	}
	fmt.Fprintf(stdout, "%s: valid, targets: %d%s\n", file, len(loaded.Targets), sources)
	for _, sentence := range app.Describe(loaded) {
		fmt.Fprintf(stdout, "%s: %s\n", file, sentence)
	}
	return true
}

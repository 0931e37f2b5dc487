// Command bench runs steadyprobe and the tools that a user would pick instead
// side by side: the same work against the same door, in turn, several times. It
// writes every run as a line of JSON, and a table of medians and ratios.
//
// README.md says what the rows mean and where the truth comes from.
package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/steadyprobe/steadyprobe/bench/peer"
)

// options are the flags.
type options struct {
	rounds  int
	length  time.Duration // of a run
	pause   time.Duration // between runs
	only    string        // expression that cases have to match
	tools   string        // names of tools, separated by commas
	program string        // steadyprobe; empty: built from this tree
	path    string        // folders that tools are looked for in first
	folder  string        // that results are written to
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var seconds int
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.rounds, "rounds", 3, "how often each tool does each piece of work")
	f.IntVar(&seconds, "seconds", 10, "length of a run; wrk2 gets at least 30")
	f.DurationVar(&o.pause, "pause", time.Second, "pause before each run")
	f.StringVar(&o.only, "case", "", "only the cases whose name matches this regular expression")
	f.StringVar(&o.tools, "tools", "", "only these tools, separated by commas; default: all that are installed")
	f.StringVar(&o.program, "steadyprobe", "", "program to measure; default: built from this tree")
	f.StringVar(&o.path, "path", "", "folders to look for tools in before PATH")
	f.StringVar(&o.folder, "out", filepath.Join("bin", "bench"), "folder for results.jsonl and table.md")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.length = time.Duration(seconds) * time.Second
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("reading the command line: there are no arguments but flags, not %q", f.Arg(0))
	case o.rounds < 1 || seconds < 1:
		return o, errors.New("reading the command line: -rounds and -seconds must be positive")
	}
	return o, nil
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o, os.Stdout, os.Stderr)
		stop()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// run measures, and writes what came of it: also of what was measured before an
// error or the end of ctx.
func run(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	cases, err := choose(o.only)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "bench")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if o.program == "" {
		o.program = filepath.Join(scratch, "steadyprobe")
		if out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", o.program, "./cmd/steadyprobe").CombinedOutput(); err != nil {
			return fmt.Errorf("building steadyprobe (run this in the folder of the project): %w: %s", err, out)
		}
	}
	tools, missing, err := find(ctx, o)
	if err != nil {
		return err
	}
	m := theMachine(ctx, tools, missing)
	for _, w := range m.warnings() {
		fmt.Fprintf(stderr, "warning: %s\n", w)
	}
	results, err := create(o.folder, m)
	if err != nil {
		return err
	}
	b := bench{options: o, scratch: scratch, tools: tools, raw: results, progress: stderr}
	measured := b.all(ctx, cases)
	table := render(m, cases, b.runs)
	written := os.WriteFile(filepath.Join(o.folder, "table.md"), []byte(table), 0o644)
	_, printed := io.WriteString(stdout, table)
	return errors.Join(measured, written, printed, results.Close())
}

// installed is a tool that is there.
type installed struct {
	peer.Tool
	path    string
	version string
}

// find returns the tools that are installed, and the names of the others.
func find(ctx context.Context, o options) (tools []installed, missing []string, err error) {
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(o.tools, ",") {
		wanted[name] = true
	}
	seen := 0
	for _, t := range peer.All(o.program) {
		if o.tools != "" && !wanted[t.Name] {
			continue
		}
		seen++
		path, err := look(t.Program, o.path)
		if err != nil {
			missing = append(missing, t.Name)
			continue
		}
		tools = append(tools, installed{Tool: t, path: path, version: version(ctx, path, t.Version...)})
	}
	if o.tools != "" && seen != len(wanted) {
		return nil, nil, fmt.Errorf("finding the tools %q: there are only %d of these names", o.tools, seen)
	}
	return tools, missing, nil
}

// look finds a program in folders or in PATH.
func look(program, folders string) (string, error) {
	if !strings.ContainsRune(program, filepath.Separator) {
		for _, folder := range filepath.SplitList(folders) {
			if path, err := exec.LookPath(filepath.Join(folder, program)); err == nil {
				return filepath.Abs(path)
			}
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// version returns the version that a Go program was built of, or the first line
// of what another one says of it. Some fail when they are asked.
func version(ctx context.Context, path string, args ...string) string {
	if info, err := buildinfo.ReadFile(path); err == nil && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version + " (" + info.GoVersion + ")"
	}
	out, _ := exec.CommandContext(ctx, path, args...).CombinedOutput()
	return cmp.Or(firstLine(string(out)), "unknown")
}

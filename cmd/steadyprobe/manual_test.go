package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
)

var update = flag.Bool("update", false, "write docs/CLI.md anew")

// newModel returns the command line as the program has it.
func newModel(t *testing.T) (*kingpin.Application, *kingpin.ApplicationModel) {
	t.Helper()
	app := kingpin.New("steadyprobe", about)
	addCommonFlags(app, &promslog.Config{Level: promslog.NewLevel(), Format: promslog.NewFormat()})
	addCommands(app, io.Discard, new(console))
	if _, err := app.ParseContext(nil); err != nil {
		t.Fatal(err)
	}
	return app, app.Model()
}

// TestManual holds docs/CLI.md to what the commands say of themselves.
func TestManual(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the page has the flags of Linux, where there is one more")
	}
	_, app := newModel(t)
	want := manual(app)
	file := filepath.Join("..", "..", "docs", "CLI.md")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/CLI.md does not say what the commands say: run go test ./cmd/steadyprobe -run Manual -update")
	}
}

// TestExamples has each example of the help understood, without doing what it
// says. Each command has some.
func TestExamples(t *testing.T) {
	_, app := newModel(t)
	texts := map[string]string{"": examples}
	for _, c := range shownCommands(app.Commands) {
		if c.Name != "help" {
			texts[c.Name] = c.HelpLong
		}
	}
	for name, text := range texts {
		t.Run("of "+name, func(t *testing.T) {
			lines := exampleLines(text)
			if len(lines) == 0 {
				t.Error("there is no example")
			}
			for _, line := range lines {
				args := argumentsOf(line)
				if args == nil {
					t.Errorf("%q does not call the program", line)
					continue
				}
				if len(args) > 0 && args[0] == "COMMAND" {
					continue
				}
				fresh, model := newModel(t)
				if err := misspelled(model, args); err != nil {
					t.Errorf("%q: %v; a note begins with #", line, err)
				}
				if _, err := fresh.Parse(args); err != nil {
					t.Errorf("%q: %v; a note begins with #", line, err)
				}
			}
		})
	}
}

// argumentsOf returns the arguments of the program in a line of shell, without
// notes and redirections.
func argumentsOf(line string) []string {
	line, _, _ = strings.Cut(line, " #")
	_, rest, found := strings.Cut(line, "steadyprobe")
	if !found {
		return nil
	}
	rest, _, _ = strings.Cut(rest, ")")
	rest, _, _ = strings.Cut(rest, ">")
	return append([]string{}, strings.Fields(rest)...)
}

// exampleLines returns the lines of the paragraph of examples.
func exampleLines(help string) []string {
	for _, p := range strings.Split(strings.TrimSpace(help), "\n\n") {
		if rest, ok := strings.CutPrefix(p, "Examples:\n"); ok {
			lines := strings.Split(rest, "\n")
			for i, l := range lines {
				lines[i] = strings.TrimPrefix(l, "  ")
			}
			return lines
		}
	}
	return nil
}

// manual returns docs/CLI.md.
func manual(app *kingpin.ApplicationModel) string {
	var b strings.Builder
	b.WriteString(manualHead)
	b.WriteString("| command | what it does |\n|---|---|\n")
	commands := shownCommands(app.Commands)
	for _, c := range commands {
		fmt.Fprintf(&b, "| [%s](#steadyprobe-%s) | %s |\n", c.Name, c.Name, marked(c.Help))
	}
	b.WriteString("\nFlags of every command:\n\n")
	writeFlags(&b, app.Flags)
	for _, c := range commands {
		writeCommand(&b, c)
	}
	b.WriteString(manualTail)
	return b.String()
}

func writeCommand(b *strings.Builder, c *kingpin.CmdModel) {
	fmt.Fprintf(b, "\n## steadyprobe %s\n\n", c.Name)
	name := c.Name
	if c.Default {
		name = "[" + name + "]"
	}
	fmt.Fprintf(b, "```text\nsteadyprobe %s%s\n```\n\n%s\n", name, synopsis(c), marked(c.Help))
	for _, p := range strings.Split(strings.TrimSpace(c.HelpLong), "\n\n") {
		switch {
		case p == "", strings.HasPrefix(p, "Examples:"), strings.HasPrefix(p, "Exit codes:"):
		default:
			fmt.Fprintf(b, "\n%s\n", marked(p))
		}
	}
	if lines := exampleLines(c.HelpLong); lines != nil {
		fmt.Fprintf(b, "\n```sh manual\n%s\n```\n", strings.Join(lines, "\n"))
	}
	if len(c.Args) > 0 {
		b.WriteString("\n| argument | meaning |\n|---|---|\n")
		for _, a := range c.Args {
			fmt.Fprintf(b, "| `<%s>` | %s |\n", a.Name, marked(a.Help))
		}
	}
	if len(c.Flags) > 0 {
		b.WriteString("\n")
		writeFlags(b, c.Flags)
	}
}

func synopsis(c *kingpin.CmdModel) string {
	var b strings.Builder
	if len(c.Flags) > 0 {
		b.WriteString(" [<flags>]")
	}
	for _, a := range c.Args {
		text := "<" + a.Name + ">"
		if repeatable(a.Value) {
			text += "..."
		}
		if !a.Required {
			text = "[" + text + "]"
		}
		b.WriteString(" " + text)
	}
	return b.String()
}

func writeFlags(b *strings.Builder, flags []*kingpin.FlagModel) {
	b.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		written := ""
		if f.Short != 0 {
			written = "`-" + string(f.Short) + "`, "
		}
		standard := ""
		switch {
		case isOn(f):
			written += "`--[no-]" + f.Name + "`"
			standard = "on"
		case f.IsBoolFlag():
			written += "`--" + f.Name + "`"
		case f.PlaceHolder != "":
			written += "`--" + f.Name + "=" + f.PlaceHolder + "`"
		default:
			written += "`--" + f.Name + "`"
			standard = "`" + strings.Join(f.Default, " ") + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", written, standard, marked(f.Help))
	}
}

// marked returns a text with its flags marked as code.
func marked(text string) string {
	return regexp.MustCompile(`\B--[a-z][a-z.-]*[a-z]`).ReplaceAllString(text, "`$0`")
}

const manualHead = `# Command line

<!-- Written by go test ./cmd/steadyprobe -run Manual -update. Do not edit. -->

` + "```text" + `
steadyprobe [<flags>]
steadyprobe <command> [<flags>] [<arguments>]
` + "```" + `

Without a command it is the daemon, as [serve](#steadyprobe-serve). The words are those of
[TERMINOLOGY](TERMINOLOGY.md). ` + "`steadyprobe COMMAND --help`" + ` says on the terminal what stands here.

A flag is written ` + "`--name=VALUE` or `--name VALUE`" + `, its short form ` + "`-n VALUE`" + `; one that is on or off has no
value, and ` + "`--no-name`" + ` switches it off. Flags may stand in front of arguments, behind or between them; a command comes
first. Behind ` + "`--`" + ` everything is an argument.

`

const manualTail = `
## Exit codes

| code | meaning |
|---|---|
| 0 | it did what it was asked for: a daemon that was stopped, a run that ran **whatever the doors answered**, files that are valid, with or without warnings, help that was asked for |
| 1 | it could not: the command line is wrong, a file is not valid, or a file, a port or the machine stood in the way. Standard error says what, and what to do |

A process that a second signal ends has no code of its own; a shell shows 130 for SIGINT and 143 for SIGTERM.

## Signals

| signal | serve, demo | run |
|---|---|---|
| SIGINT (Ctrl-C), SIGTERM | sends nothing new, gives requests in flight their time, ends with 0 | the same, then reports what was measured until then |
| a second one | ends at once | ends at once, without a report |
| SIGHUP | serve: [reloads](operations/reload.md) the configuration; demo: the same as SIGINT | ends at once, without a report |

## Output

Reports, findings of ` + "`check`" + `, help and version go to standard output; the log, warnings and errors to standard
error. Where standard error is a terminal, ` + "`run` and `demo`" + ` show a line there that lives while they run. The values of
headers, bodies, and a URL's user info and query are in none of them.

## Files

| file | what it is |
|---|---|
| ` + "`steadyprobe.yml`" + ` | what the daemon reads unless ` + "`--config.file`" + ` names another, see [CONFIGURATION](CONFIGURATION.md) |
| ` + "`--web.config.file`" + ` | TLS and passwords of metrics and page, in [the format of the Prometheus exporters](https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md) |
| ` + "`--output`" + ` | a report; what the file held is kept until the report is there |

## Environment

The program reads no variables of its own. Those of its libraries:

| variable | what it changes |
|---|---|
| ` + "`GOMAXPROCS`" + ` | processors to use, raised by one for each pacer and for the loop; the log says to what |
| ` + "`GOGC`, `GOMEMLIMIT`" + ` | how often memory is collected; without the first, ` + "`run`" + ` collects less often than usual |
| ` + "`SSL_CERT_FILE`, `SSL_CERT_DIR`" + ` | the authorities that doors are verified against, unless ` + "`--ca-file`" + ` or the configuration names them |
| ` + "`LISTEN_FDS`, `LISTEN_PID`" + ` | set by systemd for ` + "`--web.systemd-socket`" + ` |
| ` + "`COLUMNS`" + ` | how wide help is |

` + "`HTTP_PROXY`" + ` and the like are not obeyed: a door is measured from here, not through somebody else.

## A session

A daemon, here with the example from the repository. Its door need not be there: then all its requests fail as
` + "`connect/refused`" + `, and that is what is measured.

` + "```sh background http://127.0.0.1:10115/-/ready" + `
steadyprobe --config.file=examples/steadyprobe.yml --web.listen-address=127.0.0.1:10115
` + "```" + `

In another terminal: is the file valid, and what does the daemon count?

` + "```sh run" + `
steadyprobe check examples/steadyprobe.yml
curl -s http://127.0.0.1:10115/metrics | grep '^steadyprobe_requests_scheduled_total'
` + "```" + `

Anything that speaks HTTP is a door, the daemon too: 50 requests/s over 2 connections for a second, as text, then as
JSON for a program.

` + "```sh run" + `
steadyprobe run -R 50 -c 2 -d 1s http://127.0.0.1:10115/-/healthy
steadyprobe run -R 50 -c 2 -d 1s --format=json -o report.json http://127.0.0.1:10115/-/healthy
grep '"scheduled"' report.json
` + "```" + `

## Shell completion

Tab completes commands, flags, the words that a flag takes and file names. Try it in this shell:

` + "```sh run" + `
source <(steadyprobe completion bash)
` + "```" + `

To have it in every new shell, put the script where the shell looks. It asks the program itself, so a newer program
needs no newer script.

| shell | where |
|---|---|
| bash, for you | ` + "`steadyprobe completion bash >~/.local/share/bash-completion/completions/steadyprobe`" + `, with the package bash-completion; else ` + "`source <(steadyprobe completion bash)`" + ` in ` + "`~/.bashrc`" + ` |
| bash, for all | ` + "`steadyprobe completion bash >/etc/bash_completion.d/steadyprobe`" + ` |
| zsh | ` + "`steadyprobe completion zsh >\"${fpath[1]}/_steadyprobe\"`" + `; ` + "`autoload -U compinit && compinit`" + ` is in ` + "`~/.zshrc`" + ` |
| fish | ` + "`steadyprobe completion fish >~/.config/fish/completions/steadyprobe.fish`" + ` |

` + "`steadyprobe --completion-script-bash` and `--completion-script-zsh`" + `, as programs around Prometheus have them, print
the same.
`

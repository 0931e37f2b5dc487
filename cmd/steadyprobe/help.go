package main

import (
	"fmt"
	"slices"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
)

// usageTemplate is the template of all help: of the program, where no command
// is selected, and of a command. What is its own comes first.
const usageTemplate = `{{define "Synopsis"}}{{with .FlagSummary}} {{.}}{{end}}{{range .Args}} {{if not .Required}}[{{end}}<{{.Name}}>{{if .Value|IsCumulative}}...{{end}}{{if not .Required}}]{{end}}{{end}}{{end -}}
{{if .Context.SelectedCommand}}{{with .Context.SelectedCommand -}}
usage: {{$.App.Name}} {{.FullCommand}}{{template "Synopsis" .}}

{{.Help|Wrap 0}}
{{if .Args}}Arguments:
{{.Args|ArgsToTwoColumns|FormatTwoColumns}}
{{end}}{{if .Flags}}Flags:
{{.Flags|FlagsToTwoColumns|FormatTwoColumns}}
{{end}}Flags of every command:
{{$.App.Flags|FlagsToTwoColumns|FormatTwoColumns}}
{{.HelpLong}}{{end}}{{else -}}
usage: {{.App.Name}} [<flags>]
       {{.App.Name}} <command> [<flags>] [<arguments>]

{{.App.Help|Wrap 0}}
Commands:
{{range .App.Commands|Shown}}  {{.FullCommand}}{{template "Synopsis" .}}
{{.Help|Wrap 4}}{{end}}
{{range .App.Commands}}{{if .Default}}Flags of {{.FullCommand}}, which is what runs without a command:
{{.Flags|FlagsToTwoColumns|FormatTwoColumns}}
{{end}}{{end}}Flags of every command:
{{.App.Flags|FlagsToTwoColumns|FormatTwoColumns}}
` + examples + "\n" + exitCodes + `{{end -}}
`

// usageFuncs are the functions of the template that the library lacks, or has
// otherwise: it writes --[no-] before each flag without a value.
func usageFuncs() template.FuncMap {
	return template.FuncMap{"Shown": shownCommands, "FlagsToTwoColumns": flagRows}
}

// shownCommands returns the commands without the hidden ones, the one that
// explains the others last.
func shownCommands(all []*kingpin.CmdModel) []*kingpin.CmdModel {
	var shown, last []*kingpin.CmdModel
	for _, c := range all {
		switch {
		case c.Hidden:
		case c.Name == "help":
			last = append(last, c)
		default:
			shown = append(shown, c)
		}
	}
	return append(shown, last...)
}

// flagRows returns each flag that is not hidden, as it is written and what it
// is for.
func flagRows(flags []*kingpin.FlagModel) [][2]string {
	indent := ""
	if slices.ContainsFunc(flags, func(f *kingpin.FlagModel) bool { return f.Short != 0 }) {
		indent = "    "
	}
	var rows [][2]string
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		short := indent
		if f.Short != 0 {
			short = fmt.Sprintf("-%c, ", f.Short)
		}
		rows = append(rows, [2]string{short + writtenFlag(f), f.Help})
	}
	return rows
}

// writtenFlag returns a flag as it is written, with its default in the place of
// its value where it has one.
func writtenFlag(f *kingpin.FlagModel) string {
	switch {
	case isOn(f):
		return "--[no-]" + f.Name
	case f.IsBoolFlag():
		return "--" + f.Name
	case repeatable(f.Value):
		return "--" + f.Name + "=" + f.FormatPlaceHolder() + " ..."
	}
	return "--" + f.Name + "=" + f.FormatPlaceHolder()
}

// isOn reports whether a flag is set unless it is switched off.
func isOn(f *kingpin.FlagModel) bool {
	return f.IsBoolFlag() && slices.Equal(f.Default, []string{"true"})
}

// repeatable reports whether a value may be given several times.
func repeatable(v kingpin.Value) bool {
	c, ok := v.(interface{ IsCumulative() bool })
	return ok && c.IsCumulative()
}

// about says in a line what the program does.
const about = "Constant-rate probing of front doors, for Prometheus."

// The texts below are also docs/CLI.md, where a paragraph that begins with
// "Examples:" becomes a block of shell, and notes in it stay comments.

const examples = `Examples:
  steadyprobe run -R 1000 -c 50 -d 30s URL       # measure a door once, with a report
  steadyprobe --config.file=steadyprobe.yml      # the daemon, metrics and page on :10115
  steadyprobe check steadyprobe.yml              # is the file valid?
  steadyprobe COMMAND --help                     # a command, with examples
`

const exitCodes = `Exit codes:
  0  it did what it was asked for, whatever the doors answered
  1  it could not: the command line is wrong, or a file, a port or the machine
     stood in the way
`

const serveHelp = `Metrics are on /metrics, the page is on /, health on /-/healthy and /-/ready,
the configuration without its secrets on /config.

SIGINT and SIGTERM stop it: requests in flight get their time, a second signal
does not wait. SIGHUP reloads the configuration: what has not changed goes on
undisturbed, and a bad file changes nothing.

Examples:
  steadyprobe                                    # reads steadyprobe.yml
  steadyprobe --config.file=doors.yml --web.listen-address=127.0.0.1:9999
  steadyprobe --web.config.file=web.yml --web.health.listen-address=:10116
  steadyprobe --storage.path=/var/lib/steadyprobe --web.enable-lifecycle
  steadyprobe --config.auto-reload-interval=30s  # reloads what has changed

` + exitCodes

const checkHelp = `Reads each file as the daemon does, the files that it names included, and tells
all that is wrong with it at once, with line and field, and what each churn would
do. Sends nothing.

Examples:
  steadyprobe check steadyprobe.yml
  steadyprobe check doors/*.yml

Exit codes:
  0  every file is valid, with or without warnings
  1  one is not, or the command line is wrong
`

const runHelp = `A run ends when every request has an outcome: after the window of --duration a
door that does not answer is waited for, at most --backlog and --timeout
together. Ctrl-C ends it at once, but for requests in flight, and reports what
was measured until then. The log tells warnings only, unless --log.level asks
for more.

Examples:
  steadyprobe run -R 1000 -c 50 -d 30s http://127.0.0.1:8080/
  steadyprobe run -R 200 -d 1m --backlog=5s --timeout=2s https://shop.example.com/healthz
  steadyprobe run -R 100 --no-reuse --connect-to=10.0.0.7:443 https://shop.example.com/
  steadyprobe run -R max -c 50 -d 10s http://127.0.0.1:8080/     # how much can it do?
  steadyprobe run -R 50 --format=json -o report.json URL URL     # two doors at once

` + exitCodes

const completionHelp = `The script completes commands, flags, the words that a flag takes, and file
names. It asks the program that is installed, so it need not be made anew when
the program changes.

Examples:
  source <(steadyprobe completion bash)                          # this shell only
  steadyprobe completion bash >/etc/bash_completion.d/steadyprobe
  steadyprobe completion zsh >"${fpath[1]}/_steadyprobe"         # then a new shell
  steadyprobe completion fish >~/.config/fish/completions/steadyprobe.fish
`

package main

import "github.com/alecthomas/kingpin/v2"

// usageEnd adds the flags of the command that needs no name, and what a command
// has of examples.
const usageEnd = `{{if .Context.SelectedCommand -}}
{{with .Context.SelectedCommand.HelpLong}}{{.}}{{end -}}
{{else -}}
{{range .App.FlattenedCommands}}{{if .Default -}}
Flags of {{.FullCommand}}, which need no command:
{{.Flags|FlagsToTwoColumns|FormatTwoColumns}}
{{end}}{{end -}}
` + examples + exitCodes + `{{end -}}
`

// usageTemplate returns the template of all help.
func usageTemplate() string { return kingpin.DefaultUsageTemplate + usageEnd }

const examples = `Examples:
  steadyprobe --config.file=steadyprobe.yml      the daemon, metrics on :10115
  steadyprobe check steadyprobe.yml              is the file valid?
  steadyprobe run -R 1000 -c 50 -d 30s URL       once, with a report
  steadyprobe COMMAND --help                     all flags of a command

`

const exitCodes = `Exit codes:
  0  it did what it was asked for, whatever the doors answered
  1  it could not: the command line is wrong, or a file, a port or the machine
     stood in the way
`

const serveHelp = `Examples:
  steadyprobe                                    reads steadyprobe.yml, metrics on :10115
  steadyprobe --config.file=doors.yml --web.listen-address=127.0.0.1:9999
  steadyprobe --web.config.file=web.yml --web.health.listen-address=:10116

SIGINT and SIGTERM stop it: requests in flight get their time, a second signal
does not wait. It does not reload its configuration yet: start it anew.

` + exitCodes

const checkHelp = `Examples:
  steadyprobe check steadyprobe.yml
  steadyprobe check doors/*.yml

Exit codes:
  0  every file is valid, with or without warnings
  1  one is not, or the command line is wrong
`

const runHelp = `A run ends when every request has an outcome: after the window of --duration a
door that does not answer is waited for, at most --backlog and --timeout
together. Ctrl-C ends it at once, but for requests in flight, and reports what
was measured until then.

Examples:
  steadyprobe run -R 1000 -c 50 -d 30s http://127.0.0.1:8080/
  steadyprobe run -R 200 -d 1m --backlog=5s --timeout=2s https://shop.example.com/healthz
  steadyprobe run -R 100 --no-reuse --connect-to=10.0.0.7:443 https://shop.example.com/
  steadyprobe run -R max -c 50 -d 10s http://127.0.0.1:8080/      how much can it do?
  steadyprobe run -R 50 --format=json -o report.json URL URL      docs/REPORT.md has the fields

` + exitCodes

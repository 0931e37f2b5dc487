package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/steadyprobe/steadyprobe/config"
)

// flagOf returns the flag of run that a field of a target comes from.
func flagOf(field string) string {
	switch field {
	case "url":
		return "the URL"
	case "connect_to":
		return "--connect-to"
	case "http", "http.host":
		return "--header"
	case "http.method":
		return "--method"
	case "http.body", "http.body_file":
		return "--body"
	case "connection.reuse":
		return "--no-reuse"
	case "connection.warm":
		return "--warm"
	case "tls.ca_file":
		return "--ca-file"
	case "tls.insecure_skip_verify":
		return "--insecure"
	}
	if name, ok := strings.CutPrefix(field, "http.headers."); ok {
		return "--header " + name
	}
	return "--" + field // rate, pacing, arrival, connections, timeout, backlog
}

// inFlags returns what is wrong with a field, or is probably not meant, in the
// words of the command line.
func inFlags(field, text string) string {
	return flagOf(field) + ": " + strings.NewReplacer(
		"rate: max", "--rate max",
		"false at ", "at ",
		"false in a closed loop", "in a closed loop",
		"or reuse: true", "or --reuse",
		"write connection.reuse", "write --no-reuse for a connection that ends with its request",
		"write ca_file with the door's authority instead", "name the door's authority with --ca-file instead",
		"use http.authorization", "write the Authorization with --header",
		"the user info of url", "the user info of the URL",
	).Replace(text)
}

// withFlags returns an error about a target in the words of the command line.
func withFlags(err error) error {
	var all *config.Errors
	if !errors.As(err, &all) {
		return err
	}
	lines := make([]string, len(all.Problems))
	for i, p := range all.Problems {
		lines[i] = inFlags(p.Field, p.Text)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// explained returns what is wrong with the command line, where the library's
// own words do not help.
func explained(app *kingpin.ApplicationModel, err error) string {
	text := err.Error()
	if name, ok := quotedAfter(text, "expected argument for flag "); ok {
		long := longFlag(app, name)
		return fmt.Sprintf("%s has no value; write %s=VALUE, also for one that begins with a hyphen", name, long)
	}
	if name, ok := quotedAfter(text, "unknown long flag "); ok {
		for _, c := range app.Commands {
			for _, f := range c.Flags {
				if "--"+f.Name == name {
					return fmt.Sprintf("%s is a flag of the command %s; see steadyprobe %s --help", name, c.Name, c.Name)
				}
			}
		}
	}
	if name, ok := strings.CutPrefix(text, "unexpected "); ok {
		for _, c := range app.Commands {
			if c.Name == name {
				return fmt.Sprintf("%s is a command and comes first; the flags in front of it are those of the command serve, which is the default", name)
			}
		}
	}
	return text
}

// quotedAfter returns what stands in single quotes behind a prefix.
func quotedAfter(text, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(text, prefix+"'")
	return strings.TrimSuffix(rest, "'"), ok
}

// longFlag returns the long form of a flag.
func longFlag(app *kingpin.ApplicationModel, name string) string {
	for _, c := range app.Commands {
		for _, f := range c.Flags {
			if f.Short != 0 && "-"+string(f.Short) == name {
				return "--" + f.Name
			}
		}
	}
	return name
}

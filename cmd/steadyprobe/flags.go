package main

import (
	"errors"
	"strings"

	"github.com/steadyprobe/steadyprobe/config"
)

// flagOf returns the flag of run that a field of a target comes from.
func flagOf(field string) string {
	switch field {
	case "url":
		return "the URL"
	case "connect_to":
		return "--connect-to"
	case "http", "http.host", "http.headers":
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

package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// syntax reports what the YAML library says of a text that it cannot read.
func (p *parser) syntax(data []byte, err error) {
	text := regexp.MustCompile(`^yaml: (line \d+: )?`).ReplaceAllString(err.Error(), "")
	if strings.HasPrefix(text, "unknown anchor") { // which may be a password
		text = "an alias (*) names no anchor, or text that begins with * is not in quotes"
	}
	p.report.problem(syntaxLine(data), "", "is not valid YAML: "+text+"; look at the indentation, quotes and brackets there and in the line before")
}

// lookAhead is how many lines a value may be expected to go over.
const lookAhead = 50

// syntaxLine returns the first line that does not continue a valid document.
// The library names the line where the block began that holds it, which may be
// the first of the file.
func syntaxLine(data []byte) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	valid := func(n int) bool { return readable(bytes.Join(lines[:n], nil)) }
	good, bad := 0, len(lines)
	for good+1 < bad {
		if middle := (good + bad) / 2; valid(middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	// A value over several lines is invalid while it is cut: look behind it.
	for n := good + 1; n < len(lines) && n <= good+lookAhead; n++ {
		if valid(n) {
			good = n
		}
	}
	return min(good+1, max(strings.Count(string(data), "\n"), 1))
}

func readable(data []byte) bool {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		switch err := decoder.Decode(&n); {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return false
		}
	}
}

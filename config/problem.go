package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration. It prints as
//
//	FILE:LINE: FIELD: what is wrong; what to write instead
//
// without the parts that it does not have.
type Problem struct {
	File  string // name of the file, empty for a target that was built by code
	Line  int    // from 1; 0 where no line is to blame
	Field string // such as targets[0].http.method; empty for the whole file
	Text  string // what is wrong, and what to write instead

	cause error
}

// Error returns the problem as one line.
func (p Problem) Error() string { return position(p.File, p.Line, p.Field) + p.Text }

// Unwrap returns the error of the operating system behind the problem, or nil.
func (p Problem) Unwrap() error { return p.cause }

// Warning is something that works and is probably not meant. It prints like a
// [Problem].
type Warning struct {
	File  string
	Line  int
	Field string
	Text  string
}

// String returns the warning as one line.
func (w Warning) String() string { return position(w.File, w.Line, w.Field) + w.Text }

func position(file string, line int, field string) string {
	var b strings.Builder
	switch {
	case file != "" && line > 0:
		fmt.Fprintf(&b, "%s:%d: ", file, line)
	case file != "":
		b.WriteString(file + ": ")
	}
	if field != "" {
		b.WriteString(field + ": ")
	}
	return b.String()
}

// Errors holds all problems of one configuration, sorted by line, at least
// one.
type Errors struct {
	Problems []Problem
	// Files are the paths of all files that the configuration names, as far as it
	// could be read, without its own.
	Files []string
	Sum   string // what Checksum would have returned when it was read
}

// Error returns one line for each problem.
func (e *Errors) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems, each a [Problem].
func (e *Errors) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// report collects what is found in one file.
type report struct {
	file     string
	problems []Problem
	warnings []Warning
	nodes    int // settings that were decoded or inherited
	most     int // of them
}

func (r *report) problem(line int, field, text string) {
	r.problems = append(r.problems, Problem{File: r.file, Line: line, Field: field, Text: text})
}

func (r *report) warn(line int, field, text string) {
	r.warnings = append(r.warnings, Warning{File: r.file, Line: line, Field: field, Text: text})
}

// err returns the problems in order of their lines, or nil. A setting of the
// defaults that is wrong for several targets counts once.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	seen := map[string]bool{}
	unique := slices.DeleteFunc(r.problems, func(p Problem) bool {
		known := seen[p.Error()]
		seen[p.Error()] = true
		return known
	})
	return &Errors{Problems: unique}
}

// warned returns the warnings in order of their lines, each once.
func (r *report) warned() []Warning {
	slices.SortStableFunc(r.warnings, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
	return slices.Compact(r.warnings)
}

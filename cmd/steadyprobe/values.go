package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
)

// The values of flags are of this program's own types, because the library's
// errors name neither the flag nor what to write.

// rateValue is requests per second, or max.
type rateValue struct {
	config.Rate
	flag string
}

// Set takes what the command line says.
func (v *rateValue) Set(text string) (err error) {
	if v.Rate, err = config.ParseRate(text); err != nil {
		return fmt.Errorf("reading %s: %w", v.flag, err)
	}
	return nil
}

// durationValue is a duration within bounds.
type durationValue struct {
	time.Duration
	flag        string
	least, most time.Duration // a most of 0 is none
}

// Set takes what the command line says.
func (v *durationValue) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		remedy := "write one such as 500ms, 30s or 1m30s"
		if _, number := strconv.ParseFloat(text, 64); number == nil {
			remedy = fmt.Sprintf("it has no unit, write for example %ss", text)
		}
		return fmt.Errorf("reading %s: %q is not a duration; %s", v.flag, text, remedy)
	}
	if d < v.least {
		return fmt.Errorf("reading %s: %q is too short; write %v or more", v.flag, text, v.least)
	}
	if v.most > 0 && d > v.most {
		return fmt.Errorf("reading %s: %q is too long; write %v or less", v.flag, text, v.most)
	}
	v.Duration = d
	return nil
}

// countValue is a number of things, at least one.
type countValue struct {
	n    int
	flag string
}

// Set takes what the command line says.
func (v *countValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("reading %s: %q is not a number of 1 or more; write for example 10", v.flag, text)
	}
	v.n = n
	return nil
}

func (v *countValue) String() string { return strconv.Itoa(v.n) }

// choiceValue is one of several words.
type choiceValue struct {
	word  string
	flag  string
	words []string
}

// Set takes what the command line says.
func (v *choiceValue) Set(text string) error {
	if !slices.Contains(v.words, text) {
		return fmt.Errorf("reading %s: %q is unknown; write %s", v.flag, text, wordList(v.words))
	}
	v.word = text
	return nil
}

func (v *choiceValue) String() string { return v.word }

// Choices returns what may be written.
func (v *choiceValue) Choices() []string { return v.words }

// logValue is a word that the logger's own type takes as well.
type logValue struct {
	choiceValue
	set func(string) error
}

func newLogValue(flag string, words []string, set func(string) error) *logValue {
	return &logValue{choiceValue{flag: flag, words: words}, set}
}

// Set takes what the command line says.
func (v *logValue) Set(text string) error {
	if err := v.choiceValue.Set(strings.ToLower(text)); err != nil {
		return err
	}
	return v.set(v.word)
}

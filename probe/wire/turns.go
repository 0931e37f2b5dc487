package wire

import "regexp"

// Turns lets one connection of a process at a time match an expression against
// much text, so that processors are left to those who must be on time: matching
// takes some ten nanoseconds to some hundred for each byte, and a door may send a
// megabyte with every answer. A nil Turns lets all match at once.
type Turns struct{ one chan struct{} }

// NewTurns returns one for all targets of a process.
func NewTurns() *Turns { return &Turns{one: make(chan struct{}, 1)} }

// muchText is how many bytes are matched without waiting for a turn: less than
// 10 ms of them.
const muchText = 64 << 10

// match is expression.Match.
func (t *Turns) match(expression *regexp.Regexp, text []byte) bool {
	if t.take(text) {
		defer t.end()
	}
	return expression.Match(text)
}

// find is expression.FindSubmatch.
func (t *Turns) find(expression *regexp.Regexp, text []byte) [][]byte {
	if t.take(text) {
		defer t.end()
	}
	return expression.FindSubmatch(text)
}

// take waits for a turn where there is much text, and reports whether it has one
// to end.
func (t *Turns) take(text []byte) bool {
	if t == nil || len(text) <= muchText {
		return false
	}
	t.one <- struct{}{}
	return true
}

func (t *Turns) end() { <-t.one }

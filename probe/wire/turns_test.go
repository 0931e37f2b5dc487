package wire

import (
	"bytes"
	"regexp"
	"testing"
	"testing/synctest"
)

// TestTurns has two match at once: with much text the second waits.
func TestTurns(t *testing.T) {
	expression := regexp.MustCompile(`b(c)`)
	much, little := append(bytes.Repeat([]byte("a"), muchText), "bc"...), []byte("abc")
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		if !turns.take(much) {
			t.Fatal("no turn for much text")
		}
		matched := make(chan bool, 2)
		go func() { matched <- turns.match(expression, much) }()
		synctest.Wait()
		if len(matched) > 0 {
			t.Error("two match much text at once")
		}
		if !turns.match(expression, little) {
			t.Error("little text does not match")
		}
		turns.end()
		if !<-matched {
			t.Error("much text does not match")
		}
		if m := turns.find(expression, much); len(m) != 2 || string(m[1]) != "c" {
			t.Errorf("found %q, want a group c", m)
		}
	})
	var none *Turns
	if !none.match(expression, much) {
		t.Error("without turns much text does not match")
	}
	// Without the expression, which takes its room from a pool.
	if n := testing.AllocsPerRun(100, func() {
		if none.take(little) {
			none.end()
		}
	}); n != 0 {
		t.Errorf("%v allocations for little text", n)
	}
}

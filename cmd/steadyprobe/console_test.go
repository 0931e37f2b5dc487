package main

import (
	"io"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/report"
)

func TestConsole(t *testing.T) {
	var out strings.Builder
	c := &console{Writer: &out}
	if c.show() != nil {
		t.Error("there is a live line on what is no terminal")
	}
	_, _ = io.WriteString(c, "before\n")
	live := report.NewLive(&out, 80)
	c.live.Store(live)
	live.Show("1s")
	_, _ = io.WriteString(c, "a log\n")
	live.Show("2s")
	if want := "before\n\r1s\r  \ra log\n\r2s"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

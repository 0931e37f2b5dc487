package main

import (
	"io"
	"sync/atomic"

	"github.com/steadyprobe/steadyprobe/report"
)

// console is standard error. What is written to it while it shows a live line
// takes the place of that, or a log would begin behind it.
type console struct {
	io.Writer
	live atomic.Pointer[report.Live]
}

// show returns a live line, or nil where this is no terminal.
func (c *console) show() *report.Live {
	columns, ok := terminal(c.Writer)
	if !ok {
		return nil
	}
	live := report.NewLive(c.Writer, columns)
	c.live.Store(live)
	return live
}

// Write may be called concurrently where the writer may be.
func (c *console) Write(p []byte) (int, error) {
	if live := c.live.Load(); live != nil {
		return live.Write(p)
	}
	return c.Writer.Write(p)
}

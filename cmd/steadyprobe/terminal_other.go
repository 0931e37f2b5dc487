//go:build !unix

package main

import "io"

// terminal reports no terminal: its width is asked for on Unix only.
func terminal(io.Writer) (columns int, ok bool) { return 0, false }

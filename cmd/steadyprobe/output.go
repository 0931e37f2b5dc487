package main

import (
	"fmt"
	"io"
	"os"
)

// output is the file that a report goes to. What it held before is kept until
// the first write.
type output struct {
	*os.File
	begun bool
}

// openOutput opens the file for writing, or returns stdout for an empty name.
func openOutput(name string, stdout io.Writer) (io.WriteCloser, error) {
	if name == "" {
		return unclosed{stdout}, nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("opening --output: %w; write the path of a file in a folder that is there", err)
	}
	return &output{File: file}, nil
}

// Write replaces what the file held. A device or a pipe holds nothing.
func (o *output) Write(p []byte) (int, error) {
	if !o.begun {
		o.begun = true
		info, err := o.Stat()
		if err != nil {
			return 0, err
		}
		if info.Mode().IsRegular() {
			if err := o.Truncate(0); err != nil {
				return 0, err
			}
		}
	}
	return o.File.Write(p)
}

// Close may be called again.
func (o *output) Close() error {
	if o.File == nil {
		return nil
	}
	file := o.File
	o.File = nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// unclosed is a writer that others go on using.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }

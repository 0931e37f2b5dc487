// Command dashboards writes the Grafana dashboards of steadyprobe, one file of
// JSON for each, into the folder it is started in.
package main

import (
	"fmt"
	"os"
)

//go:generate go run .

func main() {
	for _, b := range boards() {
		if err := write(b); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func write(b board) error {
	built, err := b.build()
	if err != nil {
		return err
	}
	content, err := encode(built)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.file(), content, 0o644); err != nil {
		return fmt.Errorf("writing dashboard: %w", err)
	}
	return nil
}

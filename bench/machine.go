package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// machine is where and with what it was measured: the first line of
// results.jsonl.
type machine struct {
	Began    time.Time         `json:"began"`
	Cores    int               `json:"cores"`
	CPU      string            `json:"cpu"`
	Kernel   string            `json:"kernel"`
	Load     float64           `json:"load_average"` // of the last minute, at the start
	Versions map[string]string `json:"versions"`     // of servers and tools, by name
	Missing  []string          `json:"missing_tools"`
}

// theMachine returns the facts of this machine.
func theMachine(ctx context.Context, tools []installed, missing []string) machine {
	m := machine{
		Began:    time.Now(),
		Cores:    runtime.NumCPU(),
		CPU:      field("/proc/cpuinfo", "model name"),
		Kernel:   strings.TrimSpace(content("/proc/sys/kernel/osrelease")),
		Load:     loadAverage(),
		Versions: map[string]string{},
		Missing:  missing,
	}
	for _, server := range []string{"nginx", "haproxy"} {
		if path, err := look(server, "/usr/sbin:/usr/local/sbin"); err == nil {
			m.Versions[server] = version(ctx, path, "-v")
		}
	}
	for _, t := range tools {
		m.Versions[t.Name] = t.version
	}
	return m
}

// warnings returns what speaks against trusting the figures.
func (m machine) warnings() []string {
	var all []string
	if limit := 0.5 * float64(m.Cores); m.Load > limit {
		all = append(all, fmt.Sprintf("the load average was %.1f at the start, above 0.5 for each of %d cores: figures are not to be trusted", m.Load, m.Cores))
	}
	if m.Cores < 2 {
		all = append(all, "with one core the door and the tools take turns: figures are not to be trusted")
	}
	return all
}

func (m machine) render() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d cores (%s), kernel %s, load average %.2f at the start.\n", m.Began.UTC().Format(time.RFC3339), m.Cores, m.CPU, m.Kernel, m.Load)
	if len(m.Missing) > 0 {
		fmt.Fprintf(&b, "Not installed: %s.\n", strings.Join(m.Missing, ", "))
	}
	for _, w := range m.warnings() {
		fmt.Fprintf(&b, "\n**%s**\n", w)
	}
	return b.String() + "\nMedians of the rounds, with the least and the most of them in brackets.\n\n"
}

// loadAverage returns that of the last minute, 0 where it is not known.
func loadAverage() float64 {
	first, _, _ := strings.Cut(content("/proc/loadavg"), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return v
}

// content returns the text of a file that not every system has.
func content(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

// field returns the first "name: value" of a file, or "unknown".
func field(path, name string) string {
	for line := range strings.Lines(content(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// results is the file of all raw runs.
type results struct{ *os.File }

// create begins the file with the machine.
func create(folder string, m machine) (*results, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of results: %w", err)
	}
	file, err := os.Create(filepath.Join(folder, "results.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("creating the file of results: %w", err)
	}
	r := &results{file}
	return r, r.write(map[string]machine{"machine": m})
}

// write adds a line.
func (r *results) write(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = r.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing a result: %w", err)
	}
	return nil
}

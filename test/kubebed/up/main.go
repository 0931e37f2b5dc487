// Command up brings the cluster of the test bed up for use by hand: a control
// plane, a node, a shop of two pods, and four doors in front of it. Then it runs
// a command, a shell if none is given, in which kubectl and steadyprobe are
// ready. When that ends, everything ends.
//
//	go run ./test/kubebed/up [-replicas N] [COMMAND [ARGUMENT...]]
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

func main() { os.Exit(bed.Enter(up)) }

// holder is what the cluster belongs to.
type holder struct{ *testbed.Holder }

// Skipf gives up: who asked for a cluster cannot do without.
func (h holder) Skipf(format string, args ...any) { h.Fatalf(format, args...) }

// up brings everything up, runs the command and returns its exit status.
func up() int {
	replicas := flag.Int("replicas", 2, "of the shop")
	flag.Parse()
	var status int
	err := testbed.Hold(func(h *testbed.Holder) error {
		environment, err := build(holder{h}, *replicas)
		if err != nil {
			return err
		}
		status, err = run(environment, flag.Args())
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return cmp.Or(status, 1)
	}
	return status
}

// build starts the cluster and all that is in it, and returns what the command
// has in its environment.
func build(h holder, replicas int) ([]string, error) {
	h.Helper()
	fmt.Fprintln(os.Stderr, "starting the control plane")
	b := bed.Start(h)
	site := b.Shop(replicas)
	dir := h.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	for name, path := range map[string]string{"kubectl": testbed.Tool(h, "kubernetes", "kubernetes"), "steadyprobe": bed.ProbeProgram()} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf("putting %s into the PATH: %w", name, err)
		}
	}
	config := filepath.Join(dir, "steadyprobe.yml")
	if err := os.WriteFile(config, []byte(site.Configuration(bed.StudyTwo())), 0o600); err != nil {
		return nil, fmt.Errorf("writing a configuration: %w", err)
	}
	environment := []string{"KUBECONFIG=" + b.Admin, "STEADYPROBE_CONFIG=" + config, "PATH=" + bin + ":" + os.Getenv("PATH")}
	fmt.Fprintf(os.Stderr, "\nThe Deployment web and its Service are in the namespace %s. In front of them:\n", site.Namespace)
	for _, d := range site.Doors {
		authority := strings.ToUpper(strings.ReplaceAll(d.Kind.String(), "-", "_")) + "_CA"
		environment = append(environment, authority+"="+d.CAFile)
		fmt.Fprintf(os.Stderr, "  %-18s http://%s/ https://%s/ (authority: $%s)\n", d.Kind, d.HTTP, strings.Replace(d.HTTPS, "127.0.0.1", "localhost", 1), authority)
	}
	fmt.Fprintf(os.Stderr, "A configuration that probes all four and churns: steadyprobe --config.file=$STEADYPROBE_CONFIG\n\n")
	return environment, nil
}

// run runs the command, or a shell, and returns its exit status.
func run(environment, command []string) (int, error) {
	if len(command) == 0 {
		command = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	for _, variable := range environment {
		if name, value, _ := strings.Cut(variable, "="); name == "PATH" {
			if err := os.Setenv(name, value); err != nil { // the command may be in it
				return 1, err
			}
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, fmt.Errorf("running %q: %w", command[0], err)
	}
	return 0, nil
}

package test

import (
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// TestScriptRunLeavesStrangersAlone has somebody on the door's port, whom the
// script must not probe. Who it is does not matter.
func TestScriptRunLeavesStrangersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no bash")
	}
	if l, err := net.Listen("tcp", "127.0.0.1:8080"); err == nil {
		defer l.Close()
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(testbed.Root(t), "scripts", "run"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.HasPrefix(string(out), "scripts/run: port 8080 is taken: ") {
		t.Errorf("ended with %v: %s", err, out)
	}
}

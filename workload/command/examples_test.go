//go:build unix

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// fakeSystemctl has a unit run while there is a file of its name. A unit that
// was killed runs again, as with Restart=always.
const fakeSystemctl = `#!/bin/sh
set -eu
cd "$UNITS"
word=$1
shift
case $word in
start) touch "$@" ;;
stop) rm -f "$@" ;;
is-active) shift; [ -e "$1" ] ;;
kill) echo "$2" >> ../killed ;;
esac
`

// fakeAWS has a target registered while there is a file of its name, and healthy
// while that says so.
const fakeAWS = `#!/bin/sh
set -eu
cd "$UNITS"
[ "$1 $3 $4" = "elbv2 --target-group-arn arn:shop" ]
word=$2
shift 5
case $word in
register-targets) for t in "$@"; do [ -e "$t" ] || echo initial > "$t"; done ;;
deregister-targets) for t in "$@"; do rm -f "$t"; done ;;
describe-target-health)
	[ ! -e ../throttled ]
	printf '%d\t%d\n' "$(ls | wc -l)" "$(cat * /dev/null | grep -c healthy)" ;;
esac
`

// example is a workload that a script of the examples scales, by way of a fake
// program.
type example struct {
	*Workload
	t     *testing.T
	units string // folder
}

func newExample(t *testing.T, fake, text string, o Options) *example {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, fake), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	e := &example{t: t, units: filepath.Join(t.TempDir(), "units")}
	if err := os.Mkdir(e.units, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("UNITS", e.units)
	o.Interval, o.Folder = 1, filepath.Join(testbed.Root(t), "examples", "churn")
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	e.Workload = w
	return e
}

func (e *example) running() string {
	e.t.Helper()
	entries, err := os.ReadDir(e.units)
	if err != nil {
		e.t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (e *example) expect(desired, ready int, running string) {
	e.t.Helper()
	got, err := e.Observe(e.t.Context())
	if want := (churn.Observation{Desired: desired, Ready: ready, Endpoints: ready}); err != nil || got != want {
		e.t.Errorf("observed %+v, %v; want %+v", got, err, want)
	}
	if names := e.running(); names != running {
		e.t.Errorf("there are %q, want %q", names, running)
	}
}

func (e *example) scale(replicas int) {
	e.t.Helper()
	if err := e.Scale(e.t.Context(), replicas); err != nil {
		e.t.Fatal(err)
	}
}

// refuses expects that too many change nothing.
func (e *example) refuses(replicas int, said string) {
	e.t.Helper()
	before := e.running()
	err := e.Scale(e.t.Context(), replicas)
	if reasonOf(err) != churn.Forbidden || !strings.HasSuffix(err.Error(), said) || e.running() != before {
		e.t.Errorf("scaling to %d returned %v, and there are %s", replicas, err, e.running())
	}
}

func TestExampleOfSystemd(t *testing.T) {
	const script = "./systemd-units.sh"
	e := newExample(t, "systemctl", fakeSystemctl, Options{
		Scale: []string{script, "scale", "web", "3", "{replicas}"},
		Read:  []string{script, "read", "web", "3"},
		Kill:  []string{script, "kill", "web", "3", "{kill}"},
	})
	e.expect(0, 0, "")
	e.scale(3)
	e.expect(3, 3, "web@1.service web@2.service web@3.service")
	e.scale(1)
	e.expect(1, 1, "web@1.service")
	e.scale(3)
	if err := e.Kill(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	e.expect(1, 1, "web@1.service")
	killed, err := os.ReadFile(filepath.Join(filepath.Dir(e.units), "killed"))
	if err != nil || string(killed) != "web@3.service\nweb@2.service\n" {
		t.Errorf("killed %q, %v", killed, err)
	}
	e.refuses(4, "there are 3 units, and 4 were asked for")
	e.scale(0)
	e.expect(0, 0, "")
}

func TestExampleOfAWS(t *testing.T) {
	const script = "./aws-target-group.sh"
	file := filepath.Join(t.TempDir(), "targets")
	if err := os.WriteFile(file, []byte("i-1\ni-2\n\ni-3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := newExample(t, "aws", fakeAWS, Options{
		Scale: []string{script, "scale", "arn:shop", file, "{replicas}"},
		Read:  []string{script, "read", "arn:shop", file},
	})
	e.scale(2)
	e.expect(2, 0, "Id=i-1 Id=i-2")
	if err := os.WriteFile(filepath.Join(e.units, "Id=i-1"), []byte("healthy\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.expect(2, 1, "Id=i-1 Id=i-2")
	e.scale(3)
	e.expect(3, 1, "Id=i-1 Id=i-2 Id=i-3")
	e.refuses(4, "there are 3 targets, and 4 were asked for")
	e.scale(0)
	e.expect(0, 0, "")
	if err := os.WriteFile(filepath.Join(filepath.Dir(e.units), "throttled"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Observe(t.Context()); reasonOf(err) != churn.Unreachable {
		t.Errorf("observed with %v, want %v", err, fmt.Sprint(churn.Unreachable))
	}
}

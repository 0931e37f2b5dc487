//go:build unix

package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/workload/notefile"
)

// programs is a workload that is a number in a file, which real programs write
// and print.
type programs struct {
	t       *testing.T
	count   string // path of the file
	storage string
	door    *faultdoor.Door
}

func newPrograms(t *testing.T, replicas string) *programs {
	t.Helper()
	p := &programs{t: t, count: filepath.Join(t.TempDir(), "count"), storage: t.TempDir(), door: faultdoor.Listen(t, good())}
	p.write(replicas)
	return p
}

func (p *programs) write(replicas string) {
	p.t.Helper()
	if err := os.WriteFile(p.count+".new", []byte(replicas+"\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(p.count+".new", p.count); err != nil {
		p.t.Fatal(err)
	}
}

func (p *programs) replicas() string {
	text, err := os.ReadFile(p.count)
	if err != nil {
		p.t.Error(err)
	}
	return strings.TrimSpace(string(text))
}

// options of a daemon that churns them, as rest says.
func (p *programs) options(rest string) Options {
	p.t.Helper()
	text := "targets:\n" + targetOf("one", p.door.URL("http"), "rate: 100, churn: shop") + fmt.Sprintf(`churns:
  - name: shop
    command:
      scale: [/bin/sh, -c, 'echo {replicas} >"$1.new" && mv "$1.new" "$1"', sh, %q]
      read: [/bin/cat, %[1]q]
      interval: 50ms
    settle: 0s
    %s
`, p.count, rest)
	o := options(configured(p.t, text), "127.0.0.1:0")
	o.Storage, o.Lifecycle = Storage{Path: p.storage}, true
	return o
}

// note returns the note of the churn, as another process reads it.
func (p *programs) note() churn.Note {
	p.t.Helper()
	n, err := p.book("shop").Load(p.t.Context())
	if err != nil {
		p.t.Error(err)
	}
	return n
}

func (p *programs) book(name string) *notefile.Book {
	p.t.Helper()
	b, err := notefile.New(notefile.Options{Folder: filepath.Join(p.storage, "churns"), Churn: name})
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// leave writes the note of an earlier process that was killed.
func (p *programs) leave(name string, n churn.Note) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	b := p.book(name)
	if err := b.Campaign(ctx, func(lead context.Context) {
		if err := b.Save(lead, n); err != nil {
			p.t.Error(err)
		}
		cancel()
	}); err != nil {
		p.t.Fatal(err)
	}
}

// TestProgramsAreChurned goes through a churn of real programs: scaled, paused
// and resumed over HTTP, and put back at the end.
func TestProgramsAreChurned(t *testing.T) {
	p := newPrograms(t, "2")
	r := start(t, p.options("dry_run: false\n    steps: [{replicas: 4, hold: 1h}]"))
	eventually(t, "4 replicas", func() bool { return p.replicas() == "4" })
	if n := p.note(); !n.Held || n.Baseline != 2 || n.Set != 4 {
		t.Errorf("the note is %+v, want a baseline of 2 and 4 set", n)
	}
	eventually(t, "the step to settle", func() bool { return churnOf(t, r).Phase == "settled" })
	c := churnOf(t, r)
	if c.State != "running" || !c.Leader || c.Baseline != 2 || c.Desired != 4 || c.Floor != 1 || c.Ceiling != 4 || c.Steps != 1 || c.Next == nil ||
		c.Workload != "what /bin/sh scales" || len(c.Targets) != 1 || c.Targets[0] != "one" || c.LeaderName == "" {
		t.Errorf("the churn is %+v", c)
	}
	_, page := get(r.url + "/metrics")
	for series, want := range map[string]float64{
		`steadyprobe_churn_leader{churn="shop"}`:                         1,
		`steadyprobe_churn_steps_total{churn="shop",direction="up"}`:     1,
		`steadyprobe_churn_state{churn="shop",state="running"}`:          1,
		`steadyprobe_churn_baseline_replicas{churn="shop"}`:              2,
		`steadyprobe_churn_convergence_seconds_count{churn="shop",direc`: 1,
	} {
		if got := metric(page, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}

	if status, body := control(t, r, "shop/pause"); status != http.StatusOK {
		t.Fatalf("pausing answered %d %s", status, body)
	}
	eventually(t, "the baseline", func() bool { return p.replicas() == "2" })
	eventually(t, "the pause", func() bool { c := churnOf(t, r); return c.State == "paused" && c.PausedByHand && !c.RestorePending })
	if n := p.note(); n.Held || !n.Paused {
		t.Errorf("the note is %+v, want a pause and nothing to put back", n)
	}
	if status, body := control(t, r, "shop/resume"); status != http.StatusOK {
		t.Fatalf("resuming answered %d %s", status, body)
	}
	eventually(t, "4 replicas again", func() bool { return p.replicas() == "4" })
	if status, body := control(t, r, "other/pause"); status != http.StatusNotFound {
		t.Errorf("pausing another churn answered %d %s", status, body)
	}

	r.stop()
	if got := p.replicas(); got != "2" {
		t.Errorf("%s replicas at the end, want the baseline", got)
	}
	if n := p.note(); n != (churn.Note{}) {
		t.Errorf("the note is %+v at the end, want none", n)
	}
}

// TestAPauseOutlivesTheProcess is over when somebody resumes the churn.
func TestAPauseOutlivesTheProcess(t *testing.T) {
	p := newPrograms(t, "2")
	const steps = "dry_run: false\n    steps: [{replicas: 4, hold: 1h}]"
	r := start(t, p.options(steps))
	eventually(t, "4 replicas", func() bool { return p.replicas() == "4" })
	if status, body := control(t, r, "shop/pause"); status != http.StatusOK {
		t.Fatalf("pausing answered %d %s", status, body)
	}
	r.stop()
	r = start(t, p.options(steps))
	eventually(t, "the pause", func() bool { return churnOf(t, r).PausedByHand })
	if got := p.replicas(); got != "2" {
		t.Errorf("%s replicas in the pause, want the baseline", got)
	}
	if status, body := control(t, r, "shop/resume"); status != http.StatusOK {
		t.Fatalf("resuming answered %d %s", status, body)
	}
	eventually(t, "4 replicas", func() bool { return p.replicas() == "4" })
}

// TestACrashIsPutRight has the note of a process that was killed while 1 of 3
// replicas were left: the next one puts 3 back, also in a dry run.
func TestACrashIsPutRight(t *testing.T) {
	left := churn.Note{Held: true, Baseline: 3, Set: 1, Before: 3, Deadline: time.Now().Add(time.Hour)}
	for _, row := range []struct{ name, rest string }{
		{"goes on", "dry_run: false\n    steps: [{replicas: 3, hold: 1h}]"},
		{"dry run", "steps: [{replicas: 5, hold: 1h}]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPrograms(t, "1")
			p.leave("shop", left)
			r := start(t, p.options(row.rest))
			eventually(t, "the baseline of before", func() bool { return p.replicas() == "3" })
			eventually(t, "an empty note", func() bool { return !p.note().Held })
			eventually(t, "the baseline of now", func() bool { return churnOf(t, r).Baseline == 3 })
			r.stop()
			if got := p.replicas(); got != "3" {
				t.Errorf("%s replicas at the end, want 3", got)
			}
		})
	}
}

// TestADryRunBesideAnother leaves the note alone of a process that churns.
func TestADryRunBesideAnother(t *testing.T) {
	p := newPrograms(t, "2")
	other := start(t, p.options("dry_run: false\n    steps: [{replicas: 4, hold: 1h}]"))
	eventually(t, "4 replicas", func() bool { return p.replicas() == "4" })
	note := p.note()
	dry := start(t, p.options("steps: [{replicas: 5, hold: 1h}]"))
	eventually(t, "the dry run", func() bool { return churnOf(t, dry).State == "dry_run" })
	dry.stop()
	if got := p.note(); !got.Held || got.Baseline != note.Baseline || p.replicas() != "4" {
		t.Errorf("after a dry run the note is %+v with %s replicas, want that of the other, %+v, with 4", got, p.replicas(), note)
	}
	other.stop()
	if got := p.replicas(); got != "2" {
		t.Errorf("%s replicas at the end, want 2", got)
	}
}

// TestADryRunIsInNobodysWay lets another process churn beside it, also after it
// has put back what an earlier one had left.
func TestADryRunIsInNobodysWay(t *testing.T) {
	for _, row := range []struct {
		name string
		left churn.Note
	}{
		{"nothing left", churn.Note{}},
		{"3 replicas left", churn.Note{Held: true, Baseline: 2, Set: 3, Before: 2, Deadline: time.Now().Add(time.Hour)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPrograms(t, "2")
			if row.left.Held {
				p.write("3")
				p.leave("shop", row.left)
			}
			dry := start(t, p.options("steps: [{replicas: 3, hold: 1h}]"))
			eventually(t, "the dry run", func() bool { c := churnOf(t, dry); return c.State == "dry_run" && c.Baseline == 2 })
			other := start(t, p.options("dry_run: false\n    steps: [{replicas: 4, hold: 1h}]"))
			eventually(t, "4 replicas", func() bool { return p.replicas() == "4" })
			dry.stop()
			other.stop()
			if got := p.replicas(); got != "2" {
				t.Errorf("%s replicas at the end, want 2", got)
			}
		})
	}
}

// TestOfTwoDaemonsOneChurns hands over at the end of the first.
func TestOfTwoDaemonsOneChurns(t *testing.T) {
	p := newPrograms(t, "2")
	const steps = "dry_run: false\n    steps: [{replicas: 4, hold: 1h}]"
	first := start(t, p.options(steps))
	eventually(t, "4 replicas", func() bool { return p.replicas() == "4" })
	second := start(t, p.options(steps))
	eventually(t, "a standby that knows who leads", func() bool {
		c := churnOf(t, second)
		return c.State == "standby" && !c.Leader && c.LeaderName != ""
	})
	if status, body := control(t, second, "shop/pause"); status != http.StatusConflict {
		t.Errorf("pausing at the standby answered %d %s", status, body)
	}
	first.stop()
	eventually(t, "the second to churn", func() bool { c := churnOf(t, second); return c.State == "running" && c.Desired == 4 && c.Baseline == 2 })
}

// TestNotesOfNobody says loudly what earlier churns have left that are no
// longer configured.
func TestNotesOfNobody(t *testing.T) {
	p := newPrograms(t, "2")
	held := churn.Note{Held: true, Baseline: 7, Set: 3, Original: "the servers", Deadline: time.Now().Add(time.Hour)}
	p.leave("gone", held)
	p.leave("paused", churn.Note{Paused: true}) // there is nothing to put back
	p.leave("shop", held)                       // this one is configured
	torn := filepath.Join(p.storage, "churns", "churn-torn.json")
	if err := os.WriteFile(torn, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log logged
	o := p.options("steps: [{replicas: 4, hold: 1h}]")
	o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	start(t, o).stop()
	for _, want := range []string{
		`level=ERROR msg="An earlier churn has left its workload changed, and is no longer configured: configure it again, which puts it back, or put it back by hand and remove the file" churn=gone baseline_replicas=7 set_replicas=3 original="the servers" file=` + filepath.Join(p.storage, "churns", "churn-gone.json"),
		`level=ERROR msg="A note of an earlier churn cannot be read: see what its workload has, put it back by hand where need be, then remove the file" file=` + torn,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, log.String())
		}
	}
	for _, not := range []string{"churn=shop baseline", "churn=paused"} {
		if strings.Contains(log.String(), not) {
			t.Errorf("the log says %s:\n%s", not, log.String())
		}
	}
}

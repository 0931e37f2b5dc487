package notefile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/steadyprobe/steadyprobe/churn"
)

// mount makes a file system of 16 KiB that ends with the test.
func mount(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := unix.Mount("none", folder, "tmpfs", 0, "size=16k,mode=0700"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("mounting a small file system: %v", err)
		}
		t.Skipf("mounting a small file system: %v; it needs root", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting the small file system: %v", err)
		}
	})
	return folder
}

// fill writes a file until the disk is full.
func fill(t *testing.T, folder, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
}

// TestFullDisk saves on a disk that has become full: the note before stays, and
// can be given up.
func TestFullDisk(t *testing.T) {
	folder := mount(t)
	b := open(t, folder, "shop")
	leading(t, b)
	before := churn.Note{Held: true, Baseline: 4, Set: 2}
	if err := b.Save(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	fill(t, folder, "filler")

	err := b.Save(t.Context(), churn.Note{Held: true, Baseline: 4, Set: 3})
	if !errors.Is(err, syscall.ENOSPC) || reasonOf(err) != churn.Other || !strings.Contains(err.Error(), `writing the note of churn "shop"`) {
		t.Errorf("Save returned %v", err)
	}
	if n, err := b.Load(t.Context()); err != nil || !same(n, before) {
		t.Errorf("loaded %+v, %v; want %+v", n, err, before)
	}
	if strings.Contains(files(t, folder), ".new") {
		t.Errorf("a draft was left: %s", files(t, folder))
	}
	// To put the baseline back, nobody needs to know more than is there.
	restoring := churn.Note{Held: true, Baseline: 4, Set: 4, Before: 2}
	if err := b.Save(t.Context(), restoring); err != nil {
		t.Errorf("Save before the baseline is put back: %v", err)
	}
	again := before // of a restore after a step that may have been taken
	again.Deadline = time.Now()
	if err := b.Save(t.Context(), again); err != nil {
		t.Errorf("Save of what is there: %v", err)
	}
	for name, more := range map[string]churn.Note{
		"another count":    {Held: true, Baseline: 4, Set: 2, Before: 3},
		"another baseline": {Held: true, Baseline: 5, Set: 5, Before: 2},
		"an original":      {Held: true, Baseline: 4, Set: 4, Before: 2, Original: "more"},
		"a pause":          {Held: true, Baseline: 4, Set: 4, Before: 2, Paused: true},
	} {
		if err := b.Save(t.Context(), more); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Save of %s: %v", name, err)
		}
	}
	if err := b.Save(t.Context(), churn.Note{}); err != nil {
		t.Errorf("giving the note up: %v", err)
	}
	fill(t, folder, "more")
	if err := b.Save(t.Context(), restoring); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Save without a note before: %v", err)
	}
	if n, err := b.Load(t.Context()); err != nil || n != (churn.Note{}) {
		t.Errorf("loaded %+v, %v; want none", n, err)
	}
}

// TestLeadingOnAFullDisk leads where not even the name of who leads can be
// written: there may be something to restore.
func TestLeadingOnAFullDisk(t *testing.T) {
	folder := mount(t)
	fill(t, folder, "filler")
	b := open(t, folder, "shop")
	leading(t, b)
	if b.Leader() != identity() {
		t.Errorf("%q leads", b.Leader())
	}
	if err := b.Save(t.Context(), churn.Note{Held: true, Baseline: 4, Set: 3}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Save returned %v", err)
	}
}

// TestReadOnlyDisk saves on a disk that has become read-only.
func TestReadOnlyDisk(t *testing.T) {
	folder := mount(t)
	b := open(t, folder, "shop")
	resign := leading(t, b)
	before := churn.Note{Held: true, Baseline: 4, Set: 2}
	if err := b.Save(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	readOnly := func(flags uintptr) {
		if err := unix.Mount("none", folder, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	readOnly(unix.MS_RDONLY)
	for _, n := range []churn.Note{{Held: true, Baseline: 4, Set: 3}, {}} {
		err := b.Save(t.Context(), n)
		if !errors.Is(err, syscall.EROFS) || reasonOf(err) != churn.Forbidden ||
			!strings.HasSuffix(err.Error(), "let the user of the daemon read and write the folder") {
			t.Errorf("Save of %+v returned %v", n, err)
		}
	}
	if n, err := b.Load(t.Context()); err != nil || !same(n, before) {
		t.Errorf("loaded %+v, %v; want %+v", n, err, before)
	}
	resign()

	empty := open(t, folder, "basket")
	err := empty.Campaign(t.Context(), func(context.Context) { t.Error("it leads without a lock") })
	if !errors.Is(err, syscall.EROFS) || reasonOf(err) != churn.Forbidden {
		t.Errorf("Campaign returned %v", err)
	}
	readOnly(0)
	leading(t, empty)
}

//go:build unix

package notefile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/steadyprobe/steadyprobe/churn"
)

func TestPipeIsNoNote(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(folder, "churn-shop.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Were the pipe opened, this would wait for ever.
	if _, err := open(t, folder, "shop").Load(t.Context()); err == nil || !strings.Contains(err.Error(), "it is no file") {
		t.Errorf("loading a pipe: %v", err)
	}
}

// TestFolderThatCannotBe has a file where the folder belongs.
func TestFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, file, "shop")
	err := b.Campaign(t.Context(), func(context.Context) { t.Error("it leads") })
	if !errors.Is(err, syscall.ENOTDIR) || reasonOf(err) != churn.Other {
		t.Errorf("Campaign returned %v", err)
	}
	if _, err := b.Load(t.Context()); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("Load returned %v: that is not what no note looks like", err)
	}
}

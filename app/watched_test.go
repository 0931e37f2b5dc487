package app

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWatched(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "1")
	broken := errors.New("broken")
	w := watched{paths: []string{file}}
	for _, step := range []struct {
		name   string
		change func()
		fails  error
		reads  int
		fresh  bool
		err    error
	}{
		{"first", func() {}, nil, 1, true, nil},
		{"not changed", func() {}, nil, 0, false, nil},
		{"changed", func() { write(t, file, "22") }, nil, 1, true, nil},
		{"changed, and broken", func() { write(t, file, "333") }, broken, 1, false, broken},
		{"still broken", func() {}, broken, 1, false, nil},
		{"mended without a change, as by a second file", func() {}, nil, 1, true, nil},
		{"gone", func() { _ = os.Remove(file) }, broken, 1, false, broken},
		{"back", func() { write(t, file, "22") }, nil, 1, true, nil},
		{"a folder", func() { _ = os.Remove(file); _ = os.Mkdir(file, 0o700) }, nil, 0, false, nil},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.change()
			reads := 0
			fresh, err := w.refresh(lookAt, func() error { reads++; return step.fails })
			if reads != step.reads || fresh != step.fresh || !errors.Is(err, step.err) {
				t.Errorf("read %d times, fresh %v, %v; want %d, %v, %v", reads, fresh, err, step.reads, step.fresh, step.err)
			}
		})
	}
}

// A pipe can be read once: reading it again would wait for ever.
func TestWatchedDevice(t *testing.T) {
	w := watched{paths: []string{os.DevNull}}
	if fresh, err := w.refresh(lookAt, func() error { t.Error("it is read"); return nil }); fresh || err != nil {
		t.Errorf("fresh %v, %v", fresh, err)
	}
}

package testbed

import (
	"errors"
	"os"
	"slices"
	"testing"
)

func TestHolder(t *testing.T) {
	var order []string
	var dir string
	err := Hold(func(o *Holder) error {
		dir = o.TempDir()
		o.Cleanup(func() { order = append(order, "first") })
		o.Cleanup(func() { o.Fatal("cleaning") })
		o.Cleanup(func() { order = append(order, "last") })
		o.Errorf("measuring: %d", 1)
		if !o.Failed() {
			t.Error("it has not failed")
		}
		o.Fatalf("giving %s", "up")
		return errors.New("not reached")
	})
	if err == nil || err.Error() != "measuring: 1\ngiving up\ncleaning" {
		t.Errorf("error = %v, want the three that were reported", err)
	}
	if !slices.Equal(order, []string{"last", "first"}) {
		t.Errorf("clean-ups ran as %v, want the last one first", order)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	want := errors.New("of its own")
	if err := Hold(func(*Holder) error { return want }); !errors.Is(err, want) {
		t.Errorf("error = %v, want %v", err, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a panic of other origin was swallowed")
		}
	}()
	_ = Hold(func(*Holder) error { panic("bug") })
}

package probe

import (
	"sync"
	"testing"
)

func TestBackends(t *testing.T) {
	b := NewBackends(2)
	one, two := b.Named([]byte("one")), b.Named([]byte("two"))
	if one == two || one.Name != "one" || two.Name != "two" {
		t.Errorf("got %v and %v", one, two)
	}
	if b.Named([]byte("one")) != one {
		t.Error("one is another one when it is named again")
	}
	for _, name := range []string{"three", "other"} {
		if b.Named([]byte(name)) != b.Other() {
			t.Errorf("%s has a place in a table that is full", name)
		}
	}
	b.Forget(one)
	if three := b.Named([]byte("three")); three == b.Other() || three.Name != "three" {
		t.Errorf("three is %v after one was forgotten", three)
	}
	if b.Named([]byte("one")) != b.Other() {
		t.Error("one has a place again")
	}
	name := []byte("two")
	if n := testing.AllocsPerRun(100, func() { b.Named(name) }); n != 0 {
		t.Errorf("%v allocations for a backend that is known", n)
	}
}

func TestBackendsConcurrently(t *testing.T) {
	b := NewBackends(10)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				one := b.Named([]byte{'a' + byte(i%20)})
				if i%7 == 0 && one != b.Other() {
					b.Forget(one)
				}
			}
		})
	}
	all.Wait()
	if n := len(*b.known.Load()); n > 10 {
		t.Errorf("%d backends have a place, want 10 at most", n)
	}
}

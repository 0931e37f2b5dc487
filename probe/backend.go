package probe

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Backend is who answered behind a door, as its answer tells. Two of a target
// with the same name are the same pointer.
type Backend struct{ Name string }

// Backends are the backends of one target that have been heard of, at most a
// given number at a time, so that a door cannot make the process hold more. Its
// methods may be called concurrently.
type Backends struct {
	other Backend

	mu    sync.Mutex // of who changes
	most  int
	known atomic.Pointer[map[string]*Backend]
}

// NewBackends returns an empty table for at most so many names, which must be
// positive.
func NewBackends(most int) *Backends {
	b := &Backends{most: most, other: Backend{Name: "other"}}
	b.known.Store(&map[string]*Backend{})
	return b
}

// Other returns the one that stands for all those that have no place.
func (b *Backends) Other() *Backend { return &b.other }

// Named returns the backend of a name, or [Backends.Other] where the table is
// full. It allocates for a name that it has not heard of, and does not keep it.
func (b *Backends) Named(name []byte) *Backend {
	if one, ok := (*b.known.Load())[string(name)]; ok {
		return one
	}
	if string(name) == b.other.Name {
		return &b.other
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := *b.known.Load()
	if one, ok := before[string(name)]; ok {
		return one
	}
	if len(before) >= b.most {
		return &b.other
	}
	after := maps.Clone(before)
	one := &Backend{Name: string(name)}
	after[one.Name] = one
	b.known.Store(&after)
	return one
}

// Resize gives out at most so many names from now on, which must be positive.
// Those that have a place keep it.
func (b *Backends) Resize(most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most = most
}

// Forget gives the place of a backend to the next one that is heard of. One
// that was forgotten before has no place to give.
func (b *Backends) Forget(one *Backend) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := *b.known.Load()
	if before[one.Name] != one {
		return
	}
	after := maps.Clone(before)
	delete(after, one.Name)
	b.known.Store(&after)
}

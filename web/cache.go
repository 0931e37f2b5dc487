package web

import (
	"context"
	"sync"
	"time"
)

// cache keeps answers for a short while, so that many who ask cost as much as
// one, and makes one of them at a time, so that a crowd takes no more than one
// processor from the probe. How many are kept is up to the keys there are.
type cache[K comparable] struct {
	fresh time.Duration // how long an answer is given again

	making chan struct{} // has an element while one is made

	mu   sync.Mutex // held for a look
	kept map[K]kept
}

type kept struct {
	at      time.Time
	content []byte
}

func newCache[K comparable](fresh time.Duration) *cache[K] {
	return &cache[K]{fresh: fresh, making: make(chan struct{}, 1), kept: map[K]kept{}}
}

// get returns what is kept, or else what produce returns, or an error when ctx
// ends before it is this one's turn. The caller must not change what it gets.
func (c *cache[K]) get(ctx context.Context, key K, produce func() ([]byte, error)) ([]byte, error) {
	select {
	case c.making <- struct{}{}:
		defer func() { <-c.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	k, ok := c.kept[key]
	c.mu.Unlock()
	if ok && time.Since(k.at) < c.fresh {
		return k.content, nil
	}
	content, err := produce()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[key] = kept{time.Now(), content}
	return content, nil
}

// last returns what was made last, however long ago, and does not wait.
func (c *cache[K]) last(key K) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept[key].content
}

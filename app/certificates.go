package app

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/probe"
)

// looksEvery is how often the files of a target's TLS are looked at, at most.
const looksEvery = time.Second

// fullEvery is how often a handshake is made in full where sessions are resumed:
// a resumed one does not show the door's certificate, and a door whose ticket
// keys outlive the certificate would be thought to have the old one for ever.
const fullEvery = time.Minute

// certificates gives the TLS configuration of a target, and reads its files
// again when they have changed. Files that cannot be used change nothing. It may
// be used concurrently.
type certificates struct {
	target *config.Target
	clock  probe.Clock
	logger *slog.Logger

	current atomic.Pointer[tls.Config]
	next    atomic.Int64 // instant of the next look
	full    atomic.Int64 // instant of the next handshake that resumes nothing

	mu     sync.Mutex
	files  []string
	seen   []os.FileInfo // nil for one that is not there
	broken bool          // what was last seen could not be used
}

func newCertificates(t *config.Target, clock probe.Clock, logger *slog.Logger) *certificates {
	c := &certificates{target: t, clock: clock, logger: logger, files: t.TLSFiles()}
	c.seen = make([]os.FileInfo, len(c.files))
	c.current.Store(t.TLSConfig())
	c.full.Store(int64(clock.Now().Add(fullEvery))) // the first one has nothing to resume
	if len(c.files) == 0 {
		return c
	}
	// The files may have changed since the configuration was read. If they
	// cannot be used by now, the first handshake finds that out, and says so.
	now := c.look()
	if fresh, err := t.ReloadTLS(); err == nil {
		c.seen = now
		c.current.Store(fresh)
	}
	return c
}

// config returns what the next handshake is made with.
func (c *certificates) config() *tls.Config {
	now := int64(c.clock.Now())
	if len(c.files) > 0 && now >= c.next.Load() && c.mu.TryLock() {
		c.next.Store(now + int64(looksEvery))
		c.refresh()
		c.mu.Unlock()
	}
	current := c.current.Load()
	if due := c.full.Load(); now >= due && current.ClientSessionCache != nil && c.full.CompareAndSwap(due, now+int64(fullEvery)) {
		current = current.Clone()
		current.ClientSessionCache = unresumed{current.ClientSessionCache}
	}
	return current
}

// unresumed is a cache whose sessions a handshake does not see, though it leaves
// its own there.
type unresumed struct{ tls.ClientSessionCache }

func (unresumed) Get(string) (*tls.ClientSessionState, bool) { return nil, false }

// refresh is called with mu held.
func (c *certificates) refresh() {
	now := c.look()
	changed := !same(c.seen, now)
	if !changed && !c.broken {
		return
	}
	c.seen = now
	fresh, err := c.target.ReloadTLS()
	if err != nil {
		if !c.broken {
			c.logger.Warn("Files of a target's TLS have changed and cannot be used; the last good ones are", "target", c.target.Name, "err", err)
		}
		c.broken = true
		return
	}
	c.broken = false
	c.current.Store(fresh)
	c.logger.Info("Files of a target's TLS were read again", "target", c.target.Name)
}

func (c *certificates) look() []os.FileInfo {
	all := make([]os.FileInfo, len(c.files))
	for i, f := range c.files {
		all[i], _ = os.Stat(f) // reading it will tell what is wrong
	}
	return all
}

// same reports whether two looks have seen the same files.
func same(a, b []os.FileInfo) bool {
	for i := range a {
		switch {
		case a[i] == nil || b[i] == nil:
			if a[i] != b[i] {
				return false
			}
		case !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()):
			return false
		}
	}
	return true
}

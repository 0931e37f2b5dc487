package app

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/probe"
)

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

	mu    sync.Mutex
	files watched
}

func newCertificates(t *config.Target, clock probe.Clock, logger *slog.Logger) *certificates {
	c := &certificates{target: t, clock: clock, logger: logger, files: watched{paths: t.TLSFiles()}}
	c.current.Store(t.TLSConfig())
	c.full.Store(int64(clock.Now().Add(fullEvery))) // the first one has nothing to resume
	if len(c.files.paths) > 0 {
		// The files may have changed since the configuration was read. If they
		// cannot be used by now, the first handshake finds that out, and says so.
		if _, err := c.files.refresh(lookAt, c.read); err != nil {
			c.files.seen, c.files.broken = nil, false
		}
	}
	return c
}

// config returns what the next handshake is made with.
func (c *certificates) config() *tls.Config {
	now := int64(c.clock.Now())
	if len(c.files.paths) > 0 && now >= c.next.Load() && c.mu.TryLock() {
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
	fresh, err := c.files.refresh(lookAt, c.read)
	switch {
	case err != nil:
		c.logger.Warn("Files of a target's TLS have changed and cannot be used; the last good ones are", "target", c.target.Name, "err", err)
	case fresh:
		c.logger.Info("Files of a target's TLS were read again", "target", c.target.Name)
	}
}

// read reads the files.
func (c *certificates) read() error {
	fresh, err := c.target.ReloadTLS()
	if err == nil {
		c.current.Store(fresh)
	}
	return err
}

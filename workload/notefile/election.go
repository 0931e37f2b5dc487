package notefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// electionPeriod is how often who does not churn tries to, and how often who
// does makes sure that it is alone.
const electionPeriod = 500 * time.Millisecond

// identity returns what others read of the instance that leads.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	return fmt.Sprintf("pid %d on %s", os.Getpid(), host)
}

// Leader returns the process id and the host of the instance that leads, as
// last seen by Campaign, empty while none is known.
func (b *Book) Leader() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leader
}

// Campaign waits for the lock of the churn and calls lead while it holds it,
// again and again until ctx ends. The context of lead ends too where the lock's
// file is taken away or replaced. It returns an error at once where the lock
// cannot be tried for, because of the folder; it may be called again, but not
// before it has returned.
func (b *Book) Campaign(ctx context.Context, lead func(context.Context)) error {
	b.mu.Lock()
	stands := b.stands
	b.stands = true
	b.mu.Unlock()
	if stands {
		return fmt.Errorf("standing for election for churn %q: this does so already", b.churn)
	}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.stands, b.leader = false, ""
	}()
	for ctx.Err() == nil {
		if err := b.term(ctx, lead); err != nil {
			return fmt.Errorf("standing for election for churn %q with the lock %q: %w", b.churn, b.lockPath(), classified(err))
		}
		pause(ctx)
	}
	return nil
}

// pause waits for the next try, or for the end of ctx.
func pause(ctx context.Context) {
	t := time.NewTimer(electionPeriod)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// term tries once to be elected, and leads if it was.
func (b *Book) term(ctx context.Context, lead func(context.Context)) (err error) {
	if err := makeFolder(b.lockPath()); err != nil {
		return err
	}
	lock := flock.New(b.lockPath(), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return err
	}
	if !locked {
		b.setTerm(nil, b.readLeader())
		return nil
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if holds(lock) != nil {
		return nil // it was replaced while we locked it: try the new one
	}
	b.begin(lock)
	defer b.end()
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		defer cancel()
		for ctx.Err() == nil && holds(lock) == nil {
			pause(ctx)
		}
	}()
	defer func() { cancel(); <-watched }()
	lead(ctx)
	return nil
}

// begin makes this instance the one that leads.
func (b *Book) begin(lock *flock.Flock) {
	// Nobody needs the file but people who ask who leads. On a full disk the
	// instance has to lead all the same, to put back what there is to put back.
	_ = replaceFile(b.leaderPath(), []byte(identity()+"\n"))
	b.setTerm(lock, identity())
}

// end is called before the lock is given up.
func (b *Book) end() {
	b.writing.Lock() // no note is written by who does not lead
	defer b.writing.Unlock()
	if b.leads() == nil {
		_ = removeFile(b.leaderPath()) // as above
	}
	b.setTerm(nil, "")
}

func (b *Book) setTerm(lock *flock.Flock, leader string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lock, b.leader = lock, leader
}

// readLeader returns what the leading instance says of itself.
func (b *Book) readLeader() string {
	text, err := readFile(b.leaderPath())
	if err != nil {
		return "" // it may be about to write it
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

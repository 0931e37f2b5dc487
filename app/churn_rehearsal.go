package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
	"github.com/steadyprobe/steadyprobe/workload/notefile"
)

// rehearsal is the note of a churn in a dry run: there is one only while no
// other process churns. It keeps others from churning for as long as there is
// something to put back, and no longer.
type rehearsal struct {
	book   *notefile.Book
	logger *slog.Logger

	mu     sync.Mutex
	alone  bool
	retire context.CancelFunc // gives up being the only one
}

// electionWait is how long a dry run waits to know whether another process
// churns.
const electionWait = 2 * time.Second

// run runs the cycle, at first as the only process that may churn, where that
// can be had.
func (r *rehearsal) run(ctx context.Context, cycle func(context.Context) error) error {
	standing, retire := context.WithCancel(ctx)
	defer retire()
	r.mu.Lock()
	r.retire = retire
	r.mu.Unlock()
	elected := make(chan struct{}, 1)
	var campaign sync.WaitGroup
	campaign.Go(func() {
		err := r.book.Campaign(standing, func(lead context.Context) {
			r.setAlone(true)
			select {
			case elected <- struct{}{}:
			default:
			}
			<-lead.Done()
			r.setAlone(false)
		})
		if err != nil && standing.Err() == nil {
			r.logger.Warn("Whether an earlier process has left something to put back cannot be known", "err", err)
		}
	})
	select {
	case <-elected:
	case <-ctx.Done():
	case <-time.After(electionWait):
		retire() // what the other one leaves is not ours
		campaign.Wait()
	}
	err := cycle(ctx)
	retire()
	campaign.Wait()
	return err
}

func (r *rehearsal) setAlone(alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alone = alone
}

func (r *rehearsal) isAlone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alone
}

// end gives up being the only one.
func (r *rehearsal) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retire()
}

// Load returns the note, none where it may be that of another process.
func (r *rehearsal) Load(ctx context.Context) (churn.Note, error) {
	if !r.isAlone() {
		return churn.Note{}, nil
	}
	n, err := r.book.Load(ctx)
	if err == nil && !n.Held {
		r.end()
	}
	return n, err
}

// Save replaces the note.
func (r *rehearsal) Save(ctx context.Context, n churn.Note) error {
	err := r.book.Save(ctx, n)
	if err == nil && !n.Held {
		r.end()
	}
	return err
}

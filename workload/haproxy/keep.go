package haproxy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/steadyprobe/steadyprobe/churn"
)

// original is the state of a backend before the first change.
type original struct {
	ID      string       `json:"id"` // of this text alone
	Backend string       `json:"backend"`
	Mode    Mode         `json:"mode"` // in which servers are put away
	Servers []keptServer `json:"servers"`
}

type keptServer struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ready, drain or maint
	Weight int    `json:"weight"`
	Backup bool   `json:"backup,omitempty"`
}

// served reports whether the server took traffic.
func (k keptServer) served() bool { return k.State == ready && k.Weight > 0 && !k.Backup }

// Keep returns state and weight of each server. It is refused with
// [churn.Forbidden] where the socket may only be asked, and with [churn.Refused]
// where servers cannot be put away one by one.
func (w *Workload) Keep(ctx context.Context) (text string, err error) {
	err = w.call(ctx, "noting", func() error {
		if err := w.mayChange(ctx); err != nil {
			return err
		}
		s, err := w.look(ctx)
		if err != nil {
			return err
		}
		if err := apart(s.servers); err != nil {
			return err
		}
		o := original{ID: rand.Text(), Backend: w.backend, Mode: w.mode}
		for _, one := range s.servers {
			o.Servers = append(o.Servers, keptServer{Name: one.name, State: one.state(), Weight: one.weight, Backup: one.backup})
		}
		all, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("encoding them: %w", err)
		}
		text = string(all)
		w.original, w.ours, w.moving = text, nil, nil
		return nil
	})
	return text, err
}

// mayChange returns an error where the socket's level is too low.
func (w *Workload) mayChange(ctx context.Context) error {
	answers, err := w.client.ask(ctx, "show cli level")
	if err != nil {
		return err
	}
	if level := answers[0]; level == "user" || level == "operator" {
		return levelTooLow("the socket is of level " + level)
	}
	return nil
}

// Restore puts back the servers that were put away since Keep returned original,
// and leaves alone what is no longer as it was left. A Workload that has put
// none away itself, because it is of a later process, takes those for ours that
// are in the state of original's mode, or of weight 0 and killed or about to be,
// from the last one that served on, up to one that serves.
func (w *Workload) Restore(ctx context.Context, original string) error {
	return w.call(ctx, "restoring", func() error {
		o, err := w.decode(original)
		if err != nil {
			return err
		}
		s, err := w.look(ctx)
		if err != nil {
			return err
		}
		w.reloaded = false // what is left of ours is known
		if w.original != original {
			w.original, w.ours, w.moving = original, o.ours(s), nil
		}
		if err := w.apply(ctx, s, restoring(s.servers, w.ours)); err != nil {
			return err
		}
		w.ours = nil
		return nil
	})
}

func (w *Workload) decode(text string) (o original, err error) {
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return o, wrong(churn.Other, fmt.Errorf("reading what they were: %w", err))
	}
	if o.Backend != w.backend {
		return o, wrong(churn.Refused, fmt.Errorf("what was noted are those of backend %q", o.Backend))
	}
	if !slices.Contains([]Mode{Drain, Maint, Weight}, o.Mode) {
		return o, wrong(churn.Other, errors.New("reading what they were: there is no such mode"))
	}
	return o, nil
}

// ours returns which servers were put away, as far as can be told from how they
// are.
func (o original) ours(s snapshot) map[string]away {
	all := map[string]away{}
	for _, k := range slices.Backward(o.Servers) {
		one, there := s.server(k.Name)
		switch {
		case !k.served() || !there:
			continue
		case one.serves():
			return all // those before it were never put away
		}
		was := server{weight: k.Weight}
		for _, a := range []away{killed(was), o.Mode.put(was), Weight.put(was)} {
			if a.left(one) == a {
				all[k.Name] = a
				break
			}
		}
	}
	return all
}

package haproxy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/steadyprobe/steadyprobe/churn"
)

// Mode is how a server is put away: what becomes of what it has. Whatever the
// mode, it gets no new requests of clients that have no place there yet.
type Mode string

// The modes.
const (
	Drain  Mode = "drain"  // it is drained: clients that persist on it still reach it, and it is checked on
	Maint  Mode = "maint"  // it is in maintenance: nobody reaches it, and it is not checked
	Weight Mode = "weight" // it has weight 0, and is drained by that
)

// away is what was done to a server that served.
type away struct {
	state  string // it was told to be; empty: it was told nothing
	zeroed bool   // it was given weight 0
	weight int    // it had before
}

// put returns how a mode puts a server away.
func (m Mode) put(s server) away {
	if m == Weight {
		return away{zeroed: true, weight: s.weight}
	}
	return away{state: string(m), weight: s.weight}
}

// killed returns how a server is stopped without drain. The weight marks it:
// one in maintenance that has kept its weight is somebody else's.
func killed(s server) away { return away{state: maint, zeroed: true, weight: s.weight} }

// left returns what of a the server still is. What is not left of it somebody
// else has changed.
func (a away) left(s server) away {
	if a.state != s.forced() {
		a.state = ""
	}
	if s.weight != 0 {
		a.zeroed = false
	}
	return a
}

// nothing reports whether there is nothing to be put back.
func (a away) nothing() bool { return a.state == "" && !a.zeroed }

// back returns the server with all put back that a says.
func (a away) back(s server) server {
	if a.zeroed {
		s.weight = a.weight
	}
	if a.state != "" {
		s.admin &^= forcedMaint | forcedDrain
	}
	return s
}

// change is what is to be done to one server.
type change struct {
	name     string
	back     bool // it is put back, else put away
	away     away
	sessions bool // those that it has are cut
}

// commands returns the lines that do it. HAProxy does not carry out the rest of
// a line when who sent it has died. A killed server that was put away or back in
// part has weight 0 and no other state, which tells it from those of others.
func (c change) commands(backend string) (all []string) {
	at := backend + "/" + c.name
	if c.back {
		if c.away.state != "" {
			all = append(all, "set server "+at+" state "+ready)
		}
		if c.away.zeroed {
			all = append(all, "set server "+at+" weight "+strconv.Itoa(c.away.weight))
		}
		return all
	}
	if c.away.zeroed {
		all = append(all, "set server "+at+" weight 0")
	}
	if c.away.state != "" {
		all = append(all, "set server "+at+" state "+c.away.state)
	}
	if c.sessions {
		all = append(all, "shutdown sessions server "+at)
	}
	return all
}

// choose returns what makes n servers serve: of those that serve, or that we
// have put away, the first ones in the order of the backend. Should only the
// first changes be made, then those that are away are still the last ones.
func choose(servers []server, ours map[string]away, mode Mode, n int) ([]change, error) {
	if err := apart(servers); err != nil {
		return nil, err
	}
	var back, put []change
	candidates := 0
	var others []string
	for _, s := range servers {
		left := ours[s.name].left(s)
		switch {
		case s.serves():
			if candidates++; candidates > n {
				put = append(put, change{name: s.name, away: mode.put(s)})
			}
		case !left.nothing() && left.back(s).serves():
			if candidates++; candidates <= n {
				back = append(back, change{name: s.name, away: left, back: true})
			}
		case !s.backup:
			others = append(others, fmt.Sprintf("%s (%s, weight %d)", s.name, s.state(), s.weight))
		}
	}
	if n > candidates {
		err := fmt.Errorf("%d servers asked for, and %d may take traffic", n, candidates)
		if len(others) > 0 {
			err = fmt.Errorf("%w; others have put away: %s", err, shortened(strings.Join(others, ", ")))
		}
		return nil, wrong(churn.Refused, err)
	}
	slices.Reverse(put)
	return append(back, put...), nil
}

// chooseKills returns what stops the last n servers that serve.
func chooseKills(servers []server, n int) ([]change, error) {
	if err := apart(servers); err != nil {
		return nil, err
	}
	var changes []change
	for i := len(servers) - 1; i >= 0 && len(changes) < n; i-- {
		if s := servers[i]; s.serves() {
			changes = append(changes, change{name: s.name, away: killed(s), sessions: true})
		}
	}
	if len(changes) < n || n < 0 {
		return nil, wrong(churn.Refused, fmt.Errorf("killing %d servers: %d take traffic", n, len(changes)))
	}
	return changes, nil
}

// apart returns an error where a server follows another one of the backend: one
// command would change both, and the count could not be what was asked for.
func apart(servers []server) error {
	for _, s := range servers {
		if s.tracks != "" {
			return wrong(churn.Refused, fmt.Errorf("server %s tracks %s of the same backend: they cannot be put away apart from each other", s.name, s.tracks))
		}
	}
	return nil
}

// restoring returns what puts back what is left of ours.
func restoring(servers []server, ours map[string]away) []change {
	var changes []change
	for _, s := range servers {
		if left := ours[s.name].left(s); !left.nothing() {
			changes = append(changes, change{name: s.name, away: left, back: true})
		}
	}
	return changes
}

// after returns how many servers serve when the changes are done.
func after(servers []server, changes []change) int {
	by := map[string]change{}
	for _, c := range changes {
		by[c.name] = c
	}
	n := 0
	for _, s := range servers {
		if c, ok := by[s.name]; ok && c.back {
			s = c.away.back(s)
		} else if ok {
			continue
		}
		if s.serves() {
			n++
		}
	}
	return n
}

// taken returns ours when changes are made. What is put back stays ours until
// that is known to be done.
func taken(ours map[string]away, changes []change, done bool) map[string]away {
	all := maps.Clone(ours)
	if all == nil {
		all = map[string]away{}
	}
	for _, c := range changes {
		if !c.back {
			all[c.name] = c.away
		} else if done {
			delete(all, c.name)
		}
	}
	return all
}

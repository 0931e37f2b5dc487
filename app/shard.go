package app

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/exporter"
	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/schedule"
)

// Shard says which of several processes with the same configuration this is.
// Together they send what one would. The zero Shard is that of a process that
// is alone.
type Shard struct {
	Index int // of this process, from 0
	Count int // of processes; 0 is 1
}

func (s Shard) validate() error {
	if s.Index < 0 || s.Index >= s.count() {
		return fmt.Errorf("there is no shard %d of %d: the first is 0, the last %d; see --shard.index and --shard.count", s.Index, s.count(), s.count()-1)
	}
	return nil
}

func (s Shard) count() int { return max(1, s.Count) }

// alone reports whether there are no others.
func (s Shard) alone() bool { return s.count() == 1 }

// part is what one process has of a target.
type part struct {
	// Its ticks are those whose number, modulo of, is index.
	index, of   uint64
	connections int
	// common says that there are other processes, so that the number of a tick
	// must be the same for all: it counts from 1970, and phase is a number that
	// the target has in all of them.
	common bool
	phase  uint64
}

// part returns what this process has of a target; false: nothing.
//
// A target that is dealt whole belongs to the process whose hash with its name
// is highest (rendezvous hashing: Thaler and Ravishankar, 1998), so that another
// process takes its share of each, and nothing else moves.
//
// One whose rate is split is sent by all processes, or by as many as it has
// connections, as none can do with less than one. The parts go round by its
// name, so that what cannot be dealt out evenly is not always the same's.
func (s Shard) part(c *config.Target) (p part, any bool) {
	if s.alone() {
		return part{of: 1, connections: c.Connections}, true
	}
	p = part{of: 1, connections: c.Connections, common: true, phase: hash(c.Name)}
	if c.Sharding == "targets" {
		if s.owner(c.Name) != s.Index {
			return part{}, false
		}
		return p, true
	}
	count := uint64(s.count())
	p.of = min(count, uint64(c.Connections))
	p.index = (uint64(s.Index) + p.phase%count) % count
	if p.index >= p.of {
		return part{}, false
	}
	each, rest := uint64(c.Connections)/p.of, uint64(c.Connections)%p.of
	if p.index < rest {
		each++
	}
	p.connections = int(each)
	return p, true
}

// own returns those targets that this process has a part of.
func (s Shard) own(targets []config.Target) (own []config.Target) {
	for i := range targets {
		if _, any := s.part(&targets[i]); any {
			own = append(own, targets[i])
		}
	}
	return own
}

func (s Shard) exported() exporter.Shard { return exporter.Shard{Index: s.Index, Count: s.count()} }

// owner returns the index of the process that a name belongs to.
func (s Shard) owner(name string) (owner int) {
	var highest uint64
	for i := range s.count() {
		if h := hash(strconv.Itoa(i) + "/" + name); i == 0 || h > highest {
			owner, highest = i, h
		}
	}
	return owner
}

// hash returns a number that depends on nothing but the text, in any version
// of this program.
func hash(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:])
}

// epoch returns the beginning of 1970 as an instant of a clock, by the wall clock
// as it was when that was made.
func epoch(c probe.Clock) probe.Instant { return probe.Instant(-c.Time(0).UnixNano()) }

// perSecond returns the rate of this process's part.
func (t *target) perSecond() float64 { return t.rate.Float() / float64(t.part.of) }

// schedule returns the ticks of t that are this process's and not before from.
// Where there are other processes, they are of the one schedule that began in
// 1970, by the wall clock as it was when this process started.
func (p *pacing) schedule(t *target, s schedule.Schedule) schedule.Schedule {
	if !t.part.common {
		return s
	}
	from := s.Origin
	if !s.Poisson {
		s.Origin = epoch(p.clock).Add(schedule.Spread(t.part.phase, s.Rate))
	}
	return s.Share(t.part.index, t.part.of, from)
}

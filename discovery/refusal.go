package discovery

import (
	"fmt"
	"strings"
)

// Reason says why a target is refused: the value of a label, from a closed
// list.
type Reason int

// The reasons.
const (
	Host       Reason = iota // a name outside of allow.hosts
	Network                  // an address outside of allow.networks, or of a special range
	Invalid                  // the labels make no target
	Load                     // labels ask for more than is allowed
	Name                     // another target has the name
	MaxTargets               // the source has as many as it may
	Limits                   // with it the sums would be above limits

	NumReasons = int(iota)
)

// String returns the value of the label.
func (r Reason) String() string {
	return [NumReasons]string{"host", "network", "invalid", "load", "name", "max_targets", "limits"}[r]
}

// refusal is why a target is not probed.
type refusal struct {
	reason Reason
	text   string
}

func refuse(r Reason, text string) *refusal { return &refusal{reason: r, text: text} }

// Refused is a target that is not probed.
type Refused struct {
	Target string // its name, or its address where it has none; no secret
	Reason Reason
	Text   string // what is wrong with it
}

// mostRefused is how many refused targets of a source are listed.
const mostRefused = 100

// summary returns how many were refused for each reason, as a log line has it.
func summary(refused *[NumReasons]int) string {
	var parts []string
	for i, n := range refused {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", Reason(i), n))
		}
	}
	return strings.Join(parts, ", ")
}

package web

import (
	"net/http"
	"time"
)

// Source is one source of discovered targets as the API shows it.
type Source struct {
	Name       string         `json:"name"`
	Mechanisms []string       `json:"mechanisms"` // file, http, dns, kubernetes
	Profile    string         `json:"profile"`
	Targets    int            `json:"targets"`   // admitted
	Pending    int            `json:"pending"`   // whose names are being looked up before they are
	Dropped    int            `json:"dropped"`   // by relabel rules
	Held       bool           `json:"held"`      // the source has none any more, and these are its last ones
	Elsewhere  int            `json:"elsewhere"` // targets whose names lead by now where none of them may
	Refused    map[string]int `json:"refused"`   // targets that are not probed, by reason; those that there are
	// Listed are some of them, 100 at most.
	Listed      []RefusedTarget `json:"refused_targets"`
	Failures    uint64          `json:"failures"`     // since the process started
	LastFailure *SourceFailure  `json:"last_failure"` // null where there was none
	Updated     *time.Time      `json:"updated"`      // when the source said something last; null: never
}

// RefusedTarget is a target that is not probed.
type RefusedTarget struct {
	Target string `json:"target"` // its name, or its address where it has none
	Reason string `json:"reason"`
	Text   string `json:"text"` // what is wrong with it
}

// SourceFailure is what went wrong last with a source.
type SourceFailure struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

func (a *api) discovery(*http.Request) (any, error) {
	if a.options.Discovery == nil {
		return []Source{}, nil
	}
	return list(a.options.Discovery()), nil
}

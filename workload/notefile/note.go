package notefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

// version is that of the file's form. Who reads another one does not know what
// it says.
const version = 1

// record is the form of the file.
type record struct {
	Version  int        `json:"version"`
	Churn    string     `json:"churn"`
	Held     bool       `json:"held"`
	Baseline *int       `json:"baseline,omitempty"` // this and the four below only where Held
	Set      *int       `json:"set,omitempty"`
	Before   *int       `json:"before,omitempty"`
	Original string     `json:"original,omitempty"`
	Deadline *time.Time `json:"deadline,omitempty"`
	Paused   bool       `json:"paused"`

	// For people who look at the file.
	SavedAt time.Time `json:"saved_at"`
	SavedBy string    `json:"saved_by"`
}

// encode returns the text of a note's file.
func encode(name string, n churn.Note, now time.Time) ([]byte, error) {
	r := record{Version: version, Churn: name, Paused: n.Paused, SavedAt: now.UTC(), SavedBy: identity()}
	if n.Held {
		deadline := n.Deadline.UTC()
		r.Held, r.Baseline, r.Set, r.Before, r.Original, r.Deadline = true, &n.Baseline, &n.Set, &n.Before, n.Original, &deadline
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	return append(text, '\n'), nil
}

// decode returns the note that a file holds. It is strict: what is taken for a
// note decides what becomes of a workload.
func decode(name string, text []byte) (churn.Note, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return churn.Note{}, errors.New("the file is empty")
	}
	if len(text) > mostBytes {
		return churn.Note{}, fmt.Errorf("the file has more than %d bytes", mostBytes)
	}
	var of struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return churn.Note{}, fmt.Errorf("the file is no note: %w", err)
	}
	if of.Version != version {
		return churn.Note{}, fmt.Errorf("the file has version %d, and this program knows version %d", of.Version, version)
	}
	var r record
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return churn.Note{}, fmt.Errorf("the file is no note: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return churn.Note{}, errors.New("the file is no note: it goes on behind its end")
	}
	if r.Churn != name {
		return churn.Note{}, fmt.Errorf("the file is the note of churn %q", r.Churn)
	}
	n := churn.Note{Paused: r.Paused}
	switch known := r.Baseline != nil && r.Set != nil && r.Before != nil && r.Deadline != nil; {
	case !r.Held:
		return n, nil
	case !known:
		return churn.Note{}, errors.New("the file is no note: it holds a baseline without saying baseline, set, before and deadline")
	case min(*r.Baseline, *r.Set, *r.Before) < 0:
		return churn.Note{}, fmt.Errorf("the file is no note: want 0 or more replicas, got %d, %d and %d", *r.Baseline, *r.Set, *r.Before)
	}
	n.Held, n.Baseline, n.Set, n.Before, n.Original, n.Deadline = true, *r.Baseline, *r.Set, *r.Before, r.Original, *r.Deadline
	return n, nil
}

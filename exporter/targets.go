package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// targetSet is all targets between two reloads, sorted by name, and the pages
// that its scrapes write to. A page goes back when its scrape is over; what
// the garbage collector finds there unused twice it takes, so that a process
// that is not scraped keeps none.
type targetSet struct {
	targets []target
	pages   sync.Pool
}

// target is a Target with what all its series share.
type target struct {
	Target
	pairs   []*dto.LabelPair // sorted by name
	info    []*dto.LabelPair // of targetInfo, sorted by name
	created *timestamppb.Timestamp
}

func newTargetSet(targets []Target, l *layout) (*targetSet, error) {
	names, err := userLabels(targets)
	if err != nil {
		return nil, err
	}
	set := &targetSet{targets: make([]target, 0, len(targets))}
	set.pages.New = func() any { return newPage(l) }
	for _, t := range targets {
		set.targets = append(set.targets, newTarget(t, names))
	}
	slices.SortFunc(set.targets, func(a, b target) int { return cmp.Compare(a.Name, b.Name) })
	for i := range set.targets[:max(len(set.targets)-1, 0)] {
		if name := set.targets[i].Name; name == set.targets[i+1].Name {
			return nil, fmt.Errorf("exposing target %q: there are two of that name", name)
		}
	}
	return set, nil
}

func newTarget(t Target, names []string) target {
	pairs := []*dto.LabelPair{pair(labelTarget, t.Name)}
	for _, n := range names {
		pairs = append(pairs, pair(n, t.Labels[n]))
	}
	slices.SortFunc(pairs, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return target{
		Target: t,
		pairs:  pairs,
		info: []*dto.LabelPair{
			pair("arrival", t.Arrival),
			pair("loop", t.Loop),
			pair("pacing", t.Pacing),
			pair("reuse", strconv.FormatBool(t.Reuse)),
			pair("url", t.URL),
		},
		created: timestamp(t.Created),
	}
}

// userLabels returns the union of all user labels, sorted, after checking that
// every series of every target will be valid.
func userLabels(targets []Target) ([]string, error) {
	union := map[string]struct{}{}
	kept := keptLabels()
	for i := range targets {
		t := &targets[i]
		if err := t.check(kept); err != nil {
			return nil, fmt.Errorf("exposing target %q: %w", t.Name, err)
		}
		for name := range t.Labels {
			union[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(union)), nil
}

func (t *Target) check(kept map[string]struct{}) error {
	if t.Ledger == nil || t.Snapshot == nil {
		return errors.New("it has no ledger or no snapshot")
	}
	for _, s := range []string{t.Name, t.URL} {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%q is not valid UTF-8", s)
		}
	}
	for name, value := range t.Labels {
		switch _, taken := kept[name]; {
		case !model.LegacyValidation.IsValidLabelName(name) || strings.HasPrefix(name, model.ReservedLabelPrefix):
			return fmt.Errorf("label name %q is not valid", name)
		case taken:
			return fmt.Errorf("label name %q is kept for the metrics themselves", name)
		case !utf8.ValidString(value):
			return fmt.Errorf("value %q of label %q is not valid UTF-8", value, name)
		}
	}
	return nil
}

// keptLabels returns the label names that users may not set.
func keptLabels() map[string]struct{} {
	kept := map[string]struct{}{
		labelTarget:         {},
		labelChurn:          {},
		model.JobLabel:      {},
		model.InstanceLabel: {},
		model.BucketLabel:   {},
		model.QuantileLabel: {},
	}
	for _, m := range catalogue {
		if m.Scope == PerTarget {
			for _, name := range m.Labels {
				kept[name] = struct{}{}
			}
		}
	}
	return kept
}

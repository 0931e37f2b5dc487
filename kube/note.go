package kube

import (
	"fmt"
	"strconv"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

// The annotations of a churn's Lease. All but the first two are the note.
const (
	nameAnnotation     = "steadyprobe.io/churn-name"
	workloadAnnotation = "steadyprobe.io/workload" // as object.encode writes it
	uidAnnotation      = "steadyprobe.io/workload-uid"
	baselineAnnotation = "steadyprobe.io/baseline"
	setAnnotation      = "steadyprobe.io/set"
	beforeAnnotation   = "steadyprobe.io/before"
	originalAnnotation = "steadyprobe.io/original"
	deadlineAnnotation = "steadyprobe.io/deadline"
	pausedAnnotation   = "steadyprobe.io/paused"
)

// writeNote replaces the note among annotations, and leaves all others alone.
func writeNote(annotations map[string]string, n churn.Note) {
	for _, name := range []string{baselineAnnotation, setAnnotation, beforeAnnotation, originalAnnotation, deadlineAnnotation, pausedAnnotation} {
		delete(annotations, name)
	}
	if n.Paused {
		annotations[pausedAnnotation] = "true"
	}
	if !n.Held {
		return
	}
	annotations[baselineAnnotation] = strconv.Itoa(n.Baseline)
	annotations[setAnnotation] = strconv.Itoa(n.Set)
	annotations[beforeAnnotation] = strconv.Itoa(n.Before)
	annotations[deadlineAnnotation] = n.Deadline.UTC().Format(time.RFC3339Nano)
	if n.Original != "" {
		annotations[originalAnnotation] = n.Original
	}
}

// readNote reads what writeNote wrote. What somebody has broken by hand is an
// error, because to take it for no note would forget a baseline.
func readNote(annotations map[string]string) (churn.Note, error) {
	var n churn.Note
	var missing []string
	fields := []struct {
		name string
		read func(text string) error
	}{
		{baselineAnnotation, readCount(&n.Baseline)},
		{setAnnotation, readCount(&n.Set)},
		{beforeAnnotation, readCount(&n.Before)},
		{deadlineAnnotation, func(text string) (err error) {
			n.Deadline, err = time.Parse(time.RFC3339Nano, text)
			return err
		}},
	}
	for _, f := range fields {
		text, there := annotations[f.name]
		if !there {
			missing = append(missing, f.name)
			continue
		}
		if err := f.read(text); err != nil {
			return churn.Note{}, fmt.Errorf("annotation %s: %w", f.name, err)
		}
	}
	if n.Held = len(missing) == 0; !n.Held && len(missing) < len(fields) {
		return churn.Note{}, fmt.Errorf("annotation %s is missing", missing[0])
	}
	n.Original = annotations[originalAnnotation]
	if text, there := annotations[pausedAnnotation]; there {
		paused, err := strconv.ParseBool(text)
		if err != nil {
			return churn.Note{}, fmt.Errorf("annotation %s: %w", pausedAnnotation, err)
		}
		n.Paused = paused
	}
	return n, nil
}

// readCount returns a function that reads a number of replicas.
func readCount(to *int) func(string) error {
	return func(text string) (err error) {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return err
		}
		*to = int(n)
		return nil
	}
}

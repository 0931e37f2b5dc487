// Package report turns the figures of a one-shot run into text and JSON.
//
// [New] makes one [Result] of what a target's run left behind, [WriteText] and
// [WriteJSON] write results, [Live] writes the progress of a run to a
// terminal. The package measures nothing, sleeps nowhere and knows neither
// flags nor Prometheus.
//
// Corrected and uncorrected figures stand side by side: latency counts from
// the intended time, so that it holds the wait behind a stalled door (wrk2's
// "recorded latency"), service time counts from the begun time, as a
// closed-loop tool would report it (wrk2's "uncorrected latency").
package report

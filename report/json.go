package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes {"results": [...]} with one object for each result, indented
// and ended by a newline. [Result] documents the fields. It returns the error
// of w.
func WriteJSON(w io.Writer, results []Result) error {
	document := struct {
		Results []Result `json:"results"`
	}{append([]Result{}, results...)}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(document); err != nil {
		return fmt.Errorf("writing the JSON report: %w", err)
	}
	return nil
}

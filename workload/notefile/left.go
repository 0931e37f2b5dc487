package notefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/steadyprobe/steadyprobe/churn"
)

// Found is a note that is in a folder.
type Found struct {
	Path  string
	Churn string     // empty where the file does not say it
	Note  churn.Note // zero where Err is not nil
	Err   error      // why the file is no note
}

// All returns every note in the folder, in the order of their paths; none where
// there is no folder. It does not ask who leads, and changes nothing: it tells
// of notes that are left by churns which nobody runs any more.
func All(folder string) ([]Found, error) {
	paths, err := filepath.Glob(filepath.Join(escaped(folder), "churn-*.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for notes in %q: %w", folder, err)
	}
	slices.Sort(paths)
	all := make([]Found, len(paths))
	for i, path := range paths {
		all[i] = found(path)
	}
	return all, nil
}

// escaped returns a folder whose name is no pattern.
func escaped(folder string) string {
	var b []byte
	for i := range len(folder) {
		if c := folder[i]; c == '*' || c == '?' || c == '[' {
			b = append(b, '[', c, ']')
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

func found(path string) Found {
	f := Found{Path: path}
	text, err := readFile(path)
	if err != nil {
		f.Err = err
		return f
	}
	var of struct {
		Churn string `json:"churn"`
	}
	if json.Unmarshal(text, &of) == nil {
		f.Churn = of.Churn
	}
	if f.Note, f.Err = decode(f.Churn, text); f.Err == nil && filepath.Base(path) != fileName(f.Churn)+".json" {
		f.Note, f.Err = churn.Note{}, errors.New("the file has the name of another churn's")
	}
	return f
}

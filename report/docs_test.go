package report

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestEveryFieldIsDocumented looks for a table row of each field of the JSON
// report in docs/REPORT.md, and for rows of fields that there are not.
func TestEveryFieldIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/REPORT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, document, found := strings.Cut(string(text), "\n## The JSON\n")
	if !found {
		t.Fatal("docs/REPORT.md has no section on JSON")
	}
	want := map[string]bool{}
	paths(reflect.TypeFor[Result](), "", want)
	paths(reflect.TypeFor[Summary](), "", want)
	for line := range strings.Lines(document) {
		path, ok := strings.CutPrefix(line, "| `")
		if !ok {
			continue
		}
		path, _, _ = strings.Cut(path, "`")
		if !want[path] {
			t.Errorf("docs/REPORT.md has a row for %s, which there is not, or two", path)
		}
		delete(want, path)
	}
	for path := range want {
		t.Errorf("docs/REPORT.md has no row for %s", path)
	}
}

// paths adds the names of all fields that hold no further ones, but for
// distributions, which are alike.
func paths(structure reflect.Type, prefix string, all map[string]bool) {
	for i := range structure.NumField() {
		f := structure.Field(i)
		name, exported := f.Tag.Lookup("json")
		if !exported {
			continue
		}
		switch {
		case f.Type == reflect.TypeFor[Summary]():
			all[prefix+name] = true
		case f.Type.Kind() == reflect.Struct:
			paths(f.Type, prefix+name+".", all)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			paths(f.Type.Elem(), prefix+name+"[].", all)
		default:
			all[prefix+name] = true
		}
	}
}

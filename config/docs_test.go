package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestEveryFieldIsDocumented looks for a table row of each field of the schema
// in docs/CONFIGURATION.md.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/CONFIGURATION.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	check := func(path string) {
		rows++
		if !strings.Contains(string(text), "\n| `"+path+"` |") {
			t.Errorf("docs/CONFIGURATION.md has no row for %s", path)
		}
	}
	for _, name := range fieldsOf(reflect.TypeFor[document]()) {
		check(name)
	}
	leaves(reflect.TypeFor[Limits](), "limits", check)
	leaves(reflect.TypeFor[Metrics](), "metrics", check)
	leaves(reflect.TypeFor[Target](), "", check)
	leaves(reflect.TypeFor[Churn](), "churns[]", check)
	leaves(reflect.TypeFor[ChurnStep](), "churns[].steps[]", check)
	if got := strings.Count(string(text), "\n| `"); got != rows+3 { // http.basic_auth, http.authorization and embedded, which has no field, have rows of their own
		t.Errorf("docs/CONFIGURATION.md has %d rows, the schema %d fields", got, rows)
	}
}

// leaves calls found with the path of each field that holds no further ones.
func leaves(structure reflect.Type, path string, found func(path string)) {
	for i, name := range fieldsOf(structure) {
		field := structure.Field(i).Type
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		if _, text := reflect.New(field).Interface().(textual); field.Kind() == reflect.Struct && !text {
			leaves(field, join(path, name), found)
		} else {
			found(join(path, name))
		}
	}
}

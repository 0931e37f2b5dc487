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
	leaves(reflect.TypeFor[Discovery](), "discovery[]", check)
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
		if _, text := reflect.New(field).Interface().(textual); field.Kind() == reflect.Struct && !text && field != reflect.TypeFor[Settings]() {
			leaves(field, join(path, name), found)
		} else {
			found(join(path, name))
		}
	}
}

// TestEverySuiteIsDocumented looks for a table row of each cipher suite that
// may be written, and of no other.
func TestEverySuiteIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/CONFIGURATION.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range mayChoose() {
		row := "\n| " + openSSLName(suite.ID) + " | " + suite.Name
		if suite.Insecure {
			row += " (not secure)"
		}
		if !strings.Contains(string(text), row+" |\n") {
			t.Errorf("docs/CONFIGURATION.md has no row%s", row)
		}
	}
	equal(t, "rows of suites", strings.Count(string(text), " | TLS_"), len(mayChoose()))
	for _, group := range allGroups() {
		if !strings.Contains(string(text), "`"+group.names[0]+"`") {
			t.Errorf("docs/CONFIGURATION.md does not name the group %s", group.names[0])
		}
	}
}

// TestExamplesOfTheDocsLoad loads each example that is a whole file.
func TestExamplesOfTheDocsLoad(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/CONFIGURATION.md")
	if err != nil {
		t.Fatal(err)
	}
	loaded := 0
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		example, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(example, "targets:") {
			continue
		}
		loaded++
		if _, warnings, err := Parse([]byte(example), "example.yml"); err != nil || len(warnings) > 0 {
			t.Errorf("%s\nerror %v, warnings %v; want none", example, err, warnings)
		}
	}
	equal(t, "examples", loaded, 2)
}

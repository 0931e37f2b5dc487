package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Bare TCP is what a door is spoken to by whose URL begins with tcp or tls: a
// connection for each tick, with what is sent and expected on it.

// bare removes what only HTTP can use.
func (t *Target) bare() {
	t.HTTP = HTTP{Headers: Headers{}}
	t.Connection.Reuse, t.Connection.Warm, t.Connection.MaxAge, t.Connection.MaxRequests = false, false, 0, 0
	t.Expect = Expect{MaxBody: t.Expect.MaxBody, Headers: HeaderPatterns{}}
	t.Backend = builtInTarget().Backend
}

// httpOnly returns the paths of the settings that only HTTP can use.
func httpOnly() []string {
	var paths []string
	for _, block := range []struct {
		name   string
		fields []string
	}{
		{"http", fieldsOf(reflect.TypeFor[HTTP]())},
		{"expect", slices.DeleteFunc(slices.Clone(fieldsOf(reflect.TypeFor[Expect]())), func(name string) bool { return name == "max_body" })},
		{"connection", []string{"reuse", "warm", "max_age", "max_requests"}},
		{"backend", fieldsOf(reflect.TypeFor[Backend]())},
	} {
		for _, field := range block.fields {
			paths = append(paths, join(block.name, field))
		}
	}
	return paths
}

// settingAt returns the field of a target that has this path, and a value that
// is not valid where nothing is there which would hold it.
func settingAt(t *Target, path string) reflect.Value {
	v := reflect.ValueOf(t).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Pointer {
			if v = v.Elem(); !v.IsValid() {
				return v
			}
		}
		v = v.Field(slices.Index(fieldsOf(v.Type()), name))
	}
	return v
}

// overrideBare removes what the target did not write itself and cannot use:
// the defaults are for targets of both kinds.
func (c *checker) overrideBare(t *Target) {
	switch {
	case t.URL.IsZero():
	case t.URL.HTTP():
		for _, name := range fieldsOf(reflect.TypeFor[TCP]()) {
			if path := join("tcp", name); !c.written(path) {
				settingAt(t, path).SetZero()
			}
		}
	default:
		silent := t.clone()
		silent.bare()
		for _, path := range httpOnly() {
			if !c.written(path) {
				settingAt(t, path).Set(settingAt(&silent, path))
			}
		}
	}
}

// bareTogether refuses settings of HTTP for a door that is not spoken to by it,
// and the other way round.
func (c *checker) bareTogether(t *Target) {
	if t.URL.IsZero() {
		return
	}
	if t.URL.HTTP() {
		for _, name := range fieldsOf(reflect.TypeFor[TCP]()) {
			if path := join("tcp", name); !settingAt(t, path).IsZero() && c.good(path) {
				c.fail(path, "is for a door whose URL begins with tcp:// or tls://, and this one is spoken to by HTTP; write http.body or expect.body, or remove it")
			}
		}
		return
	}
	silent := t.clone()
	silent.bare()
	for _, path := range httpOnly() {
		if !reflect.DeepEqual(settingAt(t, path).Interface(), settingAt(&silent, path).Interface()) && c.good(path) {
			c.fail(path, "%s", notBare(path, t.URL.Scheme()))
		}
	}
}

// notBare says why a setting cannot be for a door with this scheme.
func notBare(path, scheme string) string {
	block, _, _ := strings.Cut(path, ".")
	switch block {
	case "http":
		return fmt.Sprintf("is for requests of HTTP, and the URL begins with %s://; remove it, or write http:// or https://", scheme)
	case "connection":
		return fmt.Sprintf("is for connections that are kept, and a door whose URL begins with %s:// is given a new one for each tick in this version; remove it", scheme)
	case "backend":
		return fmt.Sprintf("is for answers of HTTP, and the URL begins with %s://; remove it, or write http:// or https://", scheme)
	}
	return fmt.Sprintf("is for answers of HTTP, and the URL begins with %s://; write tcp.expect, or remove it", scheme)
}

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"
)

// The library's own strict mode stops at the first wrong key of a mapping,
// names no field and lets a scalar of any kind into a text. Its tree has what
// is needed to say more, so the tree is decoded here.

// decoder fills structures from a YAML tree and reports all that does not fit.
// Fields that the tree does not name keep their values.
type decoder struct {
	report *report
	block  string // such as targets[0]: what the paths are relative to
	marks  *marks
}

// mostSettings is far more than thousands of targets have. The depth of the
// tree needs no bound: the schema has one.
const mostSettings = 1_000_000

// marks say where each setting came from.
type marks struct {
	at  map[string]place // by path
	bad map[string]bool  // paths that could not be decoded
}

type place struct {
	line  int
	block string
}

func newMarks() *marks { return &marks{at: map[string]place{}, bad: map[string]bool{}} }

// textual is a type that parses its own text. Its errors begin with what is
// wrong and never quote a secret.
type textual interface{ parseText(text string) error }

// fail reports what is wrong with the setting at path.
func (d *decoder) fail(line int, path, format string, args ...any) {
	d.marks.bad[path] = true
	d.report.problem(line, join(d.block, path), fmt.Sprintf(format, args...))
}

// decode fills v from n. The line is that of the key, which for text in
// several lines is a better place than that of the value.
func (d *decoder) decode(n *yaml.Node, line int, path string, v reflect.Value) {
	n = follow(n)
	d.marks.at[path] = place{line: line, block: d.block}
	delete(d.marks.bad, path) // what was wrong in the defaults is replaced
	if !d.spend(1, line, path) {
		return
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		if !mayBeEmpty(v) {
			d.fail(line, path, "has no value; write one or remove the line")
		}
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *yaml.Node:
		*p = *n
	case *Settings:
		d.settings(n, line, path, p)
	case *Header:
		d.header(n, line, path, v)
	case textual:
		if text, ok := d.text(n, line, path, "a single value"); ok {
			if err := p.parseText(text); err != nil {
				d.fail(line, path, "%s", err)
			}
		}
	case *time.Duration:
		d.duration(n, line, path, p)
	default:
		d.kind(n, line, path, v)
	}
}

// spend counts settings, those that a target inherits included, and reports
// whether there may be as many. It keeps a small file from costing a lot.
func (d *decoder) spend(settings, line int, path string) bool {
	before := d.report.nodes
	d.report.nodes += settings
	if before < d.report.most && d.report.nodes >= d.report.most {
		d.fail(line, path, "aliases or defaults make the file too large: more than %d settings in all targets together; write fewer", d.report.most)
	}
	return d.report.nodes < d.report.most
}

// mayBeEmpty reports whether nothing means a structure or mapping of which
// nothing is written.
func mayBeEmpty(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer {
		v = reflect.New(v.Type().Elem()).Elem()
	}
	_, text := v.Addr().Interface().(textual)
	return !text && (v.Kind() == reflect.Struct || v.Kind() == reflect.Map)
}

func (d *decoder) kind(n *yaml.Node, line int, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, line, path, v)
	case reflect.Map:
		d.mapping(n, line, path, v)
	case reflect.Slice:
		d.list(n, line, path, v)
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.decode(n, line, path, v.Elem())
	default:
		d.scalar(n, line, path, v)
	}
}

func (d *decoder) structure(n *yaml.Node, line int, path string, v reflect.Value) {
	fields := fieldsOf(v.Type())
	for _, p := range d.pairs(n, line, path) {
		i := slices.Index(fields, p.key)
		if i < 0 {
			d.fail(p.line, join(path, shown(p.key)), "unknown field; %s", suggestion(p.key, fields))
			continue
		}
		d.decode(p.value, p.line, join(path, p.key), v.Field(i))
	}
}

func (d *decoder) mapping(n *yaml.Node, line int, path string, v reflect.Value) {
	pairs := d.pairs(n, line, path)
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	switch v.Interface().(type) {
	case Headers, HeaderPatterns:
		d.replaceFields(v, pairs, path)
	}
	for _, p := range pairs {
		element := reflect.New(v.Type().Elem()).Elem()
		d.decode(p.value, p.line, join(path, shown(p.key)), element)
		v.SetMapIndex(reflect.ValueOf(p.key), element)
	}
}

// replaceFields removes the header fields of the defaults that the target
// writes in another case.
func (d *decoder) replaceFields(v reflect.Value, pairs []pair, path string) {
	written := map[string]string{} // by name in lower case
	for _, p := range pairs {
		written[strings.ToLower(p.key)] = p.key
	}
	for _, key := range v.MapKeys() {
		if name, here := written[strings.ToLower(key.String())]; here && name != key.String() {
			v.SetMapIndex(key, reflect.Value{})
			delete(d.marks.at, join(path, shown(key.String())))
		}
	}
}

func (d *decoder) list(n *yaml.Node, line int, path string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.fail(line, path, "is %s where a list belongs; write [ITEM, …]", described(n))
		return
	}
	items := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.decode(item, item.Line, fmt.Sprintf("%s[%d]", path, i), items.Index(i))
	}
	v.Set(items)
}

// header accepts one value, a list of values, or values, secrets and files.
func (d *decoder) header(n *yaml.Node, line int, path string, v reflect.Value) {
	switch n.Kind {
	case yaml.MappingNode:
		d.structure(n, line, path, v)
	case yaml.SequenceNode:
		d.list(n, line, path, v.FieldByName("Values"))
	default:
		if text, ok := d.text(n, line, path, "a single value"); ok {
			v.Set(reflect.ValueOf(Header{Values: []Secret{NewSecret(text)}}))
		}
	}
}

func (d *decoder) duration(n *yaml.Node, line int, path string, p *time.Duration) {
	text, ok := d.text(n, line, path, "a duration such as 5s")
	if !ok {
		return
	}
	parsed, err := parseDuration(text)
	if err != nil {
		d.fail(line, path, "%s", err)
		return
	}
	*p = parsed
}

func (d *decoder) scalar(n *yaml.Node, line int, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if text, ok := d.text(n, line, path, "a single value"); ok {
			v.SetString(text)
		}
	case reflect.Bool:
		text, ok := d.text(n, line, path, "true or false")
		if ok && (n.ShortTag() != "!!bool" || n.Decode(v.Addr().Interface()) != nil) {
			d.fail(line, path, "%s is neither true nor false; write one of them", quote(text))
		}
	case reflect.Int, reflect.Uint64:
		d.integer(n, line, path, v)
	case reflect.Float64:
		text, ok := d.text(n, line, path, "a number")
		f, err := strconv.ParseFloat(text, 64)
		if ok && (err != nil || !finite(f)) {
			d.fail(line, path, "%s is not a number; write one such as 0.999", quote(text))
		} else if ok {
			v.SetFloat(f)
		}
	default:
		panic("config: no decoding for " + v.Type().String())
	}
}

func (d *decoder) integer(n *yaml.Node, line int, path string, v reflect.Value) {
	text, ok := d.text(n, line, path, "a whole number")
	if !ok {
		return
	}
	i, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err == nil && n.ShortTag() == "!!str":
		d.fail(line, path, "%s is text; write the number without quotes", quote(text))
	case err != nil:
		d.fail(line, path, "%s is not a whole number; write digits only, at most 2147483647", quote(text))
	case v.CanInt():
		v.SetInt(i)
	case i < 0:
		d.fail(line, path, "%s is negative; write 0 or more", quote(text))
	default:
		v.SetUint(uint64(i))
	}
}

// text returns the text of a scalar, as it is written.
func (d *decoder) text(n *yaml.Node, line int, path, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		d.fail(line, path, "is %s; write %s", described(n), want)
		return "", false
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		return n.Value, true
	}
	d.fail(line, path, "has a tag that is not supported; write the plain value")
	return "", false
}

// targetFields returns the names of fieldsOf for all structures of a target.
// Reading tags anew for each target took half of the time that loading thousands
// of them does.
var targetFields = sync.OnceValue(func() map[reflect.Type][]string {
	all := map[reflect.Type][]string{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if _, known := all[t]; known || t.Kind() != reflect.Struct {
			return
		}
		all[t] = readFields(t)
		for i := range all[t] {
			walk(t.Field(i).Type)
		}
	}
	walk(reflect.TypeFor[Target]())
	return all
})

// fieldsOf returns the YAML names of a structure's exported fields, which come
// first in each. The slice must not be changed.
func fieldsOf(t reflect.Type) []string {
	if names, known := targetFields()[t]; known {
		return names
	}
	return readFields(t)
}

func readFields(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			names = append(names, name)
		}
	}
	return names
}

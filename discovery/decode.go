package discovery

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/steadyprobe/steadyprobe/config"
)

// A structure of Prometheus says itself how it is read from YAML, and the
// library's strict mode does not reach into it from a tree, nor does it know
// the paths of fields. So the tree is first held against the structure's fields.

// item is one entry of a list of settings.
type item struct {
	settings config.Settings
	node     *yaml.Node
	path     string // below the settings, such as [0]
}

// items returns the entries of a list, none where it is not written.
func items(s config.Settings) []item {
	if !s.Written() {
		return nil
	}
	all := make([]item, len(s.Node().Content))
	for i, n := range s.Node().Content {
		all[i] = item{settings: s, node: n, path: fmt.Sprintf("[%d]", i)}
	}
	return all
}

func (i item) problem(line int, path, format string, args ...any) error {
	return i.settings.Problem(line, path, fmt.Sprintf(format, args...))
}

// at returns the line of a field of the item, or that of the item.
func (i item) at(field string) (line int, path string) {
	if value := child(i.node, field); value != nil {
		return value.Line, i.path + "." + field
	}
	return i.node.Line, i.path
}

// child returns the value of a key of a mapping, nil where there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	for k := 0; k+1 < len(n.Content) && n.Kind == yaml.MappingNode; k += 2 {
		if n.Content[k].Value == key {
			return n.Content[k+1]
		}
	}
	return nil
}

// identity returns what the item says: the same text for two that say the same.
// It may hold secrets.
func (i item) identity() string {
	text, err := yaml.Marshal(i.node)
	if err != nil { // plain nodes, written to memory, cannot fail
		panic("discovery: encoding: " + err.Error())
	}
	return i.settings.Folder() + "\n" + string(text)
}

// decode fills the structure that into points to, and returns what does not fit
// into it.
func (i item) decode(into any) []error {
	if problems := i.unknown(i.node, reflect.TypeOf(into).Elem(), i.path); len(problems) > 0 {
		return problems
	}
	err := i.node.Decode(into)
	if err == nil {
		return nil
	}
	types, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return []error{i.problem(i.node.Line, i.path, "%s; see what Prometheus expects there", spoken(err))}
	}
	var problems []error
	for _, text := range types.Errors {
		line := i.node.Line
		if found := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); found != nil {
			line, _ = strconv.Atoi(found[1])
			text = strings.TrimPrefix(text, found[0])
		}
		problems = append(problems, i.problem(line, pathAt(i.node, line, text, i.path), "%s; see what Prometheus expects there", text))
	}
	return problems
}

// spoken returns the text of an error without what may be secret.
func spoken(err error) string {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return "a URL in it is not valid"
	}
	return err.Error()
}

// unknown returns the keys of n that a value of type t has no fields for.
func (i item) unknown(n *yaml.Node, t reflect.Type, path string) (problems []error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		for k, each := range n.Content {
			problems = append(problems, i.unknown(each, t.Elem(), fmt.Sprintf("%s[%d]", path, k))...)
		}
	case t.Kind() == reflect.Map && n.Kind == yaml.MappingNode:
		for k := 0; k+1 < len(n.Content); k += 2 {
			problems = append(problems, i.unknown(n.Content[k+1], t.Elem(), path+"."+n.Content[k].Value)...)
		}
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		fields, rest := fieldsOf(t)
		for k := 0; k+1 < len(n.Content); k += 2 {
			key, value := n.Content[k], n.Content[k+1]
			field, known := fields.of(key.Value)
			switch {
			case known:
				problems = append(problems, i.unknown(value, field, path+"."+key.Value)...)
			case rest != nil:
				problems = append(problems, i.unknown(value, rest, path+"."+key.Value)...)
			default:
				problems = append(problems, i.settings.Unknown(key.Line, path, key.Value, fields.names))
			}
		}
	}
	return problems
}

// fields are the fields of a structure by the names that YAML gives them.
type fields struct {
	names []string
	types []reflect.Type
}

func (f *fields) of(name string) (reflect.Type, bool) {
	for i := range f.names {
		if f.names[i] == name {
			return f.types[i], true
		}
	}
	return nil, false
}

// fieldsOf returns the fields of a structure, those that are inline included,
// and the type of whatever else it takes; nil: nothing.
func fieldsOf(t reflect.Type) (all fields, rest reflect.Type) {
	for k := range t.NumField() {
		f := t.Field(k)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case strings.Contains(options, "inline") && f.Type.Kind() == reflect.Map:
			rest = f.Type.Elem()
		case strings.Contains(options, "inline"):
			inner, more := fieldsOf(f.Type)
			all.names, all.types = append(all.names, inner.names...), append(all.types, inner.types...)
			if more != nil {
				rest = more
			}
		default:
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			all.names, all.types = append(all.names, name), append(all.types, f.Type)
		}
	}
	return all, rest
}

// pathAt returns the path of the value in this line that a text quotes, or of
// what holds it.
func pathAt(n *yaml.Node, line int, text, path string) string {
	for k, each := range n.Content {
		var at string
		switch {
		case n.Kind == yaml.SequenceNode:
			at = fmt.Sprintf("%s[%d]", path, k)
		case k%2 == 0:
			continue
		default:
			at = path + "." + n.Content[k-1].Value
		}
		const most = 7 // bytes of a value that the library quotes at least
		if inner := pathAt(each, line, text, at); inner != at {
			return inner
		}
		if each.Line == line && len(each.Content) == 0 && strings.Contains(text, "`"+each.Value[:min(len(each.Value), most)]) {
			return at
		}
	}
	return path
}

package config

import (
	"bytes"
	"encoding"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Masked returns the configuration as YAML, with all defaults filled in and
// every secret as "<secret>": header values, credentials, bodies, a URL's user
// info and its query, arguments of programs. It can be parsed again.
func (c *Config) Masked() []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	// A tree of plain nodes, written to memory, cannot fail.
	if err := e.Encode(encode(reflect.ValueOf(*c))); err != nil {
		panic("config: encoding: " + err.Error())
	}
	return b.Bytes()
}

// encode is the inverse of decoder.decode. It leaves out what is empty.
func encode(v reflect.Value) *yaml.Node {
	switch x := v.Interface().(type) {
	case time.Duration:
		return plain("!!str", durationText(x))
	case Rate:
		return plain("", x.String())
	case TotalRate:
		return plain("", x.String())
	case Size:
		return plain("!!str", x.String())
	case TLSVersion:
		return plain("!!str", x.String())
	case CipherSuite:
		return plain("!!str", x.String())
	case Group:
		return plain("!!str", x.String())
	case Argv:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, text := range x.shown() {
			n.Content = append(n.Content, quoted(text))
		}
		return n
	case Settings:
		return x.masked()
	case encoding.TextMarshaler: // Secret and URL, which mask themselves, and Pattern
		text, _ := x.MarshalText()
		return quoted(string(text))
	}
	switch v.Kind() {
	case reflect.Struct:
		return encodeStruct(v)
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(keysOf(v))) {
			n.Content = append(n.Content, quoted(key), encode(v.MapIndex(reflect.ValueOf(key))))
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, encode(v.Index(i)))
		}
		return n
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.String:
		return quoted(v.String())
	case reflect.Bool:
		return plain("", strconv.FormatBool(v.Bool()))
	case reflect.Int:
		return plain("", strconv.FormatInt(v.Int(), 10))
	case reflect.Uint64:
		return plain("", strconv.FormatUint(v.Uint(), 10))
	case reflect.Float64:
		return plain("", strconv.FormatFloat(v.Float(), 'f', -1, 64))
	}
	panic("config: no encoding for " + v.Type().String())
}

func keysOf(v reflect.Value) map[string]struct{} {
	keys := map[string]struct{}{}
	for _, key := range v.MapKeys() {
		keys[key.String()] = struct{}{}
	}
	return keys
}

func encodeStruct(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if value := v.Field(i); !omitted(value, option == "omitempty") {
			// A pointer that is set says something by that alone.
			if e := encode(value); e.Kind != yaml.MappingNode || len(e.Content) > 0 || value.Kind() == reflect.Pointer {
				n.Content = append(n.Content, plain("!!str", name), e)
			}
		}
	}
	return n
}

// omitted reports whether the value says nothing. A number that is 0 says
// something, unless its field is marked.
func omitted(v reflect.Value, zero bool) bool {
	switch x := v.Interface().(type) {
	case TLSVersion, Secret, URL, Pattern:
		return v.IsZero()
	case encoding.TextMarshaler, time.Duration:
		return zero && reflect.ValueOf(x).IsZero()
	}
	switch v.Kind() {
	case reflect.String, reflect.Map, reflect.Slice:
		return v.Len() == 0
	case reflect.Pointer:
		return v.IsNil()
	}
	return zero && v.IsZero()
}

func plain(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

// quoted returns text so that nothing in it means anything to YAML.
func quoted(text string) *yaml.Node {
	n := plain("!!str", text)
	if shown(text) != text {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

package config

import (
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// pair is one key of a mapping with its value.
type pair struct {
	key   string
	line  int
	value *yaml.Node
}

// pairs returns what a mapping holds, without the keys that are wrong.
func (d *decoder) pairs(n *yaml.Node, line int, path string) []pair {
	if n.Kind != yaml.MappingNode {
		d.fail(line, path, "is %s where a mapping belongs; write KEY: VALUE lines below it", described(n))
		return nil
	}
	first := map[string]int{}
	var pairs []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := follow(n.Content[i])
		at := n.Content[i].Line
		before, twice := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.fail(at, path, "has a key that is %s; write plain names as keys", described(key))
		case key.ShortTag() == "!!merge":
			d.fail(at, path, "merge keys (<<) are not supported; put common settings into defaults")
		case twice:
			d.fail(at, join(path, shown(key.Value)), "is there twice, first in line %d; remove one", before)
		default:
			first[key.Value] = at
			pairs = append(pairs, pair{key: key.Value, line: at, value: n.Content[i+1]})
		}
	}
	return pairs
}

// follow returns what an alias stands for.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode { // never of another alias
		return n.Alias
	}
	return n
}

func described(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

// join returns the path of a field in a block.
func join(block, field string) string {
	switch {
	case block == "" || field == "":
		return block + field
	case field[0] == '[':
		return block + field
	}
	return block + "." + field
}

// shown returns a key as a path has it. A key that is no name, in whatever
// language, is cut at its first odd character, because a value may have slipped
// into it.
func shown(key string) string {
	const most = 40
	runes := 0
	for i, r := range key {
		odd := !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' && r != '.'
		if odd || runes == most {
			return strconv.Quote(key[:i]) + "…"
		}
		runes++
	}
	if key == "" {
		return `""`
	}
	return key
}

// suggestion says which field to write instead of an unknown one.
func suggestion(key string, fields []string) string {
	if len(fields) == 0 {
		return "remove it"
	}
	best, distance := "", 3
	for _, f := range fields {
		if n := edits(key, f); n < distance {
			best, distance = f, n
		}
	}
	if best != "" {
		return "write " + best
	}
	return "write one of " + strings.Join(fields, ", ")
}

// edits returns the distance of a and b, or 3 where their lengths differ by as
// much.
func edits(a, b string) int {
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return 3
	}
	return distance(a, b)
}

// distance returns how many characters must be added, removed or replaced to
// turn a into b (Levenshtein 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

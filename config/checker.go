package config

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// checker reports what is wrong with the settings of one block, at the lines
// that they came from.
type checker struct {
	report *report
	marks  *marks
	block  string
}

func (m *marks) clone() *marks { return &marks{at: maps.Clone(m.at), bad: maps.Clone(m.bad)} }

// place returns where the setting at path was written, or else what holds it.
func (c *checker) place(path string) place {
	for {
		if p, written := c.marks.at[path]; written {
			return p
		}
		if path == "" {
			return place{block: c.block}
		}
		path = parent(path)
	}
}

func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// written reports whether the setting at path was written in this block,
// not in the defaults.
func (c *checker) written(path string) bool {
	p, written := c.marks.at[path]
	return written && p.block == c.block
}

// inherited reports whether the setting at path was written in the defaults.
func (c *checker) inherited(path string) bool {
	p, written := c.marks.at[path]
	return written && p.block != c.block
}

// good reports whether none of the settings has been reported already, so that
// checking them against others makes sense.
func (c *checker) good(paths ...string) bool {
	for _, path := range paths {
		for ; ; path = parent(path) {
			if c.marks.bad[path] {
				return false
			}
			if path == "" {
				break
			}
		}
	}
	return true
}

// goodList is the same as good for a list and each of its items.
func (c *checker) goodList(path string, items int) bool {
	for i := range items {
		if !c.good(path + "[" + strconv.Itoa(i) + "]") {
			return false
		}
	}
	return c.good(path)
}

func (c *checker) fail(path, format string, args ...any) {
	p := c.place(path)
	c.marks.bad[path] = true
	c.report.problem(p.line, join(p.block, path), fmt.Sprintf(format, args...))
}

func (c *checker) warn(path, format string, args ...any) {
	p := c.place(path)
	c.report.warn(p.line, join(p.block, path), fmt.Sprintf(format, args...))
}

// failed reports err, if it is one, for the setting at path.
func (c *checker) failed(path string, err error) {
	if err != nil {
		c.fail(path, "%s", err)
	}
}

// later refuses a value whose work is not built yet.
func (c *checker) later(path, value, supported string) {
	switch {
	case value == supported:
	case supported == "":
		c.fail(path, "is not yet supported in this version; remove it")
	default:
		c.fail(path, "%s is not yet supported in this version; write %q or remove the line", quote(value), supported)
	}
}

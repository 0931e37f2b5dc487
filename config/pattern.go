package config

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Pattern is a regular expression in the syntax of RE2, which is found anywhere
// in what it is matched with unless it says otherwise. The zero Pattern is
// none. It may be used concurrently.
type Pattern struct{ expression *regexp.Regexp }

// Regexp returns the compiled expression, or nil where there is none.
func (p Pattern) Regexp() *regexp.Regexp { return p.expression }

// IsZero reports whether there is none.
func (p Pattern) IsZero() bool { return p.expression == nil }

// String returns the expression as it was written.
func (p Pattern) String() string {
	if p.expression == nil {
		return ""
	}
	return p.expression.String()
}

// MarshalText returns the same as String, for JSON, YAML and structured logs.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p *Pattern) parseText(text string) error {
	*p = Pattern{}
	if text == "" {
		return nil
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return fmt.Errorf("is not a regular expression: %s; write one in the syntax of RE2, such as ^ok, with \\ in front of signs that mean themselves", patternReason(err))
	}
	p.expression = expression
	return nil
}

// patternReason says what is wrong, with the part of the expression that is.
func patternReason(err error) string {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return "it cannot be parsed"
	}
	return e.Code.String() + " " + quote(e.Expr)
}

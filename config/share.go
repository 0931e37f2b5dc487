package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Share is a part of a whole, written in per cent: above 0 % and up to 100 %.
// The zero Share is none.
type Share struct{ percent float64 }

// Ratio returns the share as a number from 0 to 1.
func (s Share) Ratio() float64 { return s.percent / 100 }

// IsZero reports whether there is none.
func (s Share) IsZero() bool { return s.percent == 0 }

func (s *Share) parseText(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil || !finite(value):
		return fmt.Errorf("%s is not a share; write one in per cent, such as 5%%", quote(text))
	case !percent:
		return fmt.Errorf("%s has no %%; write a share in per cent, such as 5%%", quote(text))
	case value <= 0 || value > 100:
		return fmt.Errorf("%s is out of range; write a share above 0%% and up to 100%%", quote(text))
	}
	s.percent = value
	return nil
}

// mustShare is for the literals of the defaults.
func mustShare(text string) (s Share) {
	if err := s.parseText(text); err != nil {
		panic("config: built-in share: " + err.Error())
	}
	return s
}

// String returns the share in per cent.
func (s Share) String() string { return strconv.FormatFloat(s.percent, 'f', -1, 64) + "%" }

// MarshalText returns the same as String.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

package config

import (
	"fmt"
	"math/big"
	"strings"
)

// Bounds of a rate and of its decimal text. With them the schedule's 128-bit
// arithmetic stays exact for far longer than a process lives.
const (
	leastRate     = "0.001"
	mostRate      = "1000000"
	mostTotalRate = "1000000000"
	rateDecimals  = 9
)

// closedLoop is the text of the rate that is none.
const closedLoop = "max"

// Rate is a number of requests per second, kept as the exact fraction of its
// decimal text, or "max": a closed loop, in which a request is due whenever a
// connection is free. The zero Rate is 0. It is a value and may be used
// concurrently.
type Rate struct {
	text string
	rat  *big.Rat
}

// ParseRate returns the rate that a plain decimal number says, from 0.001 to
// 1000000 with at most 9 decimals, or that of a closed loop for "max". Whether
// a closed loop is allowed is for the caller to decide.
func ParseRate(text string) (Rate, error) {
	if text == closedLoop {
		return Rate{text: text}, nil
	}
	if strings.EqualFold(text, closedLoop) {
		return Rate{}, fmt.Errorf("%s is not in lower case; write max for a closed loop", quote(text))
	}
	return parseRate(text, mostRate)
}

func parseRate(text, most string) (Rate, error) {
	if strings.HasPrefix(text, "-") {
		return Rate{}, fmt.Errorf("%s is negative; write requests per second, from %s to %s", quote(text), leastRate, most)
	}
	whole, decimals, point := strings.Cut(text, ".")
	if !digits(whole) || point && !digits(decimals) {
		return Rate{}, fmt.Errorf("%s is not a plain decimal number; write requests per second such as 1000 or 0.2", quote(text))
	}
	if len(decimals) > rateDecimals || len(whole) > len(most)+2 {
		return Rate{}, fmt.Errorf("%s has too many digits; write requests per second from %s to %s with at most %d decimals", quote(text), leastRate, most, rateDecimals)
	}
	r, _ := new(big.Rat).SetString(text)
	least, _ := new(big.Rat).SetString(leastRate)
	top, _ := new(big.Rat).SetString(most)
	if r.Cmp(least) < 0 || r.Cmp(top) > 0 {
		return Rate{}, fmt.Errorf("%s is out of range; write requests per second from %s to %s", quote(text), leastRate, most)
	}
	return Rate{text: text, rat: r}, nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Max reports whether the rate is that of a closed loop, which has no number.
func (r Rate) Max() bool { return r.text == closedLoop }

// Rat returns the exact value, which the caller may change: 0 for a closed
// loop.
func (r Rate) Rat() *big.Rat {
	if r.rat == nil {
		return new(big.Rat)
	}
	return new(big.Rat).Set(r.rat)
}

// Float returns the nearest floating-point number: 0 for a closed loop.
func (r Rate) Float() float64 {
	f, _ := r.Rat().Float64()
	return f
}

// IsZero reports whether the rate is 0, which no parsed rate is.
func (r Rate) IsZero() bool { return r.text == "" }

// Equal reports whether both are the same number, or both a closed loop.
func (r Rate) Equal(o Rate) bool { return r.Max() == o.Max() && r.Rat().Cmp(o.Rat()) == 0 }

// String returns the text as it was written: decimal, or max.
func (r Rate) String() string {
	if r.IsZero() {
		return "0"
	}
	return r.text
}

// MarshalText returns the same as String.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r *Rate) parseText(text string) (err error) {
	*r, err = ParseRate(text)
	return err
}

// TotalRate is a limit on a sum of rates, up to 1000000000 requests per
// second.
type TotalRate struct{ Rate }

func (r *TotalRate) parseText(text string) (err error) {
	r.Rate, err = parseRate(text, mostTotalRate)
	return err
}

// decimalText returns a sum of rates as a plain decimal number.
func decimalText(r *big.Rat) string {
	text := r.FloatString(rateDecimals)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// quote returns text for an error, in one line of bounded length.
func quote(text string) string {
	const most = 40
	runes := []rune(text)
	if len(runes) > most {
		return fmt.Sprintf("%q…", string(runes[:most]))
	}
	return fmt.Sprintf("%q", text)
}

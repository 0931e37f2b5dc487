package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// parseDuration returns a duration in the notation of Prometheus.
func parseDuration(text string) (time.Duration, error) {
	if d, err := model.ParseDuration(text); err == nil {
		return time.Duration(d), nil
	}
	if strings.HasPrefix(text, "-") {
		return 0, fmt.Errorf("%s is negative; write a duration such as 5s, or 0s", quote(text))
	}
	if digits(text) {
		return 0, fmt.Errorf("%s has no unit; write %ss for seconds or %sms for milliseconds", quote(text), clip(text), clip(text))
	}
	if _, err := time.ParseDuration(text); err == nil {
		return 0, fmt.Errorf("%s is a fraction or finer than a millisecond; write whole numbers with units such as 1s500ms", quote(text))
	}
	return 0, fmt.Errorf("%s is not a duration; write one such as 250ms, 5s or 1m30s", quote(text))
}

func clip(text string) string { return text[:min(len(text), 12)] }

// durationText is the inverse of parseDuration.
func durationText(d time.Duration) string { return model.Duration(d).String() }

// Size is a number of bytes.
type Size int64

// Bytes returns the number.
func (s Size) Bytes() int64 { return int64(s) }

// mostSize is 1 TiB: more is a typing error.
const mostSize = Size(1) << 40

func sizeUnit(name string) (Size, bool) {
	switch name {
	case "", "B":
		return 1, true
	case "KiB":
		return 1 << 10, true
	case "MiB":
		return 1 << 20, true
	case "GiB":
		return 1 << 30, true
	case "KB", "kB":
		return 1e3, true
	case "MB":
		return 1e6, true
	case "GB":
		return 1e9, true
	}
	return 0, false
}

// ParseSize returns the size that a text such as 512KiB, 1GB or a number of
// bytes says, up to 1024GiB.
func ParseSize(text string) (s Size, err error) {
	err = s.parseText(text)
	return s, err
}

func (s *Size) parseText(text string) error {
	number := strings.TrimRight(text, "BKMGikb")
	factor, known := sizeUnit(text[len(number):])
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s is out of range; write a size of at most 1024GiB", quote(text))
	case err != nil || !known:
		return fmt.Errorf("%s is not a size; write one such as 512KiB, 1MiB or a number of bytes", quote(text))
	case n < 0:
		return fmt.Errorf("%s is negative; write a size such as 512KiB, 1MiB or a number of bytes", quote(text))
	case n > int64(mostSize/factor):
		return fmt.Errorf("%s is out of range; write a size of at most 1024GiB", quote(text))
	}
	*s = Size(n) * factor
	return nil
}

// String returns the size with the largest binary unit that divides it.
func (s Size) String() string {
	for _, unit := range []string{"GiB", "MiB", "KiB"} {
		if factor, _ := sizeUnit(unit); s != 0 && s%factor == 0 {
			return strconv.FormatInt(int64(s/factor), 10) + unit
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// TLSVersion is a version of TLS as crypto/tls numbers it; 0 is none.
type TLSVersion uint16

func (v *TLSVersion) parseText(text string) error {
	for version := TLSVersion(tls.VersionTLS10); version <= tls.VersionTLS13; version++ {
		if text == version.String() {
			*v = version
			return nil
		}
	}
	return fmt.Errorf("%s is not a version of TLS; write TLS10, TLS11, TLS12 or TLS13", quote(text))
}

// String returns the version as the configuration has it, such as TLS12.
func (v TLSVersion) String() string {
	if v < tls.VersionTLS10 || v > tls.VersionTLS13 {
		return ""
	}
	return fmt.Sprintf("TLS1%d", v-tls.VersionTLS10)
}

// finite reports whether f is a number.
func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

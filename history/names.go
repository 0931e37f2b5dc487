package history

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"
)

// mostName is how many characters of a target's name are in that of its folder.
const mostName = 100

// sumSize is how many bytes of a sum tell names apart that look the same.
const sumSize = 8

// folderName returns the name of a target's folder. It is the target's where
// that is safe with any system: lower case, as some do not tell it from upper
// case, without signs, and none that Windows keeps for itself. Else what is not
// safe is replaced, and behind "~" there is a sum of the name, as no safe name
// has it.
func folderName(name string) string {
	safe := unsafe.ReplaceAllString(strings.ToLower(name), "_")
	safe = strings.Trim(safe[:min(len(safe), mostName)], ".")
	if safe == name && safe != "" && !reserved.MatchString(safe) {
		return safe
	}
	sum := sha256.Sum256([]byte(name))
	return safe + "~" + hex.EncodeToString(sum[:sumSize])
}

var (
	unsafe   = regexp.MustCompile(`[^a-z0-9._-]+`)
	reserved = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$`)
)

// suffix is that of a log.
const suffix = ".hlog"

// fileName returns the name of a day's file.
func fileName(day time.Time) string { return day.Format(time.DateOnly) + suffix }

// dayOf returns the day that a file of a name is of; false: it is no log.
func dayOf(name string) (time.Time, bool) {
	base, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return time.Time{}, false
	}
	day, err := time.Parse(time.DateOnly, base)
	return day, err == nil
}

// midnight returns the beginning of the day (UTC) that at is in.
func midnight(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

package testbed

import (
	"os"
	"strings"
)

// Log is the sum of a door's access log. Requests that were not answered, and
// connections that carried no request, are not in it.
type Log struct {
	Requests    uint64
	Codes       map[int]uint64    // answers by status
	Connections uint64            // connections that carried a request
	Full        uint64            // of them, those with a full TLS handshake
	Resumed     uint64            // of them, those with a resumed TLS handshake
	Versions    map[string]uint64 // TLS connections by version, as "TLSv1.3"
	Notes       map[string]uint64 // requests by what the door was told to log besides
}

// logMark begins every line of an access log, which may share a file with
// other messages.
const logMark = "bed "

// entry is one line of an access log.
type entry struct {
	connection string // unique over the life of the door
	tls        string // version, "-" or empty where there was no TLS
	resumed    bool
	code       int
	note       string
}

// readLog sums up the marked lines of a file, as parse reads them. A line that
// it does not know fails the test, but the last one may be incomplete.
func readLog(t Owner, path string, parse func(string) (entry, bool)) Log {
	t.Helper()
	text := read(t, path)
	log := Log{Codes: map[int]uint64{}, Versions: map[string]uint64{}, Notes: map[string]uint64{}}
	seen := map[string]bool{}
	lines := strings.Split(text, "\n")
	for _, line := range lines[:len(lines)-1] {
		line, marked := strings.CutPrefix(line, logMark)
		if !marked {
			continue
		}
		e, ok := parse(line)
		if !ok {
			t.Fatalf("reading the access log %q: unknown line %q", path, line)
		}
		log.Requests++
		log.Codes[e.code]++
		log.Notes[e.note]++
		if seen[e.connection] {
			continue
		}
		seen[e.connection] = true
		log.Connections++
		if !strings.HasPrefix(e.tls, "TLS") {
			continue
		}
		log.Versions[e.tls]++
		if e.resumed {
			log.Resumed++
		} else {
			log.Full++
		}
	}
	return log
}

// read returns the text of a file.
func read(t Owner, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading a file of the test bed: %v", err)
	}
	return string(text)
}

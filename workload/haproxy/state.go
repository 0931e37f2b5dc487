package haproxy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

// How a server is meant to be, in the words of "set server … state".
const (
	ready = "ready"
	drain = "drain"
	maint = "maint"
)

// The bits of srv_admin_state (management guide, section 9.3, "show servers
// state"). Bit 0x04 says that the file has the server disabled, and stays when
// it is enabled; 0x40 that its name was changed.
const (
	forcedMaint    = 0x01
	inheritedMaint = 0x02 // from the server that it tracks
	forcedDrain    = 0x08
	inheritedDrain = 0x10
	unresolved     = 0x20 // its name has no address
)

// Values of srv_op_state in which a server takes traffic.
const (
	starting = 1 // within its slowstart
	running  = 2 // also without checks
)

// server is what HAProxy says of a server.
type server struct {
	name   string
	admin  int // bits
	op     int
	weight int    // as set last
	backup bool   // gets no traffic as long as others do
	tracks string // the server of this backend whose state it follows; empty: none
}

// state returns how the server is meant to be.
func (s server) state() string {
	switch {
	case s.admin&(forcedMaint|inheritedMaint|unresolved) != 0:
		return maint
	case s.admin&(forcedDrain|inheritedDrain) != 0:
		return drain
	default:
		return ready
	}
}

// forced returns how the server was told to be, by a command or by the file.
func (s server) forced() string {
	switch {
	case s.admin&forcedMaint != 0:
		return maint
	case s.admin&forcedDrain != 0:
		return drain
	default:
		return ready
	}
}

// serves reports whether the server is meant to take traffic.
func (s server) serves() bool { return s.state() == ready && s.weight > 0 && !s.backup }

// up reports whether it does, as far as HAProxy knows.
func (s server) up() bool { return s.serves() && (s.op == running || s.op == starting) }

// process tells one process of HAProxy from another one.
type process struct {
	pid     int
	started int64 // Unix time in seconds
}

// same reports whether two are one. A version that does not say when it was
// started says for how long it has run, in whole seconds. In a container the
// process id alone says nothing.
func (p process) same(o process) bool {
	return p.pid == o.pid && p.started-o.started <= 2 && o.started-p.started <= 2
}

// snapshot is what one process of HAProxy says at one instant.
type snapshot struct {
	process  process
	stopping bool     // a reload has replaced it, or it ends
	servers  []server // of the backend, in its order
}

// count returns how many servers of those are meant to take traffic.
func (s snapshot) count() (n int) {
	for _, one := range s.servers {
		if one.serves() {
			n++
		}
	}
	return n
}

func (s snapshot) server(name string) (server, bool) {
	for _, one := range s.servers {
		if one.name == name {
			return one, true
		}
	}
	return server{}, false
}

// questions returns the commands whose answers parse takes.
func questions(backend string) []string {
	return []string{"show info", "show servers state " + backend, "show stat " + backend + " 4 -1"}
}

// parse takes apart the answers to questions.
func parse(backend string, answers []string, now time.Time) (snapshot, error) {
	s, err := parseInfo(answers[0], now)
	if err != nil {
		return snapshot{}, err
	}
	switch {
	case strings.HasPrefix(answers[1], "Can't find backend"):
		return snapshot{}, wrong(churn.NotFound, fmt.Errorf("there is no backend %q", backend))
	case strings.HasPrefix(answers[1], "Permission denied"):
		return snapshot{}, levelTooLow(answers[1])
	}
	if s.servers, err = parseServers(backend, answers[1]); err != nil {
		return snapshot{}, err
	}
	return s, s.addStat(backend, answers[2])
}

func levelTooLow(answer string) error {
	return wrong(churn.Forbidden, fmt.Errorf("%s; write level admin on its stats socket line", answer))
}

func garbage(command, answer string, err error) error {
	return wrong(churn.Other, fmt.Errorf("reading the answer to %q: %w; got %q", command, err, shortened(answer)))
}

func parseInfo(answer string, now time.Time) (s snapshot, err error) {
	info := map[string]string{}
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(line, ":")
		info[name] = strings.TrimSpace(value)
	}
	if s.process.pid, err = strconv.Atoi(info["Pid"]); err != nil {
		return s, garbage("show info", answer, fmt.Errorf("field Pid: %w", err))
	}
	if s.process.started, err = strconv.ParseInt(info["Start_time_sec"], 10, 64); err != nil {
		up, err := strconv.ParseInt(info["Uptime_sec"], 10, 64)
		if err != nil {
			return s, garbage("show info", answer, fmt.Errorf("field Uptime_sec: %w", err))
		}
		s.process.started = now.Unix() - up
	}
	s.stopping = info["Stopping"] == "1"
	return s, nil
}

// parseServers reads "show servers state": a version, the names of the columns,
// a line for each server.
func parseServers(backend, answer string) ([]server, error) {
	const command = "show servers state"
	lines := strings.Split(answer, "\n")
	if len(lines) < 2 || lines[0] != "1" || !strings.HasPrefix(lines[1], "# ") {
		return nil, garbage(command, answer, errors.New("want version 1"))
	}
	names := strings.Fields(lines[1])[1:]
	servers := make([]server, 0, len(lines)-2)
	for _, line := range lines[2:] {
		row := map[string]string{}
		for i, value := range strings.Fields(line) {
			if i < len(names) {
				row[names[i]] = value
			}
		}
		if row["be_name"] != backend {
			return nil, garbage(command, line, fmt.Errorf("want backend %q", backend))
		}
		s := server{name: row["srv_name"]}
		if !goodName(s.name) {
			return nil, garbage(command, line, errors.New("want the name of a server"))
		}
		for _, number := range []struct {
			name string
			to   *int
		}{{"srv_admin_state", &s.admin}, {"srv_op_state", &s.op}, {"srv_uweight", &s.weight}} {
			var err error
			if *number.to, err = strconv.Atoi(row[number.name]); err != nil {
				return nil, garbage(command, line, fmt.Errorf("column %s: %w", number.name, err))
			}
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// addStat adds what "show stat" alone knows. A server that came or went in
// between is left as it is.
func (s *snapshot) addStat(backend, answer string) error {
	const command = "show stat"
	lines := strings.Split(answer, "\n")
	if !strings.HasPrefix(lines[0], "# ") {
		return garbage(command, answer, errors.New("want the names of columns"))
	}
	column := map[string]int{}
	for i, name := range strings.Split(lines[0][2:], ",") {
		column[name] = i
	}
	for _, name := range []string{"pxname", "svname", "bck", "tracked"} {
		if _, ok := column[name]; !ok {
			return garbage(command, lines[0], fmt.Errorf("want a column %q", name))
		}
	}
	for _, line := range lines[1:] {
		values := strings.Split(line, ",")
		if len(values) <= column["tracked"] || values[column["pxname"]] != backend {
			return garbage(command, line, fmt.Errorf("want a server of backend %q", backend))
		}
		for i := range s.servers {
			if one := &s.servers[i]; one.name == values[column["svname"]] {
				one.backup = values[column["bck"]] == "1"
				if at, name, ok := strings.Cut(values[column["tracked"]], "/"); ok && at == backend {
					one.tracks = name
				}
			}
		}
	}
	return nil
}

// goodName reports whether text may be the name of a proxy or a server
// (configuration manual, section 4): what is not among these would end a
// command or begin another one.
func goodName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:", r)
	})
}

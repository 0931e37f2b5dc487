package saturation

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// portReader measures what limits new connections: the ephemeral ports in use
// from one local address towards one remote address and port, by all processes
// of the network namespace. Where all sockets together are far fewer than
// ephemeral ports, it does not look at them one by one.
type portReader struct {
	system
	last Usage
	skip int // samples until sockets are looked at again
}

const (
	// closeLook is the share of the ports from which on sockets are counted
	// one by one.
	closeLook = 0.7
	// closeLookEvery is how many samples a count stands for: the kernel needs
	// some 10 ms to list 30,000 sockets.
	closeLookEvery = 5
)

func (p *portReader) read() (Usage, error) {
	if p.skip > 0 {
		p.skip--
		return p.last, nil
	}
	p.last = Usage{}
	ports, err := p.ephemeral()
	if err != nil || ports.size() == 0 {
		return Usage{}, err
	}
	sockets, err := p.sockets()
	if err != nil || float64(sockets) <= closeLook*float64(ports.size()) {
		return Usage{Used: 0, Limit: uint64(ports.size())}, err
	}
	p.skip = closeLookEvery - 1
	used, err := p.mostUsed(ports)
	if err != nil {
		return Usage{}, err
	}
	p.last = Usage{Used: uint64(used), Limit: uint64(ports.size())}
	return p.last, nil
}

// ephemeral returns the ports that the kernel gives to connections.
func (p *portReader) ephemeral() (portSet, error) {
	span, err := p.system.read("proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return portSet{}, fmt.Errorf("reading the ephemeral ports: %w", err)
	}
	reserved, err := p.system.read("proc/sys/net/ipv4/ip_local_reserved_ports")
	if err != nil {
		return portSet{}, fmt.Errorf("reading the reserved ports: %w", err)
	}
	return parsePorts(string(span), string(reserved))
}

// sockets returns how many TCP sockets there are, TIME_WAIT included. The
// first file counts those for both families.
func (p *portReader) sockets() (uint64, error) {
	var total uint64
	for _, f := range []struct{ file, section string }{
		{"proc/net/sockstat", "TCP:"},
		{"proc/net/sockstat6", "TCP6:"},
	} {
		text, err := p.system.read(f.file)
		if err != nil {
			return 0, fmt.Errorf("counting the sockets: %w", err)
		}
		total += sockstatValue(text, f.section, "inuse") + sockstatValue(text, f.section, "tw")
	}
	return total, nil
}

// mostUsed counts the ports in use towards each remote address and port.
func (p *portReader) mostUsed(ports portSet) (most int, err error) {
	reuse, err := p.system.read("proc/sys/net/ipv4/tcp_tw_reuse")
	if err != nil {
		return 0, fmt.Errorf("reading the reuse of ports: %w", err)
	}
	count := portCount{ports: ports, reuse: strings.TrimSpace(string(reuse)), used: map[string]*int{}}
	for _, name := range []string{"proc/net/tcp", "proc/net/tcp6"} {
		f, err := os.Open(p.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("counting the ports in use: %w", err)
		}
		err = count.add(f)
		_ = f.Close()
		if err != nil {
			return 0, fmt.Errorf("counting the ports in use: %w", err)
		}
	}
	for _, n := range count.used {
		most = max(most, *n)
	}
	return most, nil
}

// sockstatValue returns a number of /proc/net/sockstat, 0 where it is missing.
func sockstatValue(text []byte, section, key string) uint64 {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || string(fields[0]) != section {
			continue
		}
		for i := 1; i+1 < len(fields); i += 2 {
			if string(fields[i]) == key {
				n, err := strconv.ParseUint(string(fields[i+1]), 10, 64)
				if err != nil {
					return 0
				}
				return n
			}
		}
	}
	return 0
}

// portSet is a range of ports without those that are reserved in it.
type portSet struct {
	first, last uint16
	reserved    map[uint16]bool
}

func (s *portSet) has(port uint16) bool {
	return port >= s.first && port <= s.last && !s.reserved[port]
}

// size is 0 for the zero set, whose port 0 is none.
func (s *portSet) size() int {
	if s.last == 0 {
		return 0
	}
	return int(s.last) - int(s.first) + 1 - len(s.reserved)
}

// parsePorts reads net.ipv4.ip_local_port_range ("32768 60999") and
// ip_local_reserved_ports ("8080,9000-9010"). Of an empty range nothing is in
// the set.
func parsePorts(span, reserved string) (portSet, error) {
	fields := strings.Fields(span)
	if len(fields) == 0 {
		return portSet{}, nil
	}
	s := portSet{reserved: map[uint16]bool{}}
	var err error
	if len(fields) == 2 {
		s.first, s.last, err = parseSpan(fields[0], fields[1])
	}
	if len(fields) != 2 || err != nil {
		return portSet{}, fmt.Errorf("reading the ephemeral ports: %q is no range", span)
	}
	for _, part := range strings.Split(strings.TrimSpace(reserved), ",") {
		if part == "" {
			continue
		}
		from, to, isSpan := strings.Cut(part, "-")
		if !isSpan {
			to = from
		}
		first, last, err := parseSpan(from, to)
		if err != nil {
			return portSet{}, fmt.Errorf("reading the reserved ports: %q is no port or range", part)
		}
		for port := int(max(first, s.first)); port <= int(min(last, s.last)); port++ {
			s.reserved[uint16(port)] = true
		}
	}
	return s, nil
}

var errBackwards = errors.New("the last port is before the first")

func parseSpan(from, to string) (first, last uint16, err error) {
	f, err := strconv.ParseUint(from, 10, 16)
	if err != nil {
		return 0, 0, err
	}
	l, err := strconv.ParseUint(to, 10, 16)
	if err != nil {
		return 0, 0, err
	}
	if l < f {
		return 0, 0, errBackwards
	}
	return uint16(f), uint16(l), nil
}

// States of a socket in /proc/net/tcp, from the kernel's net/tcp_states.h.
const (
	stateTimeWait = "06"
	stateListen   = "0A"
)

// portCount counts the ephemeral ports in use.
type portCount struct {
	ports portSet
	reuse string          // net.ipv4.tcp_tw_reuse
	used  map[string]*int // by local address, remote address and port; pointers, for a key is made once only
}

// add counts the sockets of /proc/net/tcp or tcp6. Lines that are no sockets
// are passed over.
func (c *portCount) add(r io.Reader) error {
	lines := bufio.NewScanner(r)
	key := make([]byte, 0, 128)
	for lines.Scan() {
		_, rest := field(lines.Bytes())
		local, rest := field(rest)
		remote, rest := field(rest)
		state, _ := field(rest)
		address, port, ok := splitPort(local)
		remoteAddress, remotePort, remoteOK := splitPort(remote)
		if !ok || !remoteOK || remotePort == 0 || !c.ports.has(port) || string(state) == stateListen {
			continue
		}
		if string(state) == stateTimeWait && c.reusable(address, remoteAddress) {
			continue
		}
		key = append(append(append(key[:0], address...), ' '), remote...)
		n := c.used[string(key)]
		if n == nil {
			n = new(int)
			c.used[string(key)] = n
		}
		*n++
	}
	return lines.Err()
}

// reusable reports whether the kernel gives the port of a socket in TIME_WAIT
// to a new connection: everywhere (1) or on loopback only (2, the default).
func (c *portCount) reusable(local, remote []byte) bool {
	switch c.reuse {
	case "1":
		return true
	case "2":
		return isLoopback(local) || isLoopback(remote)
	}
	return false
}

// field returns the first word of a line and what follows it.
func field(line []byte) (word, rest []byte) {
	line = bytes.TrimLeft(line, " ")
	end := bytes.IndexByte(line, ' ')
	if end < 0 {
		return line, nil
	}
	return line[:end], line[end:]
}

// splitPort splits "0100007F:1F90".
func splitPort(s []byte) (address []byte, port uint16, ok bool) {
	colon := bytes.IndexByte(s, ':')
	if colon < 0 || len(s)-colon != 5 {
		return nil, 0, false
	}
	var b [2]byte
	if _, err := hex.Decode(b[:], s[colon+1:]); err != nil {
		return nil, 0, false
	}
	return s[:colon], binary.BigEndian.Uint16(b[:]), true
}

// isLoopback reads an address in the words of the machine's byte order that
// /proc/net/tcp has.
func isLoopback(address []byte) bool {
	var b [16]byte
	if len(address) > 2*len(b) {
		return false
	}
	n, err := hex.Decode(b[:], address)
	if err != nil || n%4 != 0 {
		return false
	}
	for i := 0; i < n; i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b[:n])
	return ok && addr.Unmap().IsLoopback()
}

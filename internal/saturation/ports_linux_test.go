package saturation

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePorts(t *testing.T) {
	for _, tt := range []struct {
		name           string
		span, reserved string
		size           int
		has, hasNot    []uint16
		err            string
	}{
		{name: "usual", span: "32768\t60999\n", reserved: "\n", size: 28232, has: []uint16{32768, 60999}, hasNot: []uint16{0, 32767, 61000}},
		{name: "unknown", size: 0, hasNot: []uint16{1}},
		// 10 ports of 9000-9009 and 1, and those outside the range do not count.
		{name: "reserved", span: "9000 9999", reserved: "80,8990-9009,9500,9500,10000-20000", size: 989, has: []uint16{9010, 9501}, hasNot: []uint16{9000, 9009, 9500}},
		{name: "one port", span: "5 5", size: 1, has: []uint16{5}},
		{name: "all", span: "1 65535", reserved: "65535", size: 65534, hasNot: []uint16{65535}},
		{name: "backwards", span: "9 5", err: `"9 5" is no range`},
		{name: "one number", span: "9", err: `"9" is no range`},
		{name: "too large", span: "1 65536", err: "is no range"},
		{name: "garbage in the reserved", span: "1 9", reserved: "5,x", err: `"x" is no port or range`},
		{name: "reserved backwards", span: "1 9", reserved: "9-5", err: `"9-5" is no port or range`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parsePorts(tt.span, tt.reserved)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || s.size() != tt.size {
				t.Errorf("%d ports, %v, want %d", s.size(), err, tt.size)
			}
			for _, port := range tt.has {
				if !s.has(port) {
					t.Errorf("%d is not in it", port)
				}
			}
			for _, port := range tt.hasNot {
				if s.has(port) {
					t.Errorf("%d is in it", port)
				}
			}
		})
	}
}

const sockstat = `sockets: used 16
TCP: inuse 11 orphan 0 tw 3 alloc 1 mem 0
UDP: inuse 7 mem 0
FRAG: inuse 0 memory 0
`

func TestSockstatValue(t *testing.T) {
	for _, tt := range []struct {
		name, text, section, key string
		want                     uint64
	}{
		{"first", sockstat, "TCP:", "inuse", 11},
		{"third", sockstat, "TCP:", "tw", 3},
		{"another section", sockstat, "UDP:", "inuse", 7},
		{"missing section", sockstat, "TCP6:", "inuse", 0},
		{"missing key", sockstat, "UDP:", "tw", 0},
		{"a key without a number", "TCP: inuse", "TCP:", "inuse", 0},
		{"no number", "TCP: inuse many", "TCP:", "inuse", 0},
		{"empty", "", "TCP:", "inuse", 0},
		{"garbage", "\n\n\x00\xff TCP:\n", "TCP:", "inuse", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := sockstatValue([]byte(tt.text), tt.section, tt.key); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

const tcpHeader = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// socket is a line of /proc/net/tcp.
func socket(local, remote, state string) string {
	return fmt.Sprintf("   0: %s %s %s 00000000:00000000 00:00000000 00000000     0        0 1591 1 00000000b225c3ec 100 0 0 10 0\n", local, remote, state)
}

// Addresses as a little-endian machine writes them; port 8000 is 32768.
const (
	here      = "020200C0" // 192.0.2.2
	there     = "017100CB" // 203.0.113.1
	loop4     = "0100007F" // 127.0.0.1
	loop6     = "00000000000000000000000001000000"
	loop4in6  = "0000000000000000FFFF00000100007F"
	there6    = "B80D0120000000000000000001000000"
	connected = "01"
)

func TestPortCount(t *testing.T) {
	if !isLoopback([]byte(loop4)) {
		t.Skip("the texts are of a little-endian machine")
	}
	for _, tt := range []struct {
		name  string
		reuse string
		text  string
		want  map[string]int
	}{
		{"empty", "2", "", map[string]int{}},
		{"header only", "2", tcpHeader, map[string]int{}},
		{
			"two towards one, one towards another port", "2",
			tcpHeader + socket(here+":8000", there+":01BB", connected) + socket(here+":8001", there+":01BB", "02") + socket(here+":8000", there+":0050", connected),
			map[string]int{here + " " + there + ":01BB": 2, here + " " + there + ":0050": 1},
		},
		{
			"from two local addresses", "2",
			socket(here+":8000", there+":01BB", connected) + socket(there+":8000", there+":01BB", connected),
			map[string]int{here + " " + there + ":01BB": 1, there + " " + there + ":01BB": 1},
		},
		{
			"listening, unconnected, below and above the range", "2",
			socket(here+":8000", there+":0001", stateListen) + socket(here+":8000", there+":0000", "07") +
				socket(here+":7FFF", there+":01BB", connected) + socket(here+":EE48", there+":01BB", connected),
			map[string]int{},
		},
		{
			"TIME_WAIT that nobody may use", "0",
			socket(loop4+":8000", loop4+":01BB", stateTimeWait) + socket(here+":8000", there+":01BB", stateTimeWait),
			map[string]int{loop4 + " " + loop4 + ":01BB": 1, here + " " + there + ":01BB": 1},
		},
		{
			"TIME_WAIT that may be used on loopback", "2",
			socket(loop4+":8000", loop4+":01BB", stateTimeWait) + socket(loop6+":8000", loop6+":01BB", stateTimeWait) +
				socket(loop4in6+":8000", loop4in6+":01BB", stateTimeWait) + socket(there6+":8000", there6+":01BB", stateTimeWait),
			map[string]int{there6 + " " + there6 + ":01BB": 1},
		},
		{
			"TIME_WAIT that may be used everywhere", "1",
			socket(here+":8000", there+":01BB", stateTimeWait) + socket(here+":8001", there+":01BB", connected),
			map[string]int{here + " " + there + ":01BB": 1},
		},
		{
			"garbage", "2",
			"\n:\n0: 1\n0: x:8000 y:zzzz 01\n 0: :8000 :8000\n0: zz:8000 zz:0001 06\n\x00\xff\n",
			map[string]int{" :8000": 1, "zz zz:0001": 1}, // addresses are only read where they matter
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ports, err := parsePorts("32768 60999", "")
			if err != nil {
				t.Fatal(err)
			}
			c := portCount{ports: ports, reuse: tt.reuse, used: map[string]*int{}}
			if err := c.add(strings.NewReader(tt.text)); err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for key, n := range c.used {
				got[key] = *n
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPortReader(t *testing.T) {
	files := map[string]string{
		"proc/sys/net/ipv4/ip_local_port_range":     "32768 32777\n", // 10 ports
		"proc/sys/net/ipv4/ip_local_reserved_ports": "\n",
		"proc/sys/net/ipv4/tcp_tw_reuse":            "2\n",
		"proc/net/sockstat":                         "TCP: inuse 5 orphan 0 tw 1 alloc 1 mem 0\n",
		"proc/net/sockstat6":                        "TCP6: inuse 2\n", // 5+1+2 are above 70 % of 10
		"proc/net/tcp":                              tcpHeader + socket(here+":8000", there+":01BB", connected) + socket(here+":8001", there+":01BB", connected),
		"proc/net/tcp6":                             tcpHeader + socket(there6+":8002", there6+":01BB", connected),
	}
	for _, tt := range []struct {
		name   string
		change map[string]string
		want   Usage
		err    string
	}{
		{"many sockets", nil, Usage{2, 10}, ""},
		{"few sockets are not looked at", map[string]string{"proc/net/sockstat6": ""}, Usage{0, 10}, ""},
		{"unknown range", map[string]string{"proc/sys/net/ipv4/ip_local_port_range": ""}, Usage{}, ""},
		{"bad range", map[string]string{"proc/sys/net/ipv4/ip_local_port_range": "x"}, Usage{}, `"x" is no range`},
		{"a line without end", map[string]string{"proc/net/tcp": strings.Repeat("x", 1<<20)}, Usage{}, "counting the ports in use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := maps.Clone(files)
			maps.Copy(all, tt.change)
			got, err := (&portReader{system: tree(t, all)}).read()
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestPortReaderLooksEveryFiveSamples(t *testing.T) {
	reader := &portReader{system: tree(t, map[string]string{
		"proc/sys/net/ipv4/ip_local_port_range": "32768 32777\n",
		"proc/net/sockstat":                     "TCP: inuse 9\n",
		"proc/net/tcp":                          socket(here+":8000", there+":01BB", connected),
	})}
	for i, want := range []uint64{1, 1, 1, 1, 1, 0} {
		if got, err := reader.read(); err != nil || got.Used != want {
			t.Errorf("sample %d: %+v, %v, want %d", i, got, err, want)
		}
		if err := os.WriteFile(reader.path("proc/net/tcp"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPortsOfThisMachine counts connections of its own in the kernel's lists.
func TestPortsOfThisMachine(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	const opened = 12
	for range opened {
		conn, err := net.Dial("tcp4", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	reader := &portReader{system: system{root: "/"}}
	ports, err := reader.ephemeral()
	if err != nil {
		t.Fatal(err)
	}
	if ports.size() == 0 {
		t.Skip("this kernel does not show its ephemeral ports")
	}
	used, err := reader.mostUsed(ports)
	if err != nil || used < opened {
		t.Errorf("%d ports used, %v, want at least %d", used, err, opened)
	}
	sockets, err := reader.sockets()
	if err != nil || sockets < opened {
		t.Errorf("%d sockets, %v, want at least %d", sockets, err, opened)
	}
}

type fakeBrokenReader struct{}

var errBroken = errors.New("input/output error")

func (fakeBrokenReader) Read([]byte) (int, error) { return 0, errBroken }

func TestPortCountReadError(t *testing.T) {
	c := portCount{used: map[string]*int{}}
	if err := c.add(fakeBrokenReader{}); !errors.Is(err, errBroken) {
		t.Errorf("error %v, want %v", err, errBroken)
	}
}

func BenchmarkPortCount(b *testing.B) {
	ports, err := parsePorts("32768 60999", "")
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	for port := ports.first; port < ports.last; port++ {
		text.WriteString(socket(fmt.Sprintf("%s:%04X", here, port), there+":01BB", connected))
	}
	b.ReportAllocs()
	for b.Loop() {
		c := portCount{ports: ports, reuse: "2", used: map[string]*int{}}
		if err := c.add(strings.NewReader(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}

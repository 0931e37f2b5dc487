package discovery

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	prometheusdns "github.com/prometheus/prometheus/discovery/dns"

	"github.com/steadyprobe/steadyprobe/internal/dnsdoor"
)

// inside says that the test runs where it owns port 53 and /etc/resolv.conf,
// which Prometheus reads and no setting replaces.
const inside = "STEADYPROBE_TEST_OWN_NAMES"

// TestDNS runs itself in namespaces of its own, with a name server there.
func TestDNS(t *testing.T) {
	if os.Getenv(inside) != "" {
		testDNS(t)
		return
	}
	t.Parallel()
	cannot := t.Skipf
	if os.Getenv("CI") != "" {
		cannot = t.Fatalf
	}
	if out, err := exec.Command("unshare", "--mount", "--net", "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		cannot("a name server of one's own needs namespaces: %v: %s", err, out)
	}
	resolv := filepath.Join(t.TempDir(), "resolv.conf")
	write(t, resolv, "nameserver 127.0.0.1\nsearch example.com\noptions timeout:1 attempts:1\n")
	const script = `ip link set lo up && mount --bind "$1" /etc/resolv.conf && exec "$2" -test.run '^TestDNS$' -test.v`
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "sh", "-c", script, "sh", resolv, os.Args[0])
	cmd.Env = append(os.Environ(), inside+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestDNS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func testDNS(t *testing.T) {
	s := dnsdoor.ListenOn(t, netip.MustParseAddrPort("127.0.0.1:53"))
	s.Set("front.example.com", "10.0.0.1", "10.0.0.2")
	s.SetServices("_http._tcp.example.com", dnsdoor.Service{Host: "a.example.com", Port: 8080}, dnsdoor.Service{Host: "b.example.com.", Port: 80})
	b := real(t)
	text := strings.Replace(with("keep_last: 1h"), "file_sd_configs: [{files: [a.yml]}]", `dns_sd_configs:
  - {names: [_http._tcp.example.com]}
  - {names: [front], type: A, port: 443}`, 1)
	text = strings.Replace(text, "allow: {hosts: [example.com]}", "allow: {hosts: [example.com], networks: [10.0.0.0/8, 192.0.2.0/24]}", 1)
	text = strings.Replace(text, `regex: "([^.:]+).*"`, `regex: "(.+)"`, 1)
	p := prepared(t, text)
	for _, m := range p.entries[0].mechanisms {
		m.config.(*prometheusdns.SDConfig).RefreshInterval = model.Duration(50 * time.Millisecond)
	}
	b.run(p)
	eventually(t, "10.0.0.1:443 10.0.0.2:443 a.example.com:8080 b.example.com:80", b.admitted)
	s.SetServices("_http._tcp.example.com", dnsdoor.Service{Host: "c.example.com", Port: 80})
	s.Set("front.example.com", "10.0.0.2", "127.0.0.1")
	eventually(t, "10.0.0.2:443 c.example.com:80", b.admitted)
	if got := b.refused(0); got != "network 1" {
		t.Errorf("refused %q, want the loopback", got)
	}
	s.Behave(dnsdoor.Behaviour{Error: dnsdoor.ServerFailure})
	before := b.failures()
	eventually(t, "true", func() string { return fmt.Sprint(b.failures() > before+2) })
	b.is("10.0.0.2:443 c.example.com:80")
	s.Behave(dnsdoor.Behaviour{})
	s.SetServices("_http._tcp.example.com")
	eventually(t, "10.0.0.2:443", b.admitted)
	s.Set("front.example.com")
	eventually(t, "true", func() string { return fmt.Sprint(b.Sources()[0].Held) })
	b.is("10.0.0.2:443")
}

package config

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDiscoveryFile(t *testing.T) {
	t.Parallel()
	const name = "testdata/discovery.yml"
	config, warnings, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "warnings", len(warnings), 0)
	const golden = "testdata/discovery.masked.yml"
	masked := string(config.Masked())
	if *update {
		if err := os.WriteFile(golden, []byte(masked), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), masked); diff != "" {
		t.Errorf("masked configuration (-want +got):\n%s", diff)
	}
	for _, planted := range []string{"planted-user", "planted-password", "planted-token", "planted-query", "planted-key", "planted-value", "planted-secret", "planted-proxy", "planted-claim", "planted-param", "planted-unknown", "%zz"} {
		if strings.Contains(masked, planted) {
			t.Errorf("the masked configuration shows %s", planted)
		}
	}
	equal(t, "targets", len(config.Targets), 0)
	kubernetes := config.Discovery[0].Kubernetes
	equal(t, "text of an alias", config.Discovery[1].Kubernetes.Text(), kubernetes.Text())
	equal(t, "secret in the text", strings.Contains(kubernetes.Text(), "planted-password"), true)
	equal(t, "folder", kubernetes.Folder(), "testdata")
	equal(t, "problem", kubernetes.Problem(28, "[0].role", "is wrong").Error(), "testdata/discovery.yml:28: discovery[0].kubernetes_sd_configs[0].role: is wrong")
	equal(t, "unknown", kubernetes.Unknown(28, "[0]", "rolle", []string{"role", "port"}).Error(), "testdata/discovery.yml:28: discovery[0].kubernetes_sd_configs[0].rolle: unknown field; write role")
	equal(t, "not written", config.Discovery[0].File.Written(), false)
	equal(t, "text of nothing", config.Discovery[0].File.Text(), "")
	equal(t, "profile", config.ProfileNamed("busy").Rate.String(), "10")
	equal(t, "no profile", config.ProfileNamed("other") == nil, true)
}

// TestTextSaysWhatIsSaid compares settings that differ in how they are written.
func TestTextSaysWhatIsSaid(t *testing.T) {
	t.Parallel()
	text := func(settings string) string {
		c, _, err := Parse([]byte("profiles: [{name: a, rate: 1}]\ndiscovery: [{name: d, file_sd_configs: "+settings+", profile: a, allow: {hosts: [h]}}]"), "x.yml")
		if err != nil {
			t.Fatal(err)
		}
		return c.Discovery[0].File.Text()
	}
	base := text(`[{files: [a.yml], refresh_interval: 5m}]`)
	equal(t, "style and comment", text("[{\"files\": # of them\n ['a.yml'],\n refresh_interval: \"5m\"}]"), base)
	equal(t, "another value", text(`[{files: [a.yml], refresh_interval: 6m}]`) == base, false)
	equal(t, "text that looks like a number", text(`[{files: ["1"]}]`) == text(`[{files: [1]}]`), false)
}

func TestAllow(t *testing.T) {
	t.Parallel()
	const (
		hosts    = "hosts: [example.com, svc.cluster.local]"
		networks = "networks: [10.0.0.0/8, 2001:db8::/32]"
	)
	for _, row := range []struct {
		name, allow, names, refused string // separated by blanks
	}{
		{"names", hosts, "example.com shop.example.com a.b.EXAMPLE.com. web.shop.svc.cluster.local",
			"example.org badexample.com example.com.evil.test localhost com . 10.0.0.1 ::1"},
		{"networks", networks, "any.test localhost 10.1.2.3 2001:db8::1", "192.0.2.1 ::1 127.0.0.1 fe80::1%eth0"},
		{"both", hosts + ", " + networks, "shop.example.com 10.1.2.3", "example.org 192.0.2.1"},
		{"nothing", "", "", "example.com 10.0.0.1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			a := allowOf(t, row.allow)
			for _, name := range strings.Fields(row.names) {
				equal(t, name, a.AdmitsName(name), true)
			}
			for _, name := range strings.Fields(row.refused) {
				equal(t, name, a.AdmitsName(name), false)
			}
		})
	}
}

// TestAllowedAddresses has addresses that look like others, as somebody writes
// them who wants the probe to reach what only the probe can.
func TestAllowedAddresses(t *testing.T) {
	t.Parallel()
	const special = "0.0.0.0 0.1.2.3 127.0.0.1 127.1.2.3 169.254.169.254 169.254.0.1 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 " +
		"100.100.100.200 168.63.129.16 192.0.0.192 :: ::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 fd00:ec2::254 fd20:ce::254 " +
		// IPv4 addresses inside of IPv6 ones: mapped, by NAT64, 6to4, compatible
		"::ffff:127.0.0.1 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 64:ff9b:1::7f00:1 2002:7f00:1::1 2002:a9fe:a9fe:: ::169.254.169.254"
	for _, row := range []struct {
		name, allow, addresses, refused string
	}{
		{"nothing listed", "hosts: [h]", "10.0.0.1 192.168.1.1 8.8.8.8 2001:db8::1 fd00::1 64:ff9b::808:808 2002:808:808::1 100.64.0.1", special},
		{"everything listed", "networks: [0.0.0.0/0, \"::/0\"]", "10.0.0.1 8.8.8.8 2001:db8::1 fd00::1 64:ff9b::808:808", special},
		{"one network", "networks: [10.0.0.0/8]", "10.0.0.1 10.255.255.255 ::ffff:10.0.0.1", "11.0.0.0 9.255.255.255 2001:db8::1 " + special},
		{"loopback listed", "networks: [127.0.0.0/8, \"::1\"]", "127.0.0.1 127.9.9.9 ::1 ::ffff:127.0.0.1", "10.0.0.1 0.0.0.0 :: 169.254.169.254"},
		{"a part of link-local", "networks: [169.254.1.0/24, \"fe80::/64\"]", "169.254.1.9 fe80::9 fe80::9%eth0", "169.254.169.254 fe80:0:0:1::1"},
		{"a mapped one listed as IPv4", "networks: [169.254.169.254]", "169.254.169.254 ::ffff:169.254.169.254", "169.254.169.253 64:ff9b::a9fe:a9fe"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			a := allowOf(t, row.allow)
			for _, text := range strings.Fields(row.addresses) {
				equal(t, text, a.AdmitsAddress(netip.MustParseAddr(text)), true)
			}
			for _, text := range strings.Fields(row.refused) {
				equal(t, text, a.AdmitsAddress(netip.MustParseAddr(text)), false)
			}
			equal(t, "no address", a.AdmitsAddress(netip.Addr{}), false)
		})
	}
}

// allowOf returns what a source allows; empty: nothing.
func allowOf(t *testing.T, text string) *Allow {
	if text == "" {
		return &Allow{}
	}
	c := discovering(t, "", text)
	return &c.Discovery[0].Allow
}

// discovering returns a configuration with one source, and a profile that has
// these settings besides its name and its rate.
func discovering(t *testing.T, profile, allow string) *Config {
	t.Helper()
	text := "profiles: [{name: p, rate: 2, " + profile + "}]\ndiscovery: [{name: d, file_sd_configs: [{files: [a.yml]}], profile: p, allow: {" + allow + "}}]"
	c, _, err := Parse([]byte(text), "testdata/x.yml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTargetOfProfile(t *testing.T) {
	t.Parallel()
	const everything = "connections: 3, timeout: 2s, labels: {site: fra1, team: a}, http: {method: HEAD, host: h.test, authorization: {credentials_file: token.txt}}, tcp: {send: hello}"
	url := func(text string) URL {
		u, err := ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	for _, row := range []struct {
		name, profile string
		found         Discovered
		want          string // problem; empty: none
		check         func(t *testing.T, target *Target)
	}{
		{"as the profile", everything, Discovered{Name: "a", URL: url("https://h/")}, "", func(t *testing.T, target *Target) {
			equal(t, "rate", target.Rate.String(), "2")
			equal(t, "connections", target.Connections, 3)
			equal(t, "host", target.HostHeader(), "h.test")
			equal(t, "team", target.Labels["team"], "a")
			equal(t, "no bare TCP", target.TCP.Content().Empty(), true)
			equal(t, "credentials", target.HeaderFields()[0].Value.Reveal(), "Bearer planted-token-file")
			equal(t, "source", target.Source(), "d")
			equal(t, "reach", target.Reach().AdmitsName("h"), true)
		}},
		{"all that is known", everything, Discovered{Name: "a", URL: url("https://h/"), Labels: map[string]string{"team": "b", "zone": "1"}, Rate: mustRate("9"), Connections: 8, Timeout: 7 * time.Second, Host: "other", ServerName: "inner", ConnectTo: "10.0.0.1:8443"}, "", func(t *testing.T, target *Target) {
			equal(t, "rate", target.Rate.String(), "9")
			equal(t, "connections", target.Connections, 8)
			equal(t, "timeout", target.Timeout, 7*time.Second)
			equal(t, "host", target.HostHeader(), "other")
			equal(t, "server name", target.TLS.ServerName, "inner")
			equal(t, "dial", target.DialAddress(), "10.0.0.1:8443")
			equal(t, "labels", target.Labels["site"]+target.Labels["team"]+target.Labels["zone"], "fra1b1")
		}},
		{"bare TCP", everything, Discovered{Name: "a", URL: url("tcp://h:1")}, "", func(t *testing.T, target *Target) {
			equal(t, "sent", target.TCP.Content().Reveal(), "hello")
			equal(t, "no authorization", target.HTTP.Authorization == nil, true)
			equal(t, "reuse", target.Connection.Reuse, false)
		}},
		{"no name", "", Discovered{URL: url("http://h/")}, "name: is missing or empty; write name: and a short name such as shop-ingress", nil},
		{"a name that cannot be", "", Discovered{Name: "a b", URL: url("http://h/")}, "name: has characters that a User-Agent header cannot carry; write ASCII letters, digits and signs, without spaces, ( ) \\ and \"", nil},
		{"a label of Prometheus", "", Discovered{Name: "a", URL: url("http://h/"), Labels: map[string]string{"instance": "x"}}, "labels.instance: is a label that steadyprobe or Prometheus sets; write another name", nil},
		{"nowhere to connect to", "", Discovered{Name: "a", URL: url("http://h/"), ConnectTo: "h"}, "connect_to: is not HOST:PORT; write for example 10.0.0.7:443 or [2001:db8::1]:443", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := discovering(t, row.profile, "hosts: [h]")
			row.found.Source = &c.Discovery[0]
			target, err := c.Profiles[0].Target(row.found)
			if row.want != "" || err != nil {
				var all *Errors
				if !errors.As(err, &all) || err.Error() != row.want {
					t.Fatalf("got %v, want %s", err, row.want)
				}
				return
			}
			row.check(t, &target)
			again, err := c.Profiles[0].Target(row.found)
			if err != nil || !target.Equal(&again) {
				t.Errorf("a second one is another: %v", err)
			}
			equal(t, "labels of the profile", len(c.Profiles[0].Labels) <= 2, true)
		})
	}
}

func TestTargetName(t *testing.T) {
	t.Parallel()
	d := &Discovery{Name: "ingresses"}
	long := "http://h/" + strings.Repeat("a", 130)
	for _, row := range []struct{ name, url, want string }{
		{"plain", "https://shop.example.com/healthz?planted-query", "ingresses/https://shop.example.com/healthz"},
		{"odd characters", "http://h/a(b)%20%22", "ingresses/http://h/a%28b%29%20%22"},
		// 128 - 17 = 111 characters are left of it
		{"long", long, ("ingresses/" + long)[:111] + "~"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			u, err := ParseURL(row.url)
			if err != nil {
				t.Fatal(err)
			}
			name := d.TargetName(u)
			if !strings.HasPrefix(name, row.want) || len(name) > mostName {
				t.Errorf("got %s (%d), want %s", name, len(name), row.want)
			}
		})
	}
	one, _ := ParseURL(long)
	other, _ := ParseURL(long + "b")
	equal(t, "two long ones are the same", d.TargetName(one) == d.TargetName(other), false)
}

func TestDiscoveryWarnings(t *testing.T) {
	t.Parallel()
	const source = "\ndiscovery: [{name: d, file_sd_configs: [{files: [a.yml]}], profile: p, allow: {networks: [10.0.0.0/8]}}]"
	for _, row := range []struct{ name, text, want string }{
		{"credentials for whoever has an address", "profiles: [{name: p, rate: 1, http: {headers: {A: b}}}]" + source,
			`fuzz.yml:2: discovery[0].allow: names no hosts, and the profile "p" sends credentials or a client certificate: whoever has an address in networks is shown them; write hosts too`},
		{"a profile that nothing names", "profiles:\n- {name: p, rate: 1}\n- {name: q, rate: 1}" + source,
			"fuzz.yml:3: profiles[1]: no source of discovery names it, so that it has no effect; write profile: q there, or remove it"},
		{"a churn that a profile names", "profiles: [{name: p, rate: 1, churn: c}]\nchurns: [{name: c, embedded: {}, steps: [{replicas: 2, hold: 10s}]}]" + source, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := fakeParser()
			_, warnings, err := p.parse([]byte(row.text))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, w := range warnings {
				got += w.String()
			}
			equal(t, "warnings", got, row.want)
		})
	}
}

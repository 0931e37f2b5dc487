package discovery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// reading is a source that everything is allowed to of names below example.com
// and addresses in 10.0.0.0/8, with these relabel rules.
func reading(t *testing.T, rules, allow string) *entry {
	t.Helper()
	if allow == "" {
		allow = "hosts: [example.com], networks: [10.0.0.0/8, 192.0.2.0/24]"
	}
	return prepared(t, "profiles: [{name: p, rate: 5, connections: 4, labels: {site: fra1}}]\ndiscovery:\n- name: d\n  file_sd_configs: [{files: [a.yml]}]\n  profile: p\n  allow: {"+allow+"}\n  relabel_configs: ["+rules+"]\n").entries[0]
}

// set returns a rule that sets a label.
func set(label, value string) string {
	return fmt.Sprintf("{target_label: %s, replacement: %q}", label, value)
}

// from returns a rule that copies a label.
func from(source, label string) string {
	return fmt.Sprintf("{source_labels: [%s], target_label: %s}", source, label)
}

// TestRead gives one discovered target to a source, and looks at what it makes
// of it: NAME URL RATE CONNECTIONS TIMEOUT HOST SERVER-NAME CONNECT-TO LABELS of
// a target, or the reason and the text of a refusal.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, found, rules, allow, want string
	}{
		{"address alone", "__address__=shop.example.com", "", "", "d/http://shop.example.com/ http://shop.example.com/ 5 4 5s    site=fra1"},
		{"port", "__address__=shop.example.com:8080", "", "", "d/http://shop.example.com:8080/ http://shop.example.com:8080/ 5 4 5s    site=fra1"},
		{"IPv4", "__address__=10.0.0.1:80", "", "", "d/http://10.0.0.1:80/ http://10.0.0.1:80/ 5 4 5s    site=fra1"},
		{"IPv6", "__address__=[2001:db8::1]:80", "", "networks: [\"2001:db8::/32\"]", "d/http://[2001:db8::1]:80/ http://[2001:db8::1]:80/ 5 4 5s    site=fra1"},
		{"bare IPv6", "__address__=2001:db8::1", "", "networks: [\"2001:db8::/32\"]", "d/http://[2001:db8::1]/ http://[2001:db8::1]/ 5 4 5s    site=fra1"},
		{"scheme and path", "__address__=shop.example.com|__meta_scheme=https|__meta_path=/a/b", from("__meta_scheme", "__scheme__") + "," + from("__meta_path", "__probe_path__"), "",
			"d/https://shop.example.com/a/b https://shop.example.com/a/b 5 4 5s    site=fra1"},
		{"parameters", "__address__=shop.example.com", set("__param_deep", "1") + "," + set("__param_a", "x y"), "", "d/http://shop.example.com/ http://shop.example.com/?a=x+y&deep=1 5 4 5s    site=fra1"},
		{"bare TCP", "__address__=shop.example.com:6379", set("__scheme__", "tcp"), "", "d/tcp://shop.example.com:6379 tcp://shop.example.com:6379 5 4 5s    site=fra1"},
		{"every control", "__address__=shop.example.com", strings.Join([]string{
			set("__scheme__", "https"), set("__probe_name__", "shop"), set("__probe_rate__", "0.5"), set("__probe_connections__", "2"), set("__probe_timeout__", "1m"),
			set("__probe_host__", "www.example.com:8443"), set("__probe_server_name__", "tls.example.com"), set("__probe_connect_to__", "10.0.0.7:8443")}, ","), "",
			"shop https://shop.example.com/ 0.5 2 1m0s www.example.com:8443 tls.example.com 10.0.0.7:8443 site=fra1"},
		{"labels", "__address__=shop.example.com|team=shop|site=ams2|__meta_x=1|__tmp=2", "", "", "d/http://shop.example.com/ http://shop.example.com/ 5 4 5s    site=ams2 team=shop"},
		{"more is allowed", "__address__=shop.example.com", set("__probe_rate__", "50") + "," + set("__probe_connections__", "40"), "hosts: [example.com], max_rate: 50, max_connections: 40", "d/http://shop.example.com/ http://shop.example.com/ 50 40 5s    site=fra1"},
		{"dropped", "__address__=shop.example.com|__meta_probe=no", "{action: drop, source_labels: [__meta_probe], regex: no}", "", ""},

		{"no address", "a=b", "", "", "invalid it has no __address__"},
		{"an address that is a URL", "__address__=http://shop.example.com/", "", "", "invalid __address__ is not HOST or HOST:PORT"},
		{"user info", "__address__=u:p@shop.example.com", "", "", "invalid __address__ is not HOST or HOST:PORT"},
		{"a path in the address", "__address__=shop.example.com/a?b", "", "", "invalid __address__ is not HOST or HOST:PORT"},
		{"a wildcard", "__address__=*.example.com", "", "", "invalid its URL has a host with characters that no name has; write letters, digits, dots and hyphens (an international name in its xn-- form)"},
		{"scheme", "__address__=shop.example.com", set("__scheme__", "ftp"), "", "invalid its URL has an unknown scheme; write http:// or https://, or tcp:// or tls:// with a port"},
		{"bare TCP without port", "__address__=shop.example.com", set("__scheme__", "tls"), "", "invalid its URL has no port, and tls has none of its own; write tls://HOST:PORT"},
		{"a path of bare TCP", "__address__=shop.example.com:1", set("__scheme__", "tls") + "," + set("__probe_path__", "/a"), "", "invalid its URL has more than a host and a port, which is all that tls can use; write tls://HOST:PORT"},
		{"no path", "__address__=shop.example.com", set("__probe_path__", "healthz"), "", "invalid __probe_path__ is not a path; it must begin with / and have neither ? nor #: write parameters into __param_NAME"},
		{"a query in the path", "__address__=shop.example.com", set("__probe_path__", "/a?b"), "", "invalid __probe_path__ is not a path; it must begin with / and have neither ? nor #: write parameters into __param_NAME"},
		{"no number", "__address__=shop.example.com", set("__probe_rate__", "fast"), "", `invalid __probe_rate__: "fast" is not a plain decimal number; write requests per second such as 1000 or 0.2`},
		{"no connections", "__address__=shop.example.com", set("__probe_connections__", "0"), "", "invalid __probe_connections__ is not a number of connections, 1 or more"},
		{"no duration", "__address__=shop.example.com", set("__probe_timeout__", "-5s"), "", "invalid __probe_timeout__ is not a duration such as 5s"},
		{"long label", "__address__=shop.example.com|a=" + strings.Repeat("x", 1025), "", "", "invalid the label a is longer than 1024 bytes"},
		{"a control that is none", "__address__=shop.example.com|__meta_a=rates", "{source_labels: [__meta_a], target_label: \"__probe_${1}__\", replacement: 1}", "",
			"invalid __probe_rates__ controls nothing; write one of " + strings.Join(Controls(), ", ")},

		{"another name", "__address__=shop.example.org", "", "", "host __address__ is a name outside of allow.hosts"},
		{"another Host header", "__address__=shop.example.com", set("__probe_host__", "shop.example.org:80"), "", "host __probe_host__ is a name outside of allow.hosts"},
		{"another server name", "__address__=shop.example.com", set("__probe_server_name__", "shop.example.org"), "", "host __probe_server_name__ is a name outside of allow.hosts"},
		{"another name to connect to", "__address__=shop.example.com", set("__probe_connect_to__", "shop.example.org:80"), "", "host __probe_connect_to__ is a name outside of allow.hosts"},
		{"an address where only names are allowed", "__address__=10.0.0.1", "", "hosts: [example.com]", "network __address__ is an address outside of allow.networks"},
		{"another network", "__address__=172.16.0.1", "", "", "network __address__ is an address outside of allow.networks"},
		{"metadata", "__address__=169.254.169.254", "", "networks: [0.0.0.0/0]", "network __address__ is an address outside of allow.networks"},
		{"metadata as a number", "__address__=0xA9FEA9FE", "", "hosts: [example.com]", "host __address__ is a name outside of allow.hosts"},
		{"metadata mapped", "__address__=[::ffff:a9fe:a9fe]:80", "", "networks: [\"::/0\", 0.0.0.0/0]", "network __address__ is an address outside of allow.networks"},
		{"loopback to connect to", "__address__=shop.example.com", set("__probe_connect_to__", "127.0.0.1:9090"), "", "network __probe_connect_to__ is an address outside of allow.networks"},
		{"a closed loop", "__address__=shop.example.com", set("__probe_rate__", "max"), "hosts: [example.com], max_rate: 1000", "load __probe_rate__ asks for a closed loop, which no discovered target gets"},
		{"more than the profile", "__address__=shop.example.com", set("__probe_rate__", "5.1"), "", "load __probe_rate__ asks for 5.1 requests/s, above the 5 that are allowed (allow.max_rate, else the profile's rate)"},
		{"more connections than the profile", "__address__=shop.example.com", set("__probe_connections__", "5"), "", "load __probe_connections__ asks for 5 connections, above the 4 that are allowed (allow.max_connections, else the profile's connections)"},
		{"less is allowed than the profile has", "__address__=shop.example.com", set("__probe_connections__", "3"), "hosts: [example.com], max_connections: 2", "load __probe_connections__ asks for 3 connections, above the 2 that are allowed (allow.max_connections, else the profile's connections)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := reading(t, row.rules, row.allow)
			g := &targetgroup.Group{Targets: []model.LabelSet{labelSet(strings.Split(row.found, "|")...)}}
			if got := e.outcome(g); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// outcome returns what a source makes of a group with one target.
func (e *entry) outcome(g *targetgroup.Group) string {
	state := e.evaluate([]*targetgroup.Group{g})
	switch {
	case len(state.refused) == 1:
		return state.refused[0].Reason.String() + " " + state.refused[0].Text
	case len(state.candidates) == 0:
		return ""
	}
	found := state.candidates[0].found
	t, err := e.profile.Target(found)
	if err != nil {
		return "error " + err.Error()
	}
	labels := ""
	for _, name := range []string{"site", "team"} {
		if value := t.Labels[name]; value != "" {
			labels += " " + name + "=" + value
		}
	}
	return fmt.Sprintf("%s %s %s %d %s %s %s %s%s", t.Name, t.URL.Reveal(), t.Rate, t.Connections, t.Timeout, t.HTTP.Host, t.TLS.ServerName, t.ConnectTo, labels)
}

// TestControlsComeFromRules has sources that try to control a target themselves,
// and rules that copy whatever there is.
func TestControlsComeFromRules(t *testing.T) {
	t.Parallel()
	const plain = "d/http://shop.example.com/ http://shop.example.com/ 5 4 5s    site=fra1"
	for _, row := range []struct{ name, found, rules, want string }{
		{"of the source", "__probe_rate__=1|__scheme__=https|__param_a=b|__probe_path__=/a|__probe_host__=www.example.com", "", plain},
		{"all annotations", "__meta_annotation___probe_rate__=1|__meta_annotation___scheme__=https|__meta_annotation___param_a=b|__meta_annotation___address__=www.example.com",
			"{action: labelmap, regex: __meta_annotation_(.+)}", plain},
		{"a name out of a value", "__meta_a=__probe_rate__", `{source_labels: [__meta_a], target_label: "$1", replacement: "1"}`, plain},
		{"half a name out of a value", "__meta_a=robe_rate__", `{source_labels: [__meta_a], target_label: "__p$1", replacement: "1"}`, plain},
		{"an address out of a value", "__meta_a=__address__", `{source_labels: [__meta_a], target_label: "$1", replacement: "www.example.com"}`, plain},
		{"what a rule has set stays", "__meta_annotation___probe_rate__=1", set("__probe_rate__", "2") + ", {action: labelmap, regex: __meta_annotation_(.+)}",
			"d/http://shop.example.com/ http://shop.example.com/ 2 4 5s    site=fra1"},
		{"annotations that the rule means", "__meta_annotation_rate=1|__meta_annotation_timeout=1s", `{action: labelmap, regex: "__meta_annotation_(rate|timeout)", replacement: "__probe_${1}__"}`,
			"d/http://shop.example.com/ http://shop.example.com/ 1 4 1s    site=fra1"},
		{"parameters that the rule means", "__meta_annotation_deep=1", `{action: labelmap, regex: "__meta_annotation_(.+)", replacement: "__param_$1"}`,
			"d/http://shop.example.com/ http://shop.example.com/?deep=1 5 4 5s    site=fra1"},
		{"removed by a rule", "", set("__probe_rate__", "1") + ", {action: labeldrop, regex: __probe_rate__}", plain},
		{"in lower case", "__meta_a=WWW.EXAMPLE.COM", "{source_labels: [__meta_a], target_label: __address__, action: lowercase}", "d/http://www.example.com/ http://www.example.com/ 5 4 5s    site=fra1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			pairs := strings.Split("__address__=shop.example.com|"+row.found, "|")
			for name, g := range map[string]*targetgroup.Group{
				"target": {Targets: []model.LabelSet{labelSet(pairs...)}},
				"group":  group("g", []string{"shop.example.com"}, pairs[1:]...),
			} {
				if got := reading(t, row.rules, "").outcome(g); got != row.want {
					t.Errorf("labels of the %s: got  %s\nwant %s", name, got, row.want)
				}
			}
		})
	}
}

// TestEvaluate has several targets: the same ones, and ones of one name.
func TestEvaluate(t *testing.T) {
	t.Parallel()
	e := reading(t, set("__probe_name__", "a")+`,{source_labels: [__meta_name], regex: (.+), target_label: __probe_name__}`, "")
	one, other := group("g", []string{"1.example.com"}), group("h", []string{"2.example.com", "1.example.com"})
	for name, groups := range map[string][]*targetgroup.Group{"in order": {one, other}, "the other way round": {other, one}} {
		state := e.evaluate(groups)
		if len(state.candidates) != 1 || state.candidates[0].found.URL.String() != "http://1.example.com/" {
			t.Errorf("%s: candidates %v, want 1.example.com alone", name, state.candidates)
		}
		if len(state.refused) != 1 || state.refused[0].Target != "a" || state.refused[0].Reason != Name {
			t.Errorf("%s: refused %v, want a for its name", name, state.refused)
		}
	}
	many := labelSet("__address__=3.example.com", "__meta_name=b")
	for i := range mostLabels + 1 {
		many[model.LabelName(fmt.Sprintf("l%d", i))] = "x"
	}
	state := e.evaluate([]*targetgroup.Group{{Targets: []model.LabelSet{many}}})
	if len(state.refused) != 1 || state.refused[0].Text != "it has more than 32 labels; remove some by labeldrop" {
		t.Errorf("refused %v, want for its labels", state.refused)
	}
}

func TestShown(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{"plain", "shop.example.com", "shop.example.com"},
		{"user info", "planted:planted@shop.example.com", "shop.example.com"},
		{"query", "shop.example.com/a?key=planted", "shop.example.com/a?<secret>"},
		{"user info and query", "planted:planted@shop.example.com/a?planted", "shop.example.com/a?<secret>"},
		{"a query with the character of user info", "shop.example.com/a?key=planted@planted", "<secret>"},
		{"user info with the character of a query", "planted:pl?nted@shop.example.com", "<secret>"},
		{"long", strings.Repeat("a", 161), strings.Repeat("a", 160) + "…"},
		{"not UTF-8", "a\xff", "a�"},
	} {
		if got := shown(row.text); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}

package haproxy

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

func TestParse(t *testing.T) {
	row := func(name, numbers string) string { return "3 servers 1 " + name + " 127.0.0.1 " + numbers + "\n" }
	replaced := func(text, old, by string) string { return strings.Replace(text, old, by, 1) }
	two := columns + row("s0", "2 0 1 1") + row("s1", "0 8 50 50")
	twoStats := stat + "servers,s0,no check,1,1,0,,\nservers,s1,DRAIN,50,0,1,servers/s0,\n"
	now := time.Unix(2000, 0)
	good := snapshot{process: process{17, 1796079058}, servers: []server{
		{name: "s0", op: 2, weight: 1}, {name: "s1", admin: 8, weight: 50, backup: true, tracks: "s0"}}}
	tests := []struct {
		name                string
		info, servers, stat string
		want                snapshot
		reason              churn.Reason
		error               string // its beginning
	}{
		{name: "whole", info: info, servers: two, stat: twoStats, want: good},
		{name: "not yet or no longer in stat", info: info, servers: columns + row("s0", "2 0 1 1"), stat: twoStats,
			want: snapshot{process: good.process, servers: good.servers[:1]}},
		{name: "no servers", info: info, servers: columns, stat: stat, want: snapshot{process: good.process, servers: []server{}}},
		{name: "being replaced", info: replaced(info, "Stopping: 0", "Stopping: 1"), servers: columns, stat: stat,
			want: snapshot{process: good.process, stopping: true, servers: []server{}}},
		{name: "without a start", info: replaced(info, "Start_time_sec", "Start"), servers: columns, stat: stat,
			want: snapshot{process: process{17, 1991}, servers: []server{}}}, // 2000 - 9
		{name: "tracks one of another backend", info: info, servers: two, stat: replaced(twoStats, "servers/s0", "others/s0"),
			want: snapshot{process: good.process, servers: []server{good.servers[0], {name: "s1", admin: 8, weight: 50, backup: true}}}},

		{name: "no backend", info: info, servers: "Can't find backend.", stat: "", reason: churn.NotFound, error: `there is no backend "servers"`},
		{name: "may not ask", info: info, servers: "Permission denied", reason: churn.Forbidden, error: "Permission denied; write level admin on its stats socket line"},
		{name: "no Pid", info: "Name: HAProxy\n", reason: churn.Other, error: `reading the answer to "show info": field Pid: strconv.Atoi: parsing "": invalid syntax; got "Name: HAProxy"`},
		{name: "no start at all", info: "Pid: 1", reason: churn.Other, error: `reading the answer to "show info": field Uptime_sec:`},
		{name: "another version", info: info, servers: replaced(two, "1\n", "2\n"), reason: churn.Other, error: `reading the answer to "show servers state": want version 1; got "2 # be_id`},
		{name: "no columns", info: info, servers: "1\n", reason: churn.Other, error: `reading the answer to "show servers state": want version 1; got "1"`},
		{name: "short row", info: info, servers: columns + "3 servers 1 s0", reason: churn.Other, error: `reading the answer to "show servers state": column srv_admin_state:`},
		{name: "no number", info: info, servers: columns + row("s0", "2 x 1 1"), reason: churn.Other, error: `reading the answer to "show servers state": column srv_admin_state: strconv.Atoi: parsing "x": invalid syntax; got "3 servers 1 s0 127.0.0.1 2 x 1 1"`},
		{name: "another backend", info: info, servers: columns + "4 others 1 s0 127.0.0.1 2 0 1 1", reason: churn.Other, error: `reading the answer to "show servers state": want backend "servers"`},
		{name: "bad name", info: info, servers: columns + row("s0;quit", "2 0 1 1"), reason: churn.Other, error: `reading the answer to "show servers state": want the name of a server`},
		{name: "no stat", info: info, servers: two, stat: "", reason: churn.Other, error: `reading the answer to "show stat": want the names of columns; got ""`},
		{name: "stat without a column", info: info, servers: two, stat: "# pxname,svname,bck", reason: churn.Other, error: `reading the answer to "show stat": want a column "tracked"`},
		{name: "stat of another backend", info: info, servers: two, stat: stat + "others,s0,x,1,1,0,,", reason: churn.Other, error: `reading the answer to "show stat": want a server of backend "servers"`},
		{name: "short stat", info: info, servers: two, stat: stat + "servers,s0", reason: churn.Other, error: `reading the answer to "show stat": want a server of backend "servers"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			trim := func(s string) string { return strings.TrimSuffix(s, "\n") } // as split does
			got, err := parse("servers", []string{trim(test.info), trim(test.servers), trim(test.stat)}, now)
			if test.error != "" {
				if want := test.reason.String() + ": " + test.error; reasonOf(err) != test.reason || !strings.HasPrefix(message(err), want) {
					t.Errorf("got %v\nwant %s", err, want)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(healthy)
	f.Add("")
	f.Add("Unknown command.\n\n\n")
	f.Add(strings.ReplaceAll(healthy, "s0", "s0 s1"))
	f.Fuzz(func(t *testing.T, text string) {
		answers, ok := split(text)
		if !ok || len(answers) != len(questions("servers")) {
			return
		}
		s, err := parse("servers", answers, time.Unix(0, 0))
		if err != nil {
			return
		}
		for _, one := range s.servers {
			if !goodName(one.name) {
				t.Errorf("a server is called %q", one.name)
			}
		}
		if n := s.count(); n > len(s.servers) {
			t.Errorf("%d of %d serve", n, len(s.servers))
		}
	})
}

func TestStates(t *testing.T) {
	tests := []struct {
		name          string
		server        server
		state, forced string
		serves, up    bool
	}{
		{"running", server{op: 2, weight: 1}, ready, ready, true, true},
		{"starting slowly", server{op: 1, weight: 1}, ready, ready, true, true},
		{"down", server{op: 0, weight: 1}, ready, ready, true, false},
		{"stopping, as its check says", server{op: 3, weight: 1}, ready, ready, true, false},
		{"of weight 0", server{op: 2}, ready, ready, false, false},
		{"backup", server{op: 2, weight: 1, backup: true}, ready, ready, false, false},
		{"in maintenance", server{admin: 0x01, weight: 1}, maint, maint, false, false},
		{"disabled in the file", server{admin: 0x05, weight: 1}, maint, maint, false, false},
		{"once disabled in the file", server{op: 2, admin: 0x04, weight: 1}, ready, ready, true, true},
		{"in maintenance with what it tracks", server{admin: 0x02, weight: 1}, maint, ready, false, false},
		{"without an address", server{admin: 0x20, weight: 1}, maint, ready, false, false},
		{"of another name", server{op: 2, admin: 0x40, weight: 1}, ready, ready, true, true},
		{"drained", server{op: 2, admin: 0x08, weight: 1}, drain, drain, false, false},
		{"drained with what it tracks", server{op: 2, admin: 0x10, weight: 1}, drain, ready, false, false},
		{"drained without an address", server{admin: 0x28, weight: 1}, maint, drain, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := test.server
			if s.state() != test.state || s.forced() != test.forced || s.serves() != test.serves || s.up() != test.up {
				t.Errorf("%s, told %s, serves %v, up %v; want %s, %s, %v, %v",
					s.state(), s.forced(), s.serves(), s.up(), test.state, test.forced, test.serves, test.up)
			}
		})
	}
}

func TestProcesses(t *testing.T) {
	a := process{17, 1000}
	tests := []struct {
		name string
		b    process
		same bool
	}{
		{"the same", process{17, 1000}, true},
		{"the same, by whole seconds", process{17, 1002}, true},
		{"the same, the other way", process{17, 998}, true},
		{"of another id", process{18, 1000}, false},
		{"later, in a container", process{17, 1003}, false},
		{"earlier", process{17, 997}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := a.same(test.b); got != test.same {
				t.Errorf("%+v and %+v are the same: %v", a, test.b, got)
			}
		})
	}
}

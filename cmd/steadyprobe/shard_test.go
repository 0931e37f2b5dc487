package main

import (
	"errors"
	"strings"
	"testing"
)

func TestShardIndex(t *testing.T) {
	host := func(name string) func() (string, error) { return func() (string, error) { return name, nil } }
	broken := func() (string, error) { return "", errors.New("no name") }
	for _, row := range []struct {
		name string
		flag string
		pod  string
		host func() (string, error)
		want int
		says string // of the error; empty: none
	}{
		{"a number", "2", "probe-7", broken, 2, ""},
		{"nothing said", "", "probe-7", broken, 0, ""},
		{"the pod's", "auto", "probe-7", broken, 7, ""},
		{"a pod with several dashes", "auto", "team-a-probe-12", broken, 12, ""},
		{"the host's", "auto", "", host("probe-3"), 3, ""},
		{"the host's before its domain", "auto", "", host("probe-3.probe.default.svc-1"), 3, ""},
		{"a pod of a Deployment", "auto", "probe-6d4cf56db6-x2x4v", broken, 0, `finding --shard.index=auto: POD_NAME "probe-6d4cf56db6-x2x4v" does not end in - and a number`},
		{"a host without a number", "auto", "", host("laptop"), 0, `the host name "laptop" does not end in`},
		{"a number without a dash", "auto", "", host("7"), 0, `the host name "7" does not end in`},
		{"a number that is none", "auto", "probe-99999999999", broken, 0, "does not end in - and a number"},
		{"no host name", "auto", "", broken, 0, "reading the host name: no name; set POD_NAME"},
		{"a word", "first", "", broken, 0, `reading --shard.index: "first" is neither a number of 0 or more nor auto`},
		{"below 0", "-1", "", broken, 0, `reading --shard.index: "-1" is neither`},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := &shardIndexValue{text: "0"}
			var err error
			if row.flag != "" {
				err = v.Set(row.flag)
			}
			got := 0
			if err == nil {
				got, err = v.resolve(row.pod, row.host)
			}
			if got != row.want || (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %d and error %v, want %d and %q", got, err, row.want, row.says)
			}
		})
	}
}

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/steadyprobe/steadyprobe/app"
)

// autoIndex is the index of a shard that the name of its pod says.
const autoIndex = "auto"

// addShardFlags adds the flags of scale-out to a command, and returns what tells
// which shard they say.
func addShardFlags(c *kingpin.CmdClause) func() (app.Shard, error) {
	index := &shardIndexValue{text: "0"}
	c.Flag("shard.index", "Which of the processes that share the load this is, from 0, or auto: the number at the end of the pod's name, as a StatefulSet gives it (POD_NAME, or the host name).").Default("0").SetValue(index)
	count := &countValue{n: 1, flag: "--shard.count"}
	c.Flag("shard.count", "How many processes with the same configuration share the load.").Default("1").SetValue(count)
	return func() (app.Shard, error) {
		n, err := index.resolve(os.Getenv("POD_NAME"), os.Hostname)
		return app.Shard{Index: n, Count: count.n}, err
	}
}

// shardIndexValue is the index of a shard, or auto.
type shardIndexValue struct{ text string }

// Set takes what the command line says.
func (v *shardIndexValue) Set(text string) error {
	if n, err := strconv.Atoi(text); text != autoIndex && (err != nil || n < 0) {
		return fmt.Errorf("reading --shard.index: %q is neither a number of 0 or more nor auto; write for example 0", text)
	}
	v.text = text
	return nil
}

func (v *shardIndexValue) String() string { return v.text }

// resolve returns the index. Where it is to be found out, it is that of pod,
// or of the host where there is none.
func (v *shardIndexValue) resolve(pod string, host func() (string, error)) (int, error) {
	if v.text != autoIndex {
		return strconv.Atoi(v.text)
	}
	name, what := pod, "POD_NAME"
	if name == "" {
		what = "the host name"
		var err error
		if name, err = host(); err != nil {
			return 0, fmt.Errorf("finding --shard.index=auto: reading the host name: %w; set POD_NAME, or write the index", err)
		}
	}
	short, _, _ := strings.Cut(name, ".") // a host may have a domain
	dash := strings.LastIndexByte(short, '-')
	n, err := strconv.ParseUint(short[dash+1:], 10, 31)
	if dash < 0 || err != nil {
		return 0, fmt.Errorf("finding --shard.index=auto: %s %q does not end in - and a number, as that of a StatefulSet's pod does; write the index", what, name)
	}
	return int(n), nil
}

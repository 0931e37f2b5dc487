package main

import (
	"fmt"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"

	"github.com/steadyprobe/steadyprobe/app"
	"github.com/steadyprobe/steadyprobe/config"
)

// addStorageFlags adds the flags of what is kept on disk to a command, and
// returns what tells what they say.
func addStorageFlags(c *kingpin.CmdClause) func() app.Storage {
	path := c.Flag("storage.path", "Folder for what outlives the process: the history of targets, and the notes of churns that have no place of their own for them. Without it nothing is kept.").PlaceHolder("FOLDER").String()
	interval := &choiceValue{flag: "--storage.interval", words: []string{"10s", "1m", "5m", "off"}}
	c.Flag("storage.interval", "Length of an interval of the history: "+wordList(interval.words)+", which keeps none.").Default("1m").SetValue(interval)
	age := &ageValue{flag: "--storage.retention.time"}
	c.Flag("storage.retention.time", "How long the history is kept, such as 15d; 0 for as long as there is room.").Default("15d").SetValue(age)
	size := &sizeValue{flag: "--storage.retention.size"}
	c.Flag("storage.retention.size", "How large the history may become, such as 500MiB; the oldest days go first. 0 for no limit.").Default("1GiB").SetValue(size)
	return func() app.Storage {
		every, _ := time.ParseDuration(interval.word) // it is one of the words; off is 0
		return app.Storage{Path: *path, Interval: every, MaxAge: age.Duration, MaxSize: int64(size.Size)}
	}
}

// ageValue is a duration that may be of days, weeks and years.
type ageValue struct {
	time.Duration
	flag string
}

// Set takes what the command line says.
func (v *ageValue) Set(text string) error {
	d, err := model.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("reading %s: %q is not a duration; write one such as 12h, 15d or 1y", v.flag, text)
	}
	v.Duration = time.Duration(d)
	return nil
}

func (v *ageValue) String() string { return model.Duration(v.Duration).String() }

// sizeValue is a number of bytes.
type sizeValue struct {
	config.Size
	flag string
}

// Set takes what the command line says.
func (v *sizeValue) Set(text string) (err error) {
	if v.Size, err = config.ParseSize(text); err != nil {
		return fmt.Errorf("reading %s: %w", v.flag, err)
	}
	return nil
}

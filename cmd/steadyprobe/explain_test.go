package main

import (
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"
)

// FuzzArguments has any words for a command line explained and completed.
// What is explained must not show the URLs that were among them.
func FuzzArguments(f *testing.F) {
	for _, line := range []string{
		"", "run -R 5 http://u:hunter2@x/?hunter2", "run --rate", "--log.level", "-- run", "help rnu", "chekc\nx.yml", "-", "run -R=5",
		"run --reuse=false", "http://u:hunter2@x/", "run -R http://u:hunter2@x/", "--completion-script-tcsh", "complete -- run --pacing =", "–rate", "run -\xff",
	} {
		f.Add(strings.ReplaceAll(line, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		// Not what does something.
		app := kingpin.New("steadyprobe", about).UsageWriter(io.Discard).ErrorWriter(io.Discard).Terminate(func(int) {})
		addCommands(app, io.Discard, new(console))
		if _, err := app.ParseContext(nil); err != nil {
			t.Fatal(err)
		}
		model := app.Model()
		for _, s := range complete(model, args) {
			if s.word == "" {
				t.Errorf("an empty word may be written next")
			}
		}
		err := misspelled(model, args)
		if err == nil {
			if _, err = app.ParseContext(args); err != nil {
				err = explained(model, args, err)
			}
		}
		if err == nil {
			return
		}
		text := withoutURLs(err.Error(), args)
		for _, a := range args {
			if _, rest, ok := strings.Cut(a, "://"); ok && rest != "" && strings.Contains(text, "://"+rest) {
				t.Errorf("a URL is shown: %s", text)
			}
		}
	})
}

func TestWithoutURLs(t *testing.T) {
	for _, row := range []struct{ name, arg, message, want string }{
		{"alone", "http://u:p@x/", `unexpected http://u:p@x/`, "unexpected a URL"},
		{"as a value", "--rate=http://u:p@x/?a=b", `"http://u:p@x/?a=b" is no rate`, `"a URL" is no rate`},
		{"as a value of a short flag", "-Rhttp://u:p@x/", `"http://u:p@x/" is no rate`, `"a URL" is no rate`},
		{"as a flag", "--http://u:p@x/", "there is no flag --http://u:p@x/", "there is no flag a URL"},
		{"quoted otherwise", "http://u:p\"\xff@x/", `"http://u:p\"\xff@x/" is no rate`, `"a URL" is no rate`},
		{"the example beside it", "http://u:p@x/", "write http://127.0.0.1:8080/", "write http://127.0.0.1:8080/"},
		{"only a scheme", "http://", "write http:// in front", "write http:// in front"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := withoutURLs(row.message, []string{row.arg}); got != row.want {
				t.Errorf("it is %q, want %q", got, row.want)
			}
		})
	}
}

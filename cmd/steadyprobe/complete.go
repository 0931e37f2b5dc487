package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kingpin/v2"
)

// The scripts of the shells leave to the program what may come next. The
// library's own way knows no values behind an equals sign and, where a command
// is the default, no commands.

//go:embed completion
var completionScripts embed.FS

// addCompletion adds the command that prints a shell's script.
func addCompletion(kp *kingpin.Application, stdout io.Writer, _ *console) (string, command) {
	c := kp.Command("completion", "Print the script that lets a shell complete the command line.").HelpLong(completionHelp)
	shell := &choiceValue{flag: "the shell", words: []string{"bash", "zsh", "fish"}}
	c.Arg("shell", "The shell: "+wordList(shell.words)+".").Required().SetValue(shell)
	return c.FullCommand(), command{do: func(context.Context, *slog.Logger) error {
		script, err := completionScripts.ReadFile("completion/steadyprobe." + shell.word)
		if err != nil {
			return fmt.Errorf("reading the script: %w", err)
		}
		_, err = stdout.Write(script)
		return err
	}}
}

// usualCompletion returns the arguments with the flags that print a script in
// programs around Prometheus as the command that does.
func usualCompletion(args []string) []string {
	if len(args) == 1 {
		if shell, ok := strings.CutPrefix(args[0], "--completion-script-"); ok {
			return []string{"completion", shell}
		}
	}
	return args
}

// addComplete adds the command that the scripts call: its arguments are the
// words of the command line, the one that is being written last.
func addComplete(kp *kingpin.Application, stdout io.Writer, _ *console) (string, command) {
	c := kp.Command("complete", "Print what may be written next, for the scripts of the command completion.").Hidden()
	words := c.Arg("word", "Words of the command line.").Strings()
	return c.FullCommand(), command{do: func(context.Context, *slog.Logger) error {
		for _, s := range complete(kp.Model(), *words) {
			if _, err := fmt.Fprintf(stdout, "%s\t%s\n", s.word, s.about); err != nil {
				return err
			}
		}
		return nil
	}}
}

// suggestion is a word that may be written next, or fileNames.
type suggestion struct{ word, about string }

// fileNames stands for the names of all files. The words that go in front of
// it are in about.
const fileNames = ":files"

// complete returns what the last of the words of a command line may become.
func complete(app *kingpin.ApplicationModel, words []string) []suggestion {
	words = joined(words)
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	at := position{app: app}
	for _, w := range words[:len(words)-1] {
		at.pass(w)
	}
	flag, value, hasValue := strings.Cut(last, "=")
	switch {
	case at.awaits != nil:
		return valuesOf(at.awaits.Name, at.awaits.PlaceHolder, at.awaits.Value, "", last)
	case at.onlyArguments || !strings.HasPrefix(last, "-"):
		return at.arguments(last)
	case hasValue:
		if f := findFlag(flagsWith(app, at.command), flag); f != nil && !f.IsBoolFlag() {
			return valuesOf(f.Name, f.PlaceHolder, f.Value, flag+"=", value)
		}
		return nil
	}
	return flagsLike(flagsWith(app, at.command), last)
}

// joined puts together what bash takes apart at equals signs and colons.
func joined(words []string) []string {
	var all []string
	open := false
	for _, w := range words {
		breaks := w != "" && strings.Trim(w, "=:") == ""
		if (breaks || open) && len(all) > 0 {
			all[len(all)-1] += w
		} else {
			all = append(all, w)
		}
		open = breaks
	}
	return all
}

// position is where on the command line a word stands.
type position struct {
	app           *kingpin.ApplicationModel
	command       *kingpin.CmdModel
	awaits        *kingpin.FlagModel // the flag whose value it is
	onlyArguments bool               // behind --
	count         int                // of arguments in front of it
	noCommand     bool               // a flag of the default command was there
}

// pass goes on behind a word.
func (p *position) pass(word string) {
	switch {
	case p.awaits != nil:
		p.awaits = nil
	case p.onlyArguments || word == "-" || !strings.HasPrefix(word, "-"):
		if p.command == nil && !p.noCommand {
			p.command = commandOf(p.app, word)
			p.noCommand = p.command == nil
			return
		}
		p.count++
	case word == "--":
		p.onlyArguments = true
	default:
		f := findFlag(flagsWith(p.app, p.command), word)
		if p.command == nil && f != nil && findFlag(p.app.Flags, word) == nil {
			p.noCommand = true
		}
		if f != nil && takesNext(f, word) {
			p.awaits = f
		}
	}
}

// arguments returns what an argument that is not a flag may be.
func (p *position) arguments(prefix string) []suggestion {
	if p.command == nil || p.command.Name == "help" {
		if p.noCommand || p.count > 0 {
			return nil
		}
		var all []suggestion
		for _, c := range shownCommands(p.app.Commands) {
			all = appendLike(all, c.Name, c.Help, prefix)
		}
		return all
	}
	args := p.command.Args
	switch {
	case len(args) == 0:
		return nil
	case p.count < len(args):
		a := args[p.count]
		return valuesOf(a.Name, a.PlaceHolder, a.Value, "", prefix)
	case repeatable(args[len(args)-1].Value):
		a := args[len(args)-1]
		return valuesOf(a.Name, a.PlaceHolder, a.Value, "", prefix)
	}
	return nil
}

// valuesOf returns the values of a flag or an argument that begin with prefix,
// each with what goes in front of it.
func valuesOf(name, placeHolder string, value kingpin.Value, front, prefix string) []suggestion {
	if c, ok := value.(interface{ Choices() []string }); ok {
		var all []suggestion
		for _, w := range c.Choices() {
			if strings.HasPrefix(w, prefix) {
				all = append(all, suggestion{word: front + w})
			}
		}
		return all
	}
	if placeHolder == "FILE" || strings.HasSuffix(name, "file") {
		return []suggestion{{word: fileNames, about: front}}
	}
	return nil
}

// flagsLike returns the flags that begin with prefix. The equals sign behind
// one that has a value says that more is to come.
func flagsLike(flags []*kingpin.FlagModel, prefix string) []suggestion {
	var all []suggestion
	for _, f := range flags {
		switch {
		case f.Hidden:
		case !f.IsBoolFlag():
			all = appendLike(all, "--"+f.Name+"=", f.Help, prefix)
		default:
			all = appendLike(all, "--"+f.Name, f.Help, prefix)
			if isOn(f) {
				all = appendLike(all, "--no-"+f.Name, f.Help, prefix)
			}
		}
	}
	return all
}

// appendLike appends a word that begins with prefix, and its help in short.
func appendLike(all []suggestion, word, help, prefix string) []suggestion {
	if !strings.HasPrefix(word, prefix) {
		return all
	}
	const most = 70 // characters
	if end := strings.Index(help, ". "); end >= 0 {
		help = help[:end]
	}
	help = strings.TrimSuffix(help, ".")
	if utf8.RuneCountInString(help) > most {
		help = string([]rune(help)[:most-1]) + "…"
	}
	return append(all, suggestion{word, help})
}

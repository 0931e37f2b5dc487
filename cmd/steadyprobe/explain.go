package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kingpin/v2"
)

// namedCommand returns the command that the arguments begin with, if they do:
// nil stands for the one that needs no name.
func namedCommand(app *kingpin.ApplicationModel, args []string) *kingpin.CmdModel {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			return commandOf(app, args[i])
		}
		f := findFlag(app.Flags, args[i])
		if f == nil {
			return nil
		}
		if !f.IsBoolFlag() && !strings.Contains(args[i], "=") {
			i++ // its value
		}
	}
	return nil
}

// commandOf returns the command of a name, or nil. What is hidden counts as
// none.
func commandOf(app *kingpin.ApplicationModel, name string) *kingpin.CmdModel {
	for _, c := range app.Commands {
		if c.Name == name && !c.Hidden {
			return c
		}
	}
	return nil
}

// defaultCommand returns the command that needs no name, or nil.
func defaultCommand(app *kingpin.ApplicationModel) *kingpin.CmdModel {
	for _, c := range app.Commands {
		if c.Default {
			return c
		}
	}
	return nil
}

// flagsWith returns the flags that may be written with a command, its own
// first; nil is the command that needs no name.
func flagsWith(app *kingpin.ApplicationModel, c *kingpin.CmdModel) []*kingpin.FlagModel {
	if c == nil {
		c = defaultCommand(app)
	}
	var all []*kingpin.FlagModel
	if c != nil {
		all = append(all, c.Flags...)
	}
	return append(all, app.Flags...)
}

// findFlag returns the flag that an argument names, in its long or short form,
// with or without a value, or nil.
func findFlag(flags []*kingpin.FlagModel, arg string) *kingpin.FlagModel {
	long, isLong := strings.CutPrefix(arg, "--")
	long, _, _ = strings.Cut(long, "=")
	short, _ := utf8.DecodeRuneInString(strings.TrimPrefix(arg, "-"))
	for _, f := range flags {
		switch {
		case !isLong && len(arg) > 1 && f.Short == short:
			return f
		case isLong && (f.Name == long || f.IsBoolFlag() && "no-"+f.Name == long):
			return f
		}
	}
	return nil
}

// misspelled returns an error for what the library would take for something
// else, or does not see at all: a value of a flag that has none, which it takes
// for an argument of the command, a value that is missing at the end, a single
// hyphen, an equals sign behind a short flag, and a hyphen that a text program
// has made a dash.
func misspelled(app *kingpin.ApplicationModel, args []string) error {
	command := namedCommand(app, args)
	if command != nil && command.Name == "help" {
		return unknownTopic(app, args)
	}
	flags := flagsWith(app, command)
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		arg := args[i]
		if strings.HasPrefix(arg, "–") || strings.HasPrefix(arg, "—") {
			return errors.New("an argument begins with a dash that is no hyphen; write it anew, with -- in front of a flag")
		}
		name, _, hasValue := strings.Cut(arg, "=")
		f := findFlag(flags, arg)
		switch {
		case !strings.HasPrefix(arg, "-") || arg == "-":
		case !strings.HasPrefix(arg, "--") && findFlag(flags, "-"+name) != nil && utf8.RuneCountInString(name) > 2:
			return fmt.Errorf("%s has one hyphen; write -%s", name, name)
		case f == nil:
		case hasValue && f.IsBoolFlag():
			return takesNoValue(f, name)
		case hasValue && name == "-"+string(f.Short):
			return fmt.Errorf("%s has an equals sign; write %s VALUE or --%s=VALUE", name, name, f.Name)
		case takesNext(f, arg):
			i++
			if i == len(args) || len(args[i]) > 1 && args[i][0] == '-' {
				return fmt.Errorf("%s has no value; write --%s=VALUE, also for one that begins with a hyphen", arg, f.Name)
			}
		}
	}
	return nil
}

// takesNoValue says how a flag is written that is on or off.
func takesNoValue(f *kingpin.FlagModel, name string) error {
	if isOn(f) {
		return fmt.Errorf("%s takes no value; write --%s or --no-%s", name, f.Name, f.Name)
	}
	return fmt.Errorf("%s takes no value; write --%s or leave it away", name, f.Name)
}

// takesNext reports whether the value of a flag is the argument behind it.
func takesNext(f *kingpin.FlagModel, arg string) bool {
	if f.IsBoolFlag() {
		return false
	}
	if strings.HasPrefix(arg, "--") {
		return !strings.Contains(arg, "=")
	}
	return utf8.RuneCountInString(arg) == 2
}

// unknownTopic returns an error where help is asked for about a command that
// there is not.
func unknownTopic(app *kingpin.ApplicationModel, args []string) error {
	_, topics, _ := cutAt(args, "help")
	for _, name := range topics {
		if !strings.HasPrefix(name, "-") && commandOf(app, name) == nil {
			return unknownCommand(app, name)
		}
	}
	return nil
}

// cutAt splits arguments around the first that is the separator.
func cutAt(args []string, separator string) (before, after []string, found bool) {
	for i, a := range args {
		if a == separator {
			return args[:i], args[i+1:], true
		}
	}
	return args, nil, false
}

// explained returns what is wrong with the command line, where the library's
// own words do not help.
func explained(app *kingpin.ApplicationModel, args []string, err error) error {
	text := err.Error()
	command := namedCommand(app, args)
	for _, kind := range []string{"long", "short"} {
		if name, ok := quotedAfter(text, "unknown "+kind+" flag "); ok {
			return unknownFlag(app, command, name)
		}
	}
	if name, ok := quotedAfter(text, "flag "); ok {
		if name, ok := strings.CutSuffix(name, "' cannot be repeated"); ok {
			return fmt.Errorf("--%s is there more than once; write it once", name)
		}
	}
	if name, ok := quotedAfter(text, "required argument "); ok {
		return missingArgument(command, strings.TrimSuffix(name, "' not provided"))
	}
	if word, ok := strings.CutPrefix(text, "unexpected "); ok {
		return unexpected(app, command, word)
	}
	return err
}

// quotedAfter returns what stands in single quotes behind a prefix.
func quotedAfter(text, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(text, prefix+"'")
	return strings.TrimSuffix(rest, "'"), ok
}

// missingArgument says how a command is written that lacks an argument.
func missingArgument(command *kingpin.CmdModel, name string) error {
	text := fmt.Sprintf("the argument <%s> is missing", name)
	if command == nil {
		return errors.New(text)
	}
	_, example, _ := strings.Cut(command.HelpLong, "Examples:\n")
	example, _, _ = strings.Cut(example, "\n")
	example, _, _ = strings.Cut(example, " #")
	return fmt.Errorf("%s; write for example %s", text, strings.TrimSpace(example))
}

// unknownFlag says whose flag it is, or which one is like it.
func unknownFlag(app *kingpin.ApplicationModel, command *kingpin.CmdModel, name string) error {
	own := flagsWith(app, command)
	if f := findFlag(own, "--"+strings.TrimPrefix(name, "--no-")); f != nil && strings.HasPrefix(name, "--no-") {
		return fmt.Errorf("--%s cannot be switched off; write --%s=VALUE or leave it away", f.Name, f.Name)
	}
	for _, c := range app.Commands {
		if findFlag(c.Flags, name) == nil || c.Hidden {
			continue
		}
		if command == nil {
			return fmt.Errorf("%s is a flag of the command %s; write steadyprobe %s in front of it", name, c.Name, c.Name)
		}
		return fmt.Errorf("%s is a flag of the command %s, not of %s", name, c.Name, command.Name)
	}
	var names []string
	for _, f := range own {
		if f.Hidden {
			continue
		}
		names = append(names, "--"+f.Name)
		if isOn(f) {
			names = append(names, "--no-"+f.Name)
		}
	}
	if like, ok := nearest(name, names); ok {
		return fmt.Errorf("there is no flag %s; did you mean %s?", name, like)
	}
	return fmt.Errorf("there is no flag %s", name)
}

// plainWord is what may be a command or a file's name, and no secret.
var plainWord = regexp.MustCompile(`^[\w./-]{1,40}$`)

// unexpected says what an argument may have been meant as that the command
// does not take.
func unexpected(app *kingpin.ApplicationModel, command *kingpin.CmdModel, word string) error {
	switch u, err := url.Parse(word); {
	case command != nil && len(command.Args) > 0:
		return fmt.Errorf("the command %s does not take so many arguments; take away the last", command.Name)
	case err == nil && u.Scheme != "" && u.Host != "":
		return errors.New("a URL is not of use here; to measure that door once, write steadyprobe run URL")
	case !plainWord.MatchString(word):
		return errors.New("an argument is not of use here; to measure a door, write steadyprobe run URL")
	case commandOf(app, word) != nil && command != nil:
		return fmt.Errorf("%s is another command than %s; write one of them", word, command.Name)
	case commandOf(app, word) != nil:
		return fmt.Errorf("%s is a command and comes first; the flags in front of it are those of the command serve, which is the default", word)
	case filepath.Ext(word) == ".yml" || filepath.Ext(word) == ".yaml":
		return fmt.Errorf("%s is not of use here; write steadyprobe --config.file=%s for the daemon, or steadyprobe check %s", word, word, word)
	case command != nil:
		return fmt.Errorf("%s is not of use here: the command %s takes flags only", word, command.Name)
	}
	return unknownCommand(app, word)
}

// unknownCommand says which command is like a word, or which there are.
func unknownCommand(app *kingpin.ApplicationModel, word string) error {
	var names []string
	for _, c := range shownCommands(app.Commands) {
		names = append(names, c.Name)
	}
	if !plainWord.MatchString(word) {
		word = "like that"
	}
	if like, ok := nearest(word, names); ok {
		return fmt.Errorf("there is no command %s; did you mean %s?", word, like)
	}
	return fmt.Errorf("there is no command %s; write %s", word, wordList(names))
}

// withoutURLs returns a message about the arguments without the URLs in them,
// because these may hold a password.
func withoutURLs(message string, args []string) string {
	for _, a := range args {
		_, rest, ok := strings.Cut(a, "://")
		if !ok || rest == "" {
			continue
		}
		// As it is, and as %q writes it.
		for _, r := range []string{rest, strings.Trim(strconv.Quote(rest), `"`)} {
			for {
				before, after, found := strings.Cut(message, "://"+r)
				if !found {
					break
				}
				message = strings.TrimRightFunc(before, partOfScheme) + "a URL" + after
			}
		}
	}
	return message
}

// partOfScheme reports whether a character may be in front of "://".
func partOfScheme(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("+.-", r)
}

package test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// A block of shell in a page says in its info string, which readers do not
// see, what the tests do with it:
//
//	```sh run                      it is run, and must succeed
//	```sh background ADDRESS       it is started as in a terminal of its own,
//	                               awaited until ADDRESS answers, and ended
//	                               with the page; ADDRESS is http://… or
//	                               HOST:PORT
//	```sh manual                   it is not run: it installs something, takes
//	                               minutes or needs what only the reader has
//
// The blocks of a page are run in their order, in one shell, in a copy of the
// repository.

// block is a fenced block of a page.
type block struct {
	page string // its path in the repository
	line int    // of the opening fence
	info []string
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// kind is the second word of the info string.
func (b block) kind() string {
	if len(b.info) < 2 {
		return ""
	}
	return b.info[1]
}

// fence is the line that opens or closes a block (CommonMark, section 4.5).
var fence = regexp.MustCompile("^( *)(`{3,}|~{3,})([^`]*)$")

// blocksOf returns the fenced blocks of a page.
func blocksOf(page, text string) ([]block, error) {
	var all []block
	var open *block
	var indent, marks string
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil:
			open = &block{page: page, line: i + 1, info: strings.Fields(m[3])}
			indent, marks = m[1], m[2]
		case open == nil:
		case m != nil && strings.TrimSpace(m[3]) == "" && strings.HasPrefix(m[2], marks):
			all = append(all, *open)
			open = nil
		default:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%v has no end", *open)
	}
	return all, nil
}

// command is how a line begins that somebody is meant to type.
var command = regexp.MustCompile(`(?m)^(\$ |\./|scripts/|(apt-get|buildah|cd|curl|docker|export|git|go|kubectl|make|oc|podman|promtool|steadyprobe|sudo)( |$))`)

// complaint returns what is wrong with the info string of a block, or nothing.
func complaint(b block) string {
	language := ""
	if len(b.info) > 0 {
		language = b.info[0]
	}
	shell := slices.Contains([]string{"bash", "console", "fish", "shell", "zsh"}, language)
	switch {
	case shell:
		return "write sh in place of " + language
	case language == "" && command.MatchString(b.text):
		return "it looks like shell; write sh and run, background or manual, or text where it is none"
	case language != "sh":
		return ""
	}
	switch arguments := len(b.info) - 2; b.kind() {
	case "run", "manual":
		if arguments != 0 {
			return "nothing stands behind " + b.kind()
		}
	case "background":
		if arguments != 1 {
			return "write the address that answers when it is ready behind background"
		}
	default:
		return "write run, background ADDRESS or manual behind sh"
	}
	return ""
}

// pages returns the pages that a user reads, by their paths in the repository.
func pages(t *testing.T) []string {
	t.Helper()
	root := testbed.Root(t)
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "docs/doors/*.md", "docs/runbooks/*.md", "bench/*.md", "alerts/*.md", "dashboards/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			page, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, filepath.ToSlash(page))
		}
	}
	return all
}

// pageBlocks returns the blocks of shell of a page.
func pageBlocks(t *testing.T, page string) []block {
	t.Helper()
	all, err := blocksOf(page, read(t, filepath.Join(testbed.Root(t), page)))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(b block) bool { return complaint(b) == "" && (len(b.info) == 0 || b.info[0] != "sh") })
}

// TestShellBlocksSayWhatTheyAre fails for a block of shell that is neither run
// nor said not to be.
func TestShellBlocksSayWhatTheyAre(t *testing.T) {
	kinds := map[string]int{}
	for _, page := range pages(t) {
		for _, b := range pageBlocks(t, page) {
			if text := complaint(b); text != "" {
				t.Errorf("%v: %s:\n%s", b, text, b.text)
				continue
			}
			kinds[b.kind()]++
			if b.kind() == "manual" {
				t.Logf("%v is not run:\n%s", b, b.text)
			}
		}
	}
	if kinds["run"] == 0 {
		t.Errorf("of all pages no block is run, there are %v", kinds)
	}
}

func TestBlocksOf(t *testing.T) {
	const text = "# Page\n```\nscheduled = completed\n```\n\n- item\n\n  ```sh run\n  make \\\n    build\n  ```\n\n````markdown\n```sh\nmake\n```\n````\n~~~sh manual\n```\n~~~\n"
	got, err := blocksOf("page.md", text)
	if err != nil {
		t.Fatal(err)
	}
	want := []block{
		{"page.md", 2, nil, "scheduled = completed\n"},
		{"page.md", 8, []string{"sh", "run"}, "make \\\n  build\n"},
		{"page.md", 13, []string{"markdown"}, "```sh\nmake\n```\n"},
		{"page.md", 18, []string{"sh", "manual"}, "```\n"},
	}
	if !slices.EqualFunc(got, want, func(a, b block) bool {
		return a.page == b.page && a.line == b.line && slices.Equal(a.info, b.info) && a.text == b.text
	}) {
		t.Errorf("found %q, want %q", got, want)
	}
	if _, err := blocksOf("page.md", "```sh run\nmake\n"); err == nil || err.Error() != "page.md:1 has no end" {
		t.Errorf("a block without an end: %v", err)
	}
}

func TestComplaint(t *testing.T) {
	for _, row := range []struct{ name, info, text, want string }{
		{"run", "sh run", "make\n", ""},
		{"background", "sh background http://127.0.0.1:1/", "steadyprobe\n", ""},
		{"manual", "sh manual", "make bench\n", ""},
		{"another language", "yaml", "make: 1\n", ""},
		{"a formula", "", "scheduled = completed + in flight\n", ""},
		{"a formula of a word that is a command", "", "gone = opened - idle\n", ""},
		{"text that is called so", "text", "steadyprobe run URL\n", ""},
		{"no kind", "sh", "make\n", "write run, background ADDRESS or manual behind sh"},
		{"an unknown kind", "sh later", "make\n", "write run, background ADDRESS or manual behind sh"},
		{"background without an address", "sh background", "steadyprobe\n", "write the address that answers when it is ready behind background"},
		{"a word too many", "sh run twice", "make\n", "nothing stands behind run"},
		{"another name for shell", "bash run", "make\n", "write sh in place of bash"},
		{"no language, a command", "", "# what\nsteadyprobe run URL\n", "it looks like shell; write sh and run, background or manual, or text where it is none"},
		{"no language, a command alone", "", "make\n", "it looks like shell; write sh and run, background or manual, or text where it is none"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := complaint(block{info: strings.Fields(row.info), text: row.text}); got != row.want {
				t.Errorf("complains %q, want %q", got, row.want)
			}
		})
	}
}

package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// TestLinksOfThePages follows every relative link of the pages, to the heading
// where it names one.
func TestLinksOfThePages(t *testing.T) {
	root := testbed.Root(t)
	all := pages(t)
	links := 0
	for _, name := range all {
		page := filepath.Join(root, name)
		for _, match := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(read(t, page), -1) {
			link := match[1]
			if strings.Contains(link, "://") {
				continue
			}
			links++
			file, heading, _ := strings.Cut(link, "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which there is not", page, link)
			} else if heading != "" && !anchors(read(t, target))[heading] {
				t.Errorf("%s links to %s, whose heading there is not", page, link)
			}
		}
	}
	if links < 20 {
		t.Errorf("found %d links in %d pages, which is too few to be all", links, len(all))
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anchors returns the names that a page's headings have as link targets.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

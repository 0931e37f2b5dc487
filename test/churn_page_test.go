package test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// TestProofsOfTheChurnPage looks up every test that docs/CHURN.md names as the
// proof of a rule.
func TestProofsOfTheChurnPage(t *testing.T) {
	root := testbed.Root(t)
	page := read(t, filepath.Join(root, "docs", "CHURN.md"))
	_, rules, found := strings.Cut(page, "\n## What keeps it safe\n")
	rules, _, ended := strings.Cut(rules, "\n## ")
	if !found || !ended {
		t.Fatal("docs/CHURN.md has no chapter on what keeps it safe")
	}
	proof := regexp.MustCompile("`(Test\\w+)` \\(([a-z/]+)\\)")
	proven := 0
	for line := range strings.Lines(rules) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| rule |") {
			continue
		}
		proofs := proof.FindAllStringSubmatch(cells[2], -1)
		if len(proofs) == 0 {
			t.Errorf("nothing proves %q", cells[0])
		}
		for _, p := range proofs {
			if !declares(t, filepath.Join(root, p[2]), p[1]) {
				t.Errorf("%s has no %s, which is to prove %q", p[2], p[1], cells[0])
			}
		}
		proven++
	}
	if proven < 15 {
		t.Errorf("found %d rules, which is too few to be all", proven)
	}
}

// TestConfigurationsOfTheChurnPage loads what the page gives as a configuration.
func TestConfigurationsOfTheChurnPage(t *testing.T) {
	loaded := 0
	for _, b := range blocksIn(t, filepath.Join("docs", "CHURN.md"), "yaml") {
		if !strings.Contains(b.text, "churns:") {
			continue // of another program
		}
		loaded++
		if _, warnings, err := config.Parse([]byte(b.text), b.String()); err != nil || len(warnings) != 0 {
			t.Errorf("%v, warnings %v; want neither", err, warnings)
		}
	}
	if loaded == 0 {
		t.Error("docs/CHURN.md has no configuration")
	}
}

// declares reports whether a test is in one of the files of a folder.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.Contains(read(t, file), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}

// TestExamplesOfChurns loads every example, without an error and without a
// warning: each is a dry run until somebody says otherwise.
func TestExamplesOfChurns(t *testing.T) {
	root := testbed.Root(t)
	files, err := filepath.Glob(filepath.Join(root, "examples", "churn", "*.yml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found %v, %v; want some examples", files, err)
	}
	for _, file := range files {
		loaded, warnings, err := config.Load(file)
		if err != nil || len(warnings) != 0 {
			t.Errorf("%s: %v, warnings %v; want neither", file, err, warnings)
			continue
		}
		if len(loaded.Churns) == 0 {
			t.Errorf("%s has no churn", file)
		}
		for i := range loaded.Churns {
			if !loaded.Churns[i].DryRun {
				t.Errorf("%s: churn %q would scale what it is copied for", file, loaded.Churns[i].Name)
			}
		}
	}
}

package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rereadable writes a configuration that names files, and those.
func rereadable(t *testing.T) (folder, file string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range map[string]string{
		"token": "first\n", "key": "k1", "body": "12345", "user": "u", "password": "p",
		"steadyprobe.yml": `targets:
  - name: one
    url: http://127.0.0.1:1/
    rate: 1
    http: {method: POST, body_file: body, authorization: {credentials_file: token}, headers: {A: {values: [v], files: [key]}}}
  - name: two
    url: http://127.0.0.1:1/
    rate: 1
    http: {basic_auth: {username_file: user, password_file: password}}
  - {name: three, url: "tcp://127.0.0.1:1", rate: 1, tcp: {send_file: body, expect: x}}
  - {name: four, url: "http://127.0.0.1:1/", rate: 1}
`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, filepath.Join(folder, "steadyprobe.yml")
}

func TestFilesOfAConfiguration(t *testing.T) {
	t.Parallel()
	folder, file := rereadable(t)
	c, _, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"body", "key", "password", "token", "user"} {
		want = append(want, filepath.Join(folder, name))
	}
	if got := c.Files(); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	traffic := map[string]int{"one": 3, "two": 2, "three": 1, "four": 0}
	for i := range c.Targets {
		if got := c.Targets[i].TrafficFiles(); len(got) != traffic[c.Targets[i].Name] {
			t.Errorf("target %s has the files %v", c.Targets[i].Name, got)
		}
	}
	if got := Checksum(file, c.Files()); got != c.Sum() {
		t.Error("the sum of files that have not changed is another one")
	}
	for _, name := range []string{"key", "steadyprobe.yml"} {
		before, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range []func(path string) error{
			func(path string) error { return os.WriteFile(path, []byte("xx"), 0o600) }, // as long as it was, or not
			os.Remove,
		} {
			if err := change(filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
			if Checksum(file, c.Files()) == c.Sum() {
				t.Errorf("a change of %s changes no sum", name)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, name), before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if Checksum(file, c.Files()) != c.Sum() {
		t.Error("the sum of what is as it was is another one")
	}
	// What a bad configuration names is known too: one of the files may be what is
	// wrong with it.
	if err := os.Remove(filepath.Join(folder, "token")); err != nil {
		t.Fatal(err)
	}
	_, _, err = Load(file)
	problems, ok := errors.AsType[*Errors](err)
	if !ok || !slices.Equal(problems.Files, want) || problems.Sum != Checksum(file, want) || problems.Sum == c.Sum() {
		t.Errorf("the files of %v are not told", err)
	}
	_, _, err = Load(filepath.Join(folder, "missing"))
	if problems, ok = errors.AsType[*Errors](err); !ok || problems.Sum != Checksum(filepath.Join(folder, "missing"), nil) {
		t.Errorf("%v has no sum", err)
	}
}

func TestReloadTraffic(t *testing.T) {
	t.Parallel()
	folder, file := rereadable(t)
	c, _, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	one := &c.Targets[0]
	if same, err := one.ReloadTraffic(); err != nil || !same.Equal(one) {
		t.Errorf("files that have not changed make another target, %v", err)
	}
	for name, text := range map[string]string{"token": "second", "key": "k2", "body": "1", "user": "v", "password": "q"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reveal := func(t *Target) (all string) {
		for _, h := range t.HeaderFields() {
			all += h.Name + "=" + h.Value.Reveal() + " "
		}
		return all + t.HTTP.Content().Reveal() + t.TCP.Content().Reveal()
	}
	for i, want := range [][2]string{
		{"A=v A=k1 Authorization=Bearer first 12345", "A=v A=k2 Authorization=Bearer second 1"},
		{"Authorization=Basic dTpw ", "Authorization=Basic djpx "}, // u:p, v:q
		{"12345", "1"},
		{"", ""},
	} {
		before := &c.Targets[i]
		fresh, err := before.ReloadTraffic()
		if err != nil {
			t.Fatal(err)
		}
		if got := reveal(before); got != want[0] {
			t.Errorf("target %s says %q by now, want %q", before.Name, got, want[0])
		}
		if got := reveal(&fresh); got != want[1] {
			t.Errorf("target %s says %q, want %q", before.Name, got, want[1])
		}
		if a, b := before.Written(), fresh.Written(); !a.Equal(&b) || before.Equal(&fresh) != (want[0] == want[1]) {
			t.Errorf("target %s: what is written differs, or what files hold does not", before.Name)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "key"), []byte("two\nlines hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := one.ReloadTraffic(); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a header of two lines: %v", err)
	}
	if err := os.Remove(filepath.Join(folder, "key")); err != nil {
		t.Fatal(err)
	}
	if _, err := one.ReloadTraffic(); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a file that is gone: %v", err)
	}
}

package notefile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

func TestAllNotesOfAFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "[odd]*?")
	if all, err := All(folder); err != nil || len(all) > 0 {
		t.Fatalf("got %v, %v of a folder that is not there, want nothing", all, err)
	}
	note := churn.Note{Held: true, Baseline: 4, Set: 2, Deadline: time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)}
	for _, name := range []string{"shop", "A/b"} {
		b := open(t, folder, name)
		leading(t, b)
		if err := b.Save(t.Context(), note); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("churn-torn.json", `{"version": 1, "churn": "torn"`)
	copied, err := os.ReadFile(filepath.Join(folder, "churn-shop.json"))
	if err != nil {
		t.Fatal(err)
	}
	write("churn-other.json", string(copied))
	write("history.json", "{}") // of somebody else
	all, err := All(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		file, churn, err string
	}{
		{"churn-%41%2Fb.json", "A/b", ""},
		{"churn-other.json", "shop", "the file has the name of another churn's"},
		{"churn-shop.json", "shop", ""},
		{"churn-torn.json", "", "the file is no note: unexpected end of JSON input"},
	}
	if len(all) != len(want) {
		t.Fatalf("got %+v, want %d notes", all, len(want))
	}
	for i, w := range want {
		got := all[i]
		text := ""
		if got.Err != nil {
			text = got.Err.Error()
		}
		if filepath.Base(got.Path) != w.file || got.Churn != w.churn || text != w.err {
			t.Errorf("got %+v, want %+v", got, w)
		}
		if w.err == "" && !same(got.Note, note) || w.err != "" && got.Note != (churn.Note{}) {
			t.Errorf("%s: the note is %+v", w.file, got.Note)
		}
	}
}

package notefile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

var (
	_ churn.Notebook = (*Book)(nil)
	_ churn.Election = (*Book)(nil)
)

func open(t *testing.T, folder, name string) *Book {
	t.Helper()
	b, err := New(Options{Folder: folder, Churn: name})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// leading makes b the one that leads until the test ends, or until the
// function that it returns was called and has returned.
func leading(t *testing.T, b *Book) (resign func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	elected, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- b.Campaign(ctx, func(ctx context.Context) { close(elected); <-ctx.Done() })
	}()
	resigned := false
	resign = func() {
		cancel()
		if !resigned {
			if err := <-over; err != nil {
				t.Errorf("Campaign returned %v", err)
			}
		}
		resigned = true
	}
	select {
	case <-elected:
	case err := <-over:
		t.Fatalf("Campaign returned %v", err)
	}
	t.Cleanup(resign)
	return resign
}

func reasonOf(err error) churn.Reason {
	var e *churn.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return churn.NoReason
}

// same compares notes whose deadlines may be of different time zones.
func same(a, b churn.Note) bool {
	equal := a.Deadline.Equal(b.Deadline)
	a.Deadline, b.Deadline = time.Time{}, time.Time{}
	return equal && a == b
}

func TestOptions(t *testing.T) {
	_, err := New(Options{})
	if want := "checking the note file of churn \"\": folder: want one\nchurn: want its name"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestNotesOutliveTheBook reads with another book, as another process does.
func TestNotesOutliveTheBook(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	tests := []struct {
		name string
		note churn.Note
	}{
		{"held", churn.Note{Held: true, Baseline: 4, Set: 2, Before: 3, Deadline: time.Date(2026, 11, 30, 23, 0, 0, 123456789, berlin)}},
		{"held and paused", churn.Note{Held: true, Baseline: 0, Set: 1, Deadline: time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC), Paused: true}},
		{"with an original", churn.Note{Held: true, Baseline: 1, Set: 0, Original: `{"servers":["a\"b",` + "\n\t\x00 ü" + `]}`, Deadline: time.Unix(1, 0)}},
		{"of an earlier boot", churn.Note{Held: true, Baseline: 3, Set: 5, Deadline: time.Now().Add(-30 * 24 * time.Hour).Round(0)}},
		{"without a deadline", churn.Note{Held: true, Baseline: 3, Set: 5}},
		{"paused", churn.Note{Paused: true}},
		{"none", churn.Note{}},
	}
	folder := filepath.Join(t.TempDir(), "not", "there yet")
	b := open(t, folder, "shop")
	leading(t, b)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := b.Save(t.Context(), test.note); err != nil {
				t.Fatal(err)
			}
			got, err := open(t, folder, "shop").Load(t.Context())
			if err != nil || !same(got, test.note) {
				t.Errorf("loaded %+v, %v; saved %+v", got, err, test.note)
			}
		})
	}
}

// TestAllOfANoteIsKept fills every field that a note has, also one that is added
// some day.
func TestAllOfANoteIsKept(t *testing.T) {
	var n churn.Note
	for i, v := 0, reflect.ValueOf(&n).Elem(); i < v.NumField(); i++ {
		switch f := v.Field(i); f.Interface().(type) {
		case bool:
			f.SetBool(true)
		case int:
			f.SetInt(int64(i + 1))
		case string:
			f.SetString("kept")
		case time.Time:
			f.Set(reflect.ValueOf(time.Unix(int64(i+1), 0)))
		default:
			t.Fatalf("a note has a %s", f.Type())
		}
	}
	text, err := encode("shop", n, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decode("shop", text); err != nil || !same(got, n) {
		t.Errorf("kept %+v, %v; want %+v", got, err, n)
	}
}

func TestNoNote(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "none")
	n, err := open(t, folder, "shop").Load(t.Context())
	if err != nil || n != (churn.Note{}) {
		t.Errorf("loaded %+v, %v; want a zero note", n, err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("Load made the folder: %v", err)
	}
}

// TestFilesOfANote looks at what a book leaves in its folder.
func TestFilesOfANote(t *testing.T) {
	folder := t.TempDir()
	b := open(t, folder, "shop")
	resign := leading(t, b)
	if err := b.Save(t.Context(), churn.Note{Held: true, Baseline: 4, Set: 2}); err != nil {
		t.Fatal(err)
	}
	if got, want := files(t, folder), "churn-shop.json churn-shop.leader churn-shop.lock"; got != want {
		t.Errorf("the folder has %s, want %s", got, want)
	}
	for _, name := range strings.Fields(files(t, folder)) {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v; want 0600", name, info.Mode(), err)
		}
	}
	if err := b.Save(t.Context(), churn.Note{}); err != nil {
		t.Fatal(err)
	}
	resign()
	if got, want := files(t, folder), "churn-shop.lock"; got != want {
		t.Errorf("in the end the folder has %s, want %s", got, want)
	}
}

func files(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestDraftOfACrash saves over what a process left that died while it wrote.
func TestDraftOfACrash(t *testing.T) {
	folder := t.TempDir()
	b := open(t, folder, "shop")
	leading(t, b)
	draft := filepath.Join(folder, "churn-shop.json.new")
	if err := os.WriteFile(draft, []byte(`{"version":1,`), 0o644); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Load(t.Context()); err != nil || n != (churn.Note{}) {
		t.Errorf("loaded %+v, %v; a draft is no note", n, err)
	}
	want := churn.Note{Held: true, Baseline: 4, Set: 2}
	if err := b.Save(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Load(t.Context()); err != nil || !same(n, want) {
		t.Errorf("loaded %+v, %v; want %+v", n, err, want)
	}
	if info, err := os.Stat(filepath.Join(folder, "churn-shop.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the note has mode %v, %v; want 0600", info.Mode(), err)
	}
}

const held = `{"version":1,"churn":"shop","held":true,"baseline":4,"set":2,"before":3,"deadline":"2026-11-30T23:00:00Z","paused":false,"saved_at":"2026-11-30T22:00:00Z","saved_by":"me"}`

// TestGarbageIsNoNote loads files that are no notes: all are errors, and none
// is changed by being looked at.
func TestGarbageIsNoNote(t *testing.T) {
	tests := []struct {
		name, text, error string
	}{
		{"empty", "", "the file is empty"},
		{"blank", "\n \n", "the file is empty"},
		{"zeros, as a loss of power leaves them", strings.Repeat("\x00", 100), `the file is no note: invalid character '\x00' looking for beginning of value`},
		{"torn", held[:60], "the file is no note: unexpected end of JSON input"},
		{"twice", held + held, "the file is no note: invalid character '{' after top-level value"},
		{"other JSON", `[1, 2]`, "the file is no note: json: cannot unmarshal array into Go value of type struct { Version int \"json:\\\"version\\\"\" }"},
		{"nothing", `{}`, "the file has version 0, and this program knows version 1"},
		{"of a later version", `{"version":2,"churn":"shop","kept":true}`, "the file has version 2, and this program knows version 1"},
		{"of another churn", strings.Replace(held, "shop", "basket", 1), `the file is the note of churn "basket"`},
		{"unknown field", strings.Replace(held, `"held"`, `"hold"`, 1), `the file is no note: json: unknown field "hold"`},
		{"without baseline", strings.Replace(held, `"baseline":4,`, "", 1), "the file is no note: it holds a baseline without saying baseline, set, before and deadline"},
		{"without set", strings.Replace(held, `"set":2,`, "", 1), "the file is no note: it holds a baseline without saying baseline, set, before and deadline"},
		{"without before", strings.Replace(held, `"before":3,`, "", 1), "the file is no note: it holds a baseline without saying baseline, set, before and deadline"},
		{"without deadline", strings.Replace(held, `"deadline":"2026-11-30T23:00:00Z",`, "", 1), "the file is no note: it holds a baseline without saying baseline, set, before and deadline"},
		{"negative", strings.Replace(held, `"set":2`, `"set":-2`, 1), "the file is no note: want 0 or more replicas, got 4, -2 and 3"},
		{"no number", strings.Replace(held, `"set":2`, `"set":"two"`, 1), "the file is no note: json: cannot unmarshal string into Go struct field record.set of type int"},
		{"huge", held + strings.Repeat(" ", mostBytes), "the file has more than 4194304 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "churn-shop.json")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			n, err := open(t, folder, "shop").Load(t.Context())
			want := `reading the note of churn "shop" in "` + path + `": error: ` + test.error +
				"; see what the workload has, put it back by hand where need be, then remove the file"
			if err == nil || err.Error() != want || reasonOf(err) != churn.Other {
				t.Errorf("got %v\nwant %s", err, want)
			}
			if n != (churn.Note{}) {
				t.Errorf("got %+v with an error", n)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != test.text {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}

func TestWholeNoteIsRead(t *testing.T) {
	got, err := decode("shop", []byte(held))
	want := churn.Note{Held: true, Baseline: 4, Set: 2, Before: 3, Deadline: time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestWhatIsNoFile(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "churn-shop.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	b := open(t, folder, "shop")
	if _, err := b.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "it is no file") {
		t.Errorf("loading a folder: %v", err)
	}
	leading(t, b)
	if err := b.Save(t.Context(), churn.Note{Paused: true}); err == nil {
		t.Error("a folder was replaced by a note")
	}
	if got, want := files(t, folder), "churn-shop.json churn-shop.leader churn-shop.lock"; got != want {
		t.Errorf("the folder has %s, want %s", got, want)
	}
}

func TestContextThatHasEnded(t *testing.T) {
	folder := t.TempDir()
	b := open(t, folder, "shop")
	leading(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Save(ctx, churn.Note{Paused: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("Save returned %v", err)
	}
	if _, err := b.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Load returned %v", err)
	}
	if n, err := b.Load(t.Context()); err != nil || n.Paused {
		t.Errorf("loaded %+v, %v: the note was written", n, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{held, "", "{", `{"version":1,"churn":"shop"}`, held[:80], "null"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := decode("shop", text)
		if err != nil {
			if n != (churn.Note{}) {
				t.Fatalf("a note %+v with error %v", n, err)
			}
			return
		}
		again, err := encode("shop", n, time.Now())
		if err != nil {
			t.Skip(err) // a year that JSON has no form for
		}
		if m, err := decode("shop", again); err != nil || !same(n, m) {
			t.Fatalf("%+v became %+v, %v", n, m, err)
		}
	})
}

package command

import (
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/churn"
)

func TestParse(t *testing.T) {
	observed := func(desired, ready, endpoints int) churn.Observation {
		return churn.Observation{Desired: desired, Ready: ready, Endpoints: endpoints}
	}
	tests := []struct {
		name  string
		text  string
		cut   bool
		want  churn.Observation
		whole bool
		error string
	}{
		{name: "count", text: "3\n", want: observed(3, 3, 3)},
		{name: "no end of line", text: "3", want: observed(3, 3, 3)},
		{name: "none", text: "0\n", want: observed(0, 0, 0)},
		{name: "of Windows", text: "\r\n 12 \r\n", want: observed(12, 12, 12)},
		{name: "after what is no count", text: "warning: 2 of 3\nv2\n 7\n9\n", want: observed(7, 7, 7)},
		{name: "cut, but not the count", text: "5\nwarning", cut: true, want: observed(5, 5, 5)},
		{name: "object", text: `{"desired": 4, "ready": 3, "endpoints": 2}`, want: observed(4, 3, 2), whole: true},
		{name: "object with defaults", text: "\n{\"desired\": 4}\n", want: observed(4, 4, 4), whole: true},
		{name: "object with one default", text: `{"ready": 3, "desired": 4, "name": "web"}`, want: observed(4, 3, 3), whole: true},

		{name: "nothing", error: `want a line that is a whole number, or a JSON object; got ""`},
		{name: "words", text: "no such\nservice", error: `want a line that is a whole number, or a JSON object; got "no such service"`},
		{name: "negative", text: "-1\n", error: `want a line that is a whole number, or a JSON object; got "-1"`},
		{name: "fraction", text: "1.0\n", error: `want a line that is a whole number, or a JSON object; got "1.0"`},
		{name: "too large", text: strings.Repeat("9", 30), error: `want a count: strconv.Atoi: parsing "999999999999999999999999999999": value out of range`},
		{name: "cut in the count", text: "123", cut: true, error: `want a line that is a whole number, or a JSON object; got ""`},
		{name: "cut object", text: `{"desired": 4`, cut: true, error: "want a JSON object of at most 65536 bytes"},
		{name: "torn object", text: `{"desired": 4`, error: "unexpected EOF"},
		{name: "other object", text: `{"replicas": 4}`, error: `want "desired" in the JSON object`},
		{name: "two objects", text: `{"desired": 4} {"desired": 5}`, error: "want one JSON object and nothing behind it"},
		{name: "object with text", text: `{"desired": "4"}`, error: "json: cannot unmarshal string into Go struct field .Desired of type int"},
		{name: "object with a negative", text: `{"desired": 4, "ready": -1}`, error: "want 0 or more of each; got 4 desired, -1 ready, -1 endpoints"},
		{name: "object with null", text: `{"desired": null}`, error: `want "desired" in the JSON object`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parse(output{text: []byte(test.text), cut: test.cut})
			if text := message(err); text != test.error {
				t.Errorf("error %q, want %q", text, test.error)
			}
			if want := (reading{test.want, test.whole}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"3\n", "", "a\n12\n", `{"desired":1,"ready":2}`, "{}", "{", "99999999999999999999"} {
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut bool) {
		r, err := parse(output{text: text, cut: cut})
		if min(r.Desired, r.Ready, r.Endpoints) < 0 {
			t.Errorf("read %+v", r)
		}
		if err != nil && (r != reading{} || len(err.Error()) > mostOutput) {
			t.Errorf("read %+v with an error of %d bytes", r, len(err.Error()))
		}
	})
}

func TestShortened(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", " \n\t", ""},
		{"one line", "a\nb\r\n\tc \x00\x1b[31md", "a b c [31md"},
		{"not UTF-8", "a\xffb", "a�b"},
		{"just short enough", strings.Repeat("a", 300), strings.Repeat("a", 300)},
		{"its end", "begin " + strings.Repeat("a", 297) + "end", "… " + strings.Repeat("a", 297) + "end"},
		{"whole letters", strings.Repeat("ü", 151) + "a", "… " + strings.Repeat("ü", 149) + "a"}, // 2 · 149 + 1 = 299 of 300
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := shortened(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	scale, read := []string{"s", "{replicas}"}, []string{"r"}
	tests := []struct {
		name    string
		options Options
		error   string
	}{
		{"good", Options{Scale: scale, Read: read}, ""},
		{"all", Options{Scale: scale, Read: read, Kill: []string{"k", "--n={kill}"}, Interval: 1, Folder: "/"}, ""},
		{"nothing", Options{}, "scale: want a program\nread: want a program"},
		{"no name", Options{Scale: []string{"", "{replicas}"}, Read: read}, "scale: want a program"},
		{"number in the program alone", Options{Scale: []string{"s{replicas}"}, Read: read}, "scale: want {replicas} in an argument"},
		{"wrong placeholder", Options{Scale: scale, Read: read, Kill: []string{"k", "{replicas}"}}, "kill: want {kill} in an argument"},
		{"negative", Options{Scale: scale, Read: read, Interval: -1}, "interval -1ns: want more than 0s, or 0s for 1s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.options)
			want := test.error
			if want != "" {
				want = "checking the programs of a workload: " + want
			}
			if text := message(err); text != want {
				t.Errorf("got %q, want %q", text, want)
			}
		})
	}
}

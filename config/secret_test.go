package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// shownBy returns all that usual means of printing show of v.
func shownBy(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		slog.New(handler).Info("shown", "value", v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Errorf("marshalling as JSON: %v", err)
	}
	b.Write(text)
	if text, err = yaml.Marshal(v); err != nil {
		t.Errorf("marshalling as YAML: %v", err)
	}
	b.Write(text)
	return b.String()
}

// checkHidden fails when anything that was planted is to be seen, as it is, in
// hexadecimal or escaped.
func checkHidden(t *testing.T, what, shown string) {
	t.Helper()
	lower := strings.ToLower(shown)
	for _, planted := range []string{"planted", fmt.Sprintf("%x", "planted"), "cgxhbnrlz"} {
		if i := strings.Index(lower, planted); i >= 0 {
			t.Errorf("%s shows %q", what, shown[i:min(len(shown), i+40)])
		}
	}
}

func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	config, warnings, err := Load("testdata/good.yml")
	if err != nil {
		t.Fatal(err)
	}
	checkHidden(t, "Masked", string(config.Masked()))
	checkHidden(t, "warnings", fmt.Sprint(warnings))
	checkHidden(t, "Config", shownBy(t, *config))
	checkHidden(t, "*Config", shownBy(t, config))
	for i := range config.Targets {
		target := &config.Targets[i]
		checkHidden(t, "Target", shownBy(t, *target))
		checkHidden(t, "*Target", shownBy(t, target))
		checkHidden(t, "header fields", shownBy(t, target.HeaderFields()))
		checkHidden(t, "HTTP", shownBy(t, target.HTTP))
		checkHidden(t, "URL", shownBy(t, target.URL))
	}
	// A structure that hides a secret in an unexported field cannot call its
	// methods.
	type holder struct{ s Secret }
	checkHidden(t, "unexported field", fmt.Sprintf("%v %+v %#v", holder{NewSecret("planted")}, holder{NewSecret("planted")}, holder{NewSecret("planted")}))
}

// TestSecretsStayHiddenInErrors plants secrets in settings that are wrong, and
// values of secret settings in places where they do not belong.
func TestSecretsStayHiddenInErrors(t *testing.T) {
	t.Parallel()
	const door = "targets: [{name: a, rate: 1, url: 'http://h/', "
	for name, text := range map[string]string{
		"url without scheme":     "targets: [{name: a, rate: 1, url: 'u:planted@h/?planted'}]",
		"url with bad port":      "targets: [{name: a, rate: 1, url: 'http://u:planted@h:planted/'}]",
		"url with bad escape":    "targets: [{name: a, rate: 1, url: 'http://u:planted%zz@h/'}]",
		"url with control":       `targets: [{name: a, rate: 1, url: "http://u:planted\n@h/"}]`,
		"url with bad scheme":    "targets: [{name: a, rate: 1, url: 'ftp://u:planted@h/?planted'}]",
		"url as list":            "targets: [{name: a, rate: 1, url: ['http://u:planted@h/']}]",
		"header injection":       door + `http: {headers: {X-A: "planted\r\nplanted: x"}}}]`,
		"value in a header name": door + "http: {headers: {'X-A: planted': x}}}]",
		"header list":            door + "http: {headers: ['X-A: planted']}}]",
		"header of lists":        door + "http: {headers: {X-A: {values: [[planted]]}}}}]",
		"password as mapping":    door + "http: {basic_auth: {username: u, password: {planted: x}}}}]",
		"password with feed":     door + `http: {basic_auth: {username: u, password: "planted\n"}}}]`,
		"user with colon":        door + "http: {basic_auth: {username: 'planted:x', password: planted}}}]",
		"unknown anchor":         door + "http: {basic_auth: {username: u, password: *planted }}}]",
		"own tag":                door + "http: {basic_auth: {username: u, password: !planted planted}}}]",
		"both bodies":            door + "http: {body: planted, body_file: x}}]",
		"body as list":           door + "http: {body: [planted]}}]",
		"two ways":               door + "http: {authorization: {credentials: planted}, headers: {Authorization: planted}}}]",
		"file with feed":         door + "http: {headers: {X-A: {files: [testdata/good.yml]}}}}]",
		"token that is no PEM":   door + "tls: {ca_file: testdata/token.txt, cert_file: testdata/token.txt, key_file: testdata/token.txt}}]",
		"broken key":             door + "http: {headers: {'X-A planted': x}}}]",
		"bare url with secrets":  "targets: [{name: a, rate: 1, url: 'tcp://u:planted@h:1'}]",
		"bare url with a path":   "targets: [{name: a, rate: 1, url: 'tls://h:1/planted'}]",
		"tcp over http":          door + "tcp: {send: planted}}]",
		"both to send":           "targets: [{name: a, rate: 1, url: 'tcp://h:1', tcp: {send: planted, send_file: testdata/token.txt}}]",
		"send as list":           "targets: [{name: a, rate: 1, url: 'tcp://h:1', tcp: {send: [planted]}}]",
		"connect_to":             door + "connect_to: 'u:planted@h:1'}]",
		"host":                   door + "http: {host: 'u:planted@h'}}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Parse([]byte(text), "x.yml")
			if err == nil {
				t.Fatal("got no error")
			}
			checkHidden(t, "error", err.Error())
			checkHidden(t, "error", shownBy(t, err))
		})
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	var none Secret
	equal(t, "zero is empty", none.Empty(), true)
	equal(t, "empty text is zero", NewSecret(""), none)
	equal(t, "zero shows nothing", none.String()+none.GoString(), "")
	equal(t, "equal text", NewSecret("a").Equal(NewSecret("a")), true)
	equal(t, "other text", NewSecret("a").Equal(NewSecret("b")), false)
	equal(t, "reveal", NewSecret("a").Reveal(), "a")
	equal(t, "string", NewSecret("a").String(), "<secret>")
	equal(t, "go string", NewSecret("a").GoString(), "<secret>")
}

package discovery

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/discovery/dns"
	"github.com/prometheus/prometheus/discovery/file"
	"github.com/prometheus/prometheus/discovery/http"
	prometheuskubernetes "github.com/prometheus/prometheus/discovery/kubernetes"
	"gopkg.in/yaml.v3"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/discovery/kubernetes"
)

// TestPrepareBad prepares each testdata/*.bad.yml and compares all problems,
// which stand as comments at its end: "# want: LINE: FIELD: TEXT".
func TestPrepareBad(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.bad.yml")
	if err != nil || len(names) == 0 {
		t.Fatalf("finding bad files: %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(data)) {
				if text, ok := strings.CutPrefix(line, "# want: "); ok {
					want = append(want, strings.TrimSuffix(text, "\n"))
				}
			}
			c, _, err := config.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := Prepare(c)
			if err == nil || plan != nil {
				t.Fatal("it was taken")
			}
			var got []string
			for line := range strings.SplitSeq(err.Error(), "\n") {
				got = append(got, strings.TrimSpace(strings.TrimPrefix(line, name+":")))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), "planted") {
				t.Error("a problem shows a secret")
			}
		})
	}
}

// TestPrepareGood has what Prometheus's documentation has as examples.
func TestPrepareGood(t *testing.T) {
	t.Parallel()
	c, warnings, err := config.Load("testdata/good.yml")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	p, err := Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range p.entries {
		for _, m := range e.mechanisms {
			got = append(got, m.name+" "+reflect.TypeOf(m.config).String())
		}
	}
	want := []string{
		"file *file.SDConfig", "file *file.SDConfig", "http *http.SDConfig", "dns *dns.SDConfig",
		"kubernetes *kubernetes.SDConfig", "kubernetes *kubernetes.SDConfig",
		"kubernetes *kubernetes.Config", "kubernetes *kubernetes.Config", "kubernetes *kubernetes.Config",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mechanisms (-want +got):\n%s", diff)
	}
	first := p.entries[0].mechanisms
	if files := first[0].config.(*file.SDConfig).Files; files[0] != filepath.Join("testdata", "doors/*.yml") || files[1] != "/etc/doors.json" {
		t.Errorf("files %v, want relative ones in the folder of the configuration", files)
	}
	if len(p.entries[0].rules) != 8 {
		t.Errorf("%d rules, want 8", len(p.entries[0].rules))
	}
	again, err := Prepare(c)
	if err != nil || !p.entries[0].same(again.entries[0]) || p.entries[0].same(again.entries[1]) {
		t.Errorf("the first source is not the same as itself, or as the second: %v", err)
	}
}

// TestEverySettingIsMaskedOrPublic fails when Prometheus has a new setting whose
// value the masked configuration would show as a secret: it is to be looked at,
// and added to the public ones where it is none.
func TestEverySettingIsMaskedOrPublic(t *testing.T) {
	t.Parallel()
	secret := strings.Fields("username password credentials bearer_token client_secret client_certificate_key key cert iss audience claims " +
		"endpoint_params http_headers proxy_connect_header username_ref password_ref credentials_ref client_secret_ref client_certificate_key_ref ca_ref cert_ref key_ref")
	var walk func(t reflect.Type, found func(name string))
	walk = func(t reflect.Type, found func(string)) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		all, _ := fieldsOf(t)
		for i, name := range all.names {
			if inner := all.types[i]; inner.String() == "config.URL" {
				found(name)
			} else if fields, _ := fieldsOf(structure(inner)); len(fields.names) > 0 {
				walk(inner, found)
			} else {
				found(name)
			}
		}
	}
	shown := map[string]bool{}
	for _, c := range []any{file.SDConfig{}, http.SDConfig{}, dns.SDConfig{}, prometheuskubernetes.SDConfig{}, kubernetes.Config{}} {
		walk(reflect.TypeOf(c), func(name string) {
			if strings.Contains(" "+strings.Join(secret, " ")+" ", " "+name+" ") {
				return
			}
			shown[name] = true
		})
	}
	text := "profiles: [{name: p, rate: 1}]\ndiscovery: [{name: d, profile: p, allow: {hosts: [h]}, http_sd_configs: [{"
	for name := range shown {
		text += name + ": http://shown/, "
	}
	for _, name := range secret {
		text += name + ": {a: http://planted/}, "
	}
	c, _, err := config.Parse([]byte(text+"}]}]"), "x.yml")
	if err != nil {
		t.Fatal(err)
	}
	var masked struct {
		Discovery []struct {
			HTTP []map[string]any `yaml:"http_sd_configs"`
		}
	}
	if err := yaml.Unmarshal(c.Masked(), &masked); err != nil {
		t.Fatal(err)
	}
	for name := range shown {
		if masked.Discovery[0].HTTP[0][name] != "http://shown/" {
			t.Errorf("%s is masked; is it a secret?", name)
		}
	}
	if strings.Contains(string(c.Masked()), "planted") {
		t.Errorf("a secret is shown:\n%s", c.Masked())
	}
}

// structure returns the structure that a type is made of, or one without fields.
func structure(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return reflect.TypeFor[struct{}]()
	}
	return t
}

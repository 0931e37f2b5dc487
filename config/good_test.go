package config

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGoodFile(t *testing.T) {
	t.Parallel()
	config, warnings, err := Load("testdata/good.yml")
	if err != nil {
		t.Fatal(err)
	}
	want := []Warning{{
		File: "testdata/good.yml", Line: 39, Field: "targets[1].tls.insecure_skip_verify",
		Text: "any certificate is accepted, so that nobody knows who answers; write ca_file with the door's authority instead",
	}}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	const golden = "testdata/good.masked.yml"
	if *update {
		if err := os.WriteFile(golden, config.Masked(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	masked, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(masked), string(config.Masked())); diff != "" {
		t.Errorf("masked configuration (-want +got):\n%s", diff)
	}
	checkFields(t, &config.Targets[1])
	checkInherited(t, config)
}

// checkFields looks at what the masked configuration does not show.
func checkFields(t *testing.T, all *Target) {
	t.Helper()
	type line struct{ name, value string }
	var got []line
	for _, f := range all.HeaderFields() {
		got = append(got, line{f.Name, f.Value.Reveal()})
	}
	want := []line{
		{"Accept", "text/plain"},
		{"X-Token", "planted-value"}, {"X-Token", "planted-secret"}, {"X-Token", "planted-token-file"},
		{"x-team", "planted-one"}, {"x-team", "planted-two"},
		{"Authorization", "Token planted-token-file"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
		t.Errorf("header fields (-want +got):\n%s", diff)
	}
	equal(t, "body", all.HTTP.Content().Reveal(), "planted-body-file\n")
	equal(t, "request target", all.URL.RequestURI(), "/healthz?key=planted-query")
	equal(t, "public URL", all.URL.Public(), "https://shop.example.com/healthz")
	equal(t, "host header", all.HostHeader(), "shop.example.com:8443")
	equal(t, "dial address", all.DialAddress(), "[::1]:8443")
	equal(t, "rate", all.Rate.Rat().String(), "2001/2") // 1000.50
	equal(t, "rate", all.Rate.Float(), 1000.5)
	equal(t, "rate", all.Rate.String(), "1000.50")
	equal(t, "timeout", all.Timeout, 6*time.Second)
	equal(t, "max age", all.Connection.MaxAge, 90*time.Minute)
	equal(t, "max body", all.Expect.MaxBody.Bytes(), int64(2<<20))
	equal(t, "closed loop", all.Rate.Max(), false)
}

func checkInherited(t *testing.T, config *Config) {
	t.Helper()
	plain, all, user := &config.Targets[0], &config.Targets[1], &config.Targets[2]
	equal(t, "inherited rate", plain.Rate.String(), "0.2")
	equal(t, "inherited timeout", plain.Timeout, 4*time.Second)
	equal(t, "inherited label", plain.Labels["front"], "none")
	equal(t, "label kept beside others", all.Labels["site"], "fra1")
	equal(t, "inherited warm", all.Connection.Warm, true)
	equal(t, "inherited max_requests", all.Connection.MaxRequests, uint64(1000))
	equal(t, "inherited body", plain.HTTP.Content().Reveal(), "planted-default-body")
	equal(t, "host header", plain.HostHeader(), "127.0.0.1:8080")
	equal(t, "closed loop", config.Targets[3].Rate.Max(), true)
	fields := user.HeaderFields()
	last := fields[len(fields)-1]
	equal(t, "header", last.Name, "Authorization")
	// base64 of planted-user:planted-password
	equal(t, "user info", last.Value.Reveal(), "Basic cGxhbnRlZC11c2VyOnBsYW50ZWQtcGFzc3dvcmQ=")
	if diff := cmp.Diff([]float64{0.2, 0.3}, config.Metrics.Buckets.Latency); diff != "" {
		t.Errorf("sorted boundaries (-want +got):\n%s", diff)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	config, warnings, err := Parse([]byte("targets: [{name: a, url: 'http://h/', rate: 1}]"), "x.yml")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	got := &config.Targets[0]
	want := builtInTarget()
	want.Name, want.URL, want.Rate = got.Name, got.URL, got.Rate
	if !got.Equal(&want) {
		t.Errorf("got %+v, want the built-in defaults %+v", *got, want)
	}
	equal(t, "max_total_rate", config.Limits.MaxTotalRate.String(), "10000")
	equal(t, "max_connections", config.Limits.MaxConnections, 5000)
	equal(t, "native schema", config.Metrics.NativeSchema, 3)
}

func TestExampleLoads(t *testing.T) {
	t.Parallel()
	config, warnings, err := Load("../examples/steadyprobe.yml")
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v; want none", err, warnings)
	}
	equal(t, "targets", len(config.Targets), 1)
	equal(t, "url", config.Targets[0].URL.String(), "http://127.0.0.1:8080/")
	equal(t, "rate", config.Targets[0].Rate.String(), "10")
}

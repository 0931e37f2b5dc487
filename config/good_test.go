package config

import (
	"crypto/sha256"
	"crypto/tls"
	"flag"
	"net/netip"
	"os"
	"strings"
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
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	const file = "testdata/good.yml:"
	want := []string{
		file + "39: targets[1].dns.refresh: has no effect, as the address in connect_to is dialled and nothing is looked up; write a name there, or remove it",
		file + "41: targets[1].tls.insecure_skip_verify: any certificate is accepted, so that nobody knows who answers; write ca_file with the door's authority instead",
		file + "72: targets[6].tls.ciphers[2]: TLS_RSA_WITH_AES_128_CBC_SHA is not secure, and is offered only because it is written; write ECDHE-RSA-AES128-GCM-SHA256, unless the door insists",
		file + "83: targets[7].dns.server: has no effect, as the address in url is dialled and nothing is looked up; write a name there, or remove it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
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
	checkDoors(t, config)
}

// checkDoors looks at what the wire is given of doors that move or insist.
func checkDoors(t *testing.T, config *Config) {
	t.Helper()
	moving, redis, passthrough := &config.Targets[6], &config.Targets[8], &config.Targets[9]
	equal(t, "server", moving.DNS.ServerAddress(), netip.MustParseAddrPort("[2001:db8::53]:53"))
	equal(t, "system's server", redis.DNS.ServerAddress().IsValid(), false)
	equal(t, "source", moving.Connection.SourceAddress(), netip.MustParseAddrPort("203.0.113.7:40000"))
	equal(t, "own source", redis.Connection.SourceAddress().IsValid(), false)
	equal(t, "size", *moving.Expect.BodySize, 15)
	sum, ok := moving.Expect.BodySum()
	equal(t, "has a sum", ok, true)
	equal(t, "sum", sum, sha256.Sum256(nil)) // e3b0c442…, that of an empty text
	_, ok = redis.Expect.BodySum()
	equal(t, "has no sum", ok, false)
	equal(t, "body", moving.Expect.Body.Regexp().MatchString(`{"status": "up"`), true)
	equal(t, "any body", redis.Expect.Body.Regexp() == nil, true)
	equal(t, "header of the defaults replaced", len(moving.Expect.Headers), 2)
	equal(t, "backend", moving.Backend.Body.Regexp().FindStringSubmatch(`{"pod":"web_1"}`)[1], "web_1")
	equal(t, "sent", redis.TCP.Content().Reveal(), "PING planted\r\n")
	equal(t, "sent of a file", passthrough.TCP.Content().Reveal(), "planted-body-file\n")
	equal(t, "nothing of the defaults is sent by HTTP", moving.TCP.Content().Empty(), true)
	equal(t, "a connection per tick", redis.Connection.Reuse, false)
	equal(t, "dial address", passthrough.DialAddress(), "[2001:db8::7]:8443")
}

// TestTransactions loads the TLS transactions of docs/CONFIGURATION.md.
func TestTransactions(t *testing.T) {
	t.Parallel()
	config, warnings, err := Load("testdata/transactions.yml")
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v; want none", err, warnings)
	}
	target := &config.Targets[0]
	c := target.TLSConfig()
	equal(t, "newest version", c.MaxVersion, tls.VersionTLS12)
	equal(t, "suites", len(c.CipherSuites), 1)
	equal(t, "suite", c.CipherSuites[0], tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384)
	equal(t, "full handshakes", c.ClientSessionCache == nil, true)
	equal(t, "kept connections", target.Connection.Reuse, false)
	equal(t, "empty body", *target.Expect.BodySize, 0)
	docs, err := os.ReadFile("../docs/CONFIGURATION.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/transactions.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, settings, _ := strings.Cut(string(text), "targets:\n")
	if !strings.Contains(string(docs), settings) {
		t.Error("docs/CONFIGURATION.md does not have the settings of testdata/transactions.yml")
	}
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

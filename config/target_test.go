package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestForURL(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, url, want string }{
		{"plain", "http://127.0.0.1:8080/", "http://127.0.0.1:8080/"},
		{"secrets", "https://u:p@h/a?q", "https://h/a"},
		{"signs that no name has", "http://h/(a)", "http://h/%28a%29"},
		{"long", "http://h/" + strings.Repeat("a", 200), "http://h/" + strings.Repeat("a", mostName-9)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			target, err := ForURL(row.url)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "name", target.Name, row.want)
			warnings, err := target.Validate()
			if err != nil || len(warnings) > 0 {
				t.Errorf("validating: %v, %v", warnings, err)
			}
		})
	}
	_, err := ForURL("localhost:8080")
	checkError(t, err, "url: has no scheme; write http:// or https:// in front of the host")
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*Target)
		want   string
	}{
		{"no rate", func(t *Target) { t.Rate = Rate{} }, "rate: is missing; write rate: and requests per second, such as 10"},
		{"no connections", func(t *Target) { t.Connections = 0 }, "connections: 0 is out of range; write how many may be open at once, from 1 to 1000000"},
		{"no timeout", func(t *Target) { t.Timeout = 0 }, "timeout: 0s is out of range; write a duration from 1ms to 1d"},
		{"header injection", func(t *Target) { t.HTTP.Headers["X-A"] = Header{Values: []Secret{NewSecret("a\r\nX: y")}} },
			"http.headers.X-A: has a control character such as a line feed, which would end the header field; write one line"},
		{"no file", func(t *Target) { t.TLS.CAFile = "testdata/missing.pem" },
			`tls.ca_file: file "testdata/missing.pem" does not exist; write the path of a readable file`},
		{"label value", func(t *Target) { t.Labels = map[string]string{"a": "\xff"} }, "labels.a: has a value that is not valid UTF-8; write it in UTF-8"},
		{"catch up", func(t *Target) { t.CatchUp = math.NaN() }, "catch_up: NaN is out of range; write 0 for no limit, or a factor of the rate from 1 to 1000000"},
		{"ratio", func(t *Target) { t.Objective.Ratio = math.NaN() }, "objective.ratio: NaN is not between 0 and 1; write for example 0.999 for 99.9 %"},
		{"closed loop", func(t *Target) { t.Rate = mustRate("max") }, ""}, // the caller's to allow
		{"closed loop with an objective", func(t *Target) { t.Rate, t.Objective.Ratio = mustRate("max"), 0.9 },
			"objective: cannot be kept in a closed loop (rate: max), which has no latency and sends less when the door is slow; remove it, or write a number of requests per second as rate"},
		{"unknown pacing", func(t *Target) { t.Pacing = "" }, `pacing: "" is neither precise nor economy; write one of them`},
		{"churn", func(t *Target) { t.Churn = "a" }, `churn: "a" names no churn, as only a file has them; remove it`},
		{"two problems", func(t *Target) { t.HTTP.Method, t.ConnectTo = "get", "h" },
			"http.method: \"get\" is in lower case, and methods are case-sensitive; write GET\nconnect_to: is not HOST:PORT; write for example 10.0.0.7:443 or [2001:db8::1]:443"},
		{"zero target", func(t *Target) {
			*t = Target{Name: "a", URL: t.URL, Rate: t.Rate, Connections: 1, HTTP: t.HTTP, DNS: t.DNS, Connection: t.Connection, Expect: t.Expect, Backend: t.Backend, Timeout: time.Second, Pacing: "precise", Arrival: "uniform", Sharding: "rate"}
		},
			"backlog: 0s is out of range; write a duration from 1ms to 1d"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			target, err := ForURL("https://h/")
			if err != nil {
				t.Fatal(err)
			}
			row.change(&target)
			_, err = target.Validate()
			checkError(t, err, row.want)
		})
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	load := func(text string) *Target {
		p := fakeParser()
		config, _, err := p.parse([]byte("targets: [{name: a, url: 'http://u:p@h/?q', rate: 10, " + text + "}]"))
		if err != nil {
			t.Fatal(err)
		}
		return &config.Targets[0]
	}
	base := load("http: {headers: {X-A: b}}")
	for _, row := range []struct {
		name  string
		other *Target
		want  bool
	}{
		{"same", load("http: {headers: {X-A: b}}"), true},
		{"defaults written", load("timeout: 5s, http: {headers: {X-A: b}, body: ''}"), true},
		{"other secret", load("http: {headers: {X-A: c}}"), false},
		{"other timeout", load("timeout: 6s, http: {headers: {X-A: b}}"), false},
		{"other pacing", load("pacing: economy, http: {headers: {X-A: b}}"), false},
		{"other arrival", load("arrival: poisson, http: {headers: {X-A: b}}"), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			equal(t, "equal", base.Equal(row.other), row.want)
		})
	}
	other := *base
	other.Rate = mustRate("10.0")
	equal(t, "rates of one value", base.Equal(&other), true)
	other.Rate = mustRate("10.1")
	equal(t, "other rate", base.Equal(&other), false)
	other.Rate = mustRate("max")
	equal(t, "closed loop", base.Equal(&other), false)
	closed := other
	equal(t, "both closed loops", closed.Equal(&other), true)
	url, err := ParseURL("http://u:p@h/?other")
	if err != nil {
		t.Fatal(err)
	}
	other.Rate, other.URL = base.Rate, url
	equal(t, "other query", base.Equal(&other), false)
}

// writePair writes a certificate of its own and its key, and returns their
// paths.
func writePair(t *testing.T, folder, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write(name+".pem", "CERTIFICATE", der), write(name+".key", "PRIVATE KEY", encoded)
}

func TestTLSConfig(t *testing.T) {
	t.Parallel()
	cert, key := writePair(t, t.TempDir(), "a")
	target, err := ForURL("https://h:8443/")
	if err != nil {
		t.Fatal(err)
	}
	target.TLS.CAFile, target.TLS.CertFile, target.TLS.KeyFile = cert, cert, key
	if _, err := target.Validate(); err != nil {
		t.Fatal(err)
	}
	c := target.TLSConfig()
	equal(t, "server name", c.ServerName, "h")
	equal(t, "min version", c.MinVersion, tls.VersionTLS12)
	equal(t, "max version", c.MaxVersion, 0)
	equal(t, "verified", c.InsecureSkipVerify, false)
	equal(t, "own authorities", c.RootCAs != nil, true)
	equal(t, "client certificates", len(c.Certificates), 1)
	equal(t, "session cache", c.ClientSessionCache != nil, true)
	shown := shownBy(t, target)
	equal(t, "key shown", strings.Contains(shown, "PRIVATE") || strings.Contains(shown, "CERTIFICATE"), false)

	target.TLS = TLS{MaxVersion: tls.VersionTLS12, ServerName: "x", InsecureSkipVerify: true}
	c = target.TLSConfig()
	equal(t, "server name", c.ServerName, "x")
	equal(t, "max version", c.MaxVersion, tls.VersionTLS12)
	equal(t, "verified", c.InsecureSkipVerify, true)
	equal(t, "the system's authorities", c.RootCAs == nil, true)
	equal(t, "session cache", c.ClientSessionCache == nil, true)

	plain, err := ForURL("http://h/")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "no TLS", plain.TLSConfig() == nil, true)
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key := writePair(t, folder, "a")
	_, other := writePair(t, folder, "b")
	broken := filepath.Join(folder, "broken.pem")
	if err := os.WriteFile(broken, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	authority := string(text)
	encrypted := filepath.Join(folder, "encrypted.key")
	if err := os.WriteFile(encrypted, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(folder, "old.key")
	if err := os.WriteFile(old, []byte("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// As a file is while it is being written, and one that was put together of
	// files without a line feed at their ends.
	cut, joined := filepath.Join(folder, "cut.pem"), filepath.Join(folder, "joined.pem")
	if err := os.WriteFile(cut, []byte(authority+authority[:len(authority)/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(joined, []byte(strings.TrimSpace(authority)+authority), 0o600); err != nil {
		t.Fatal(err)
	}
	const passphrase = " is encrypted, and nobody can be asked for its passphrase; write the path of one that is not, as openssl pkey -in FILE prints it"
	const lost = " holds a certificate that is cut off, or does not begin on a line of its own"
	const together = "; write the paths of a PEM certificate and of its key"
	for _, row := range []struct {
		name string
		tls  TLS
		want string
	}{
		{"pair", TLS{CertFile: cert, KeyFile: key}, ""},
		{"key of another", TLS{CertFile: cert, KeyFile: other}, "tls.cert_file: certificate " + quote(cert) + " and key " + quote(other) + " do not go together: private key does not match public key" + together},
		{"encrypted key", TLS{CertFile: cert, KeyFile: encrypted}, "tls.key_file: key " + quote(encrypted) + passphrase},
		{"key encrypted the old way", TLS{CertFile: cert, KeyFile: old}, "tls.key_file: key " + quote(old) + passphrase},
		{"no key", TLS{CertFile: cert}, "tls.cert_file: a client certificate needs both; write cert_file and key_file"},
		{"key as authority", TLS{CAFile: key}, "tls.ca_file: file " + quote(key) + " holds no PEM certificate; write the path of a PEM file with the certificates of the authorities"},
		{"authority written", TLS{CA: authority}, ""},
		{"authority twice", TLS{CA: authority, CAFile: cert}, "tls.ca_file: the authorities are there twice; write ca or ca_file"},
		{"key as authority written", TLS{CA: "-----BEGIN"}, "tls.ca: holds no PEM certificate; write the certificates of the authorities in PEM"},
		{"authority cut off", TLS{CAFile: cut}, "tls.ca_file: file " + quote(cut) + lost + "; write the path of a PEM file with the certificates of the authorities"},
		{"authorities on one line", TLS{CAFile: joined}, "tls.ca_file: file " + quote(joined) + lost + "; write the path of a PEM file with the certificates of the authorities"},
		{"authority written and cut off", TLS{CA: authority + authority[:100]}, "tls.ca:" + lost + "; write the certificates of the authorities in PEM"},
		{"chain cut off", TLS{CertFile: cut, KeyFile: key}, "tls.cert_file: file " + quote(cut) + lost + "; write the path of a PEM certificate, and of those that lead to its authority, where the door lacks them"},
		{"broken authority", TLS{CAFile: broken}, "tls.ca_file: file " + quote(broken) + " holds a certificate that cannot be parsed; write the path of a PEM file with the certificates of the authorities"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			target, err := ForURL("https://h/")
			if err != nil {
				t.Fatal(err)
			}
			target.TLS = row.tls
			_, err = target.Validate()
			checkError(t, err, row.want)
		})
	}
}

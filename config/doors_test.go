package config

import (
	"crypto/tls"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEverySuiteHasNames holds the table of OpenSSL's names against what
// crypto/tls can speak: a suite that a new version of Go brings is missed here.
func TestEverySuiteHasNames(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, suite := range mayChoose() {
		name := openSSLName(suite.ID)
		if name == "" || names[name] {
			t.Errorf("%s has the name %q of OpenSSL, which is empty or there twice", suite.Name, name)
		}
		names[name] = true
		for _, text := range []string{name, suite.Name, strings.ToLower(name), strings.ToLower(suite.Name)} {
			var s CipherSuite
			if err := s.parseText(text); err != nil || uint16(s) != suite.ID || s.String() != suite.Name {
				t.Errorf("%s: got %v, %v; want %s", text, s, err, suite.Name)
			}
		}
	}
	// 10 secure ones and 12 others in Go 1.26, of which TLS 1.3 has none.
	equal(t, "suites", len(names), 22)
	equal(t, "no suite", CipherSuite(1).String(), "")
	equal(t, "of TLS 1.2", CipherSuite(1).speaks(tls.VersionTLS12), false)
}

func TestGroups(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		want tls.CurveID
		text string
	}{
		{"X25519", tls.X25519, "X25519"},
		{"x25519", tls.X25519, "X25519"},
		{"P-256", tls.CurveP256, "P-256"},
		{"secp256r1", tls.CurveP256, "P-256"},
		{"prime256v1", tls.CurveP256, "P-256"},
		{"CurveP256", tls.CurveP256, "P-256"},
		{"SECP384R1", tls.CurveP384, "P-384"},
		{"p521", tls.CurveP521, "P-521"},
		{"x25519mlkem768", tls.X25519MLKEM768, "X25519MLKEM768"},
		{"SecP256r1MLKEM768", tls.SecP256r1MLKEM768, "SecP256r1MLKEM768"},
		{"SecP384r1MLKEM1024", tls.SecP384r1MLKEM1024, "SecP384r1MLKEM1024"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var g Group
			checkError(t, g.parseText(row.name), "")
			equal(t, "group", tls.CurveID(g), row.want)
			equal(t, "text", g.String(), row.text)
			equal(t, "hybrid", g.hybrid(), strings.Contains(row.want.String(), "MLKEM"))
		})
	}
	equal(t, "no group", Group(1).String(), "")
}

func TestPattern(t *testing.T) {
	t.Parallel()
	var p, none Pattern
	checkError(t, p.parseText(`^a+$`), "")
	equal(t, "text", p.String(), `^a+$`)
	equal(t, "match", p.Regexp().MatchString("aaa"), true)
	checkError(t, none.parseText(""), "")
	equal(t, "none", none.IsZero(), true)
	equal(t, "none", none.Regexp() == nil, true)
	equal(t, "no text", none.String(), "")
	checkError(t, none.parseText(`(?<=a)b`), `is not a regular expression: invalid named capture "(?<=a)b"; write one in the syntax of RE2, such as ^ok, with \ in front of signs that mean themselves`)
}

// TestDefaultsOfDoors lets targets replace what the defaults say, or have no
// use for it.
func TestDefaultsOfDoors(t *testing.T) {
	t.Parallel()
	const text = `
defaults:
  rate: 1
  http: {headers: {X-Token: a}, basic_auth: {username: u}}
  connection: {proxy_protocol: v1, proxy_source: "10.0.0.7:1", max_age: 1m}
  tls: {ciphers: [AES128-SHA], resumption: false}
  expect: {body: ok, body_contains: ok, body_size: 2, body_sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855, headers: {X-A: b}}
  backend: {body: (o)k, most: 9}
  tcp: {send: a, expect: b}
targets:
  - {name: get, url: "http://h/"}
  - {name: head, url: "http://h/", http: {method: HEAD}}
  - {name: header, url: "http://h/", backend: {header: X-B}, expect: {body_size: 0, body_contains: "", headers: {x-a: c}}, connection: {proxy_protocol: none}}
  - {name: tcp, url: "tcp://h:1"}
  - {name: file, url: "tls://h:1", tcp: {send_file: a}, tls: {ciphers: []}}
`
	p := fakeParser()
	config, _, err := p.parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	get, head, header, bare, file := &config.Targets[0], &config.Targets[1], &config.Targets[2], &config.Targets[3], &config.Targets[4]
	equal(t, "size of the defaults", *get.Expect.BodySize, 2)
	equal(t, "size of the target", *header.Expect.BodySize, 0)
	equal(t, "tcp of an http door", get.TCP, TCP{})
	equal(t, "pattern of the defaults", get.Backend.Body.String(), "(o)k")
	want := Expect{Status: []string{"2xx"}, MaxBody: 1 << 20, Headers: HeaderPatterns{"X-A": get.Expect.Headers["X-A"]}}
	same := cmp.Comparer(func(a, b Pattern) bool { return a.String() == b.String() })
	if diff := cmp.Diff(want, head.Expect, same); diff != "" {
		t.Errorf("expectation of HEAD (-want +got):\n%s", diff)
	}
	equal(t, "backend of HEAD", head.Backend.Body.IsZero(), true)
	equal(t, "backend by header", header.Backend.Header, "X-B")
	equal(t, "backend by header alone", header.Backend.Body.IsZero(), true)
	equal(t, "backends of the defaults", header.Backend.Most, 9)
	if got := slices.Collect(maps.Keys(header.Expect.Headers)); !slices.Equal(got, []string{"x-a"}) {
		t.Errorf("got header patterns %v, want x-a", got)
	}
	equal(t, "source without header", header.Connection.ProxySource, "")
	silent := builtInTarget()
	silent.bare()
	silent.Connection.ProxyProtocol, silent.Connection.ProxySource = "v1", "10.0.0.7:1"
	equal(t, "connection", bare.Connection, silent.Connection)
	equal(t, "authorization", bare.HTTP.BasicAuth == nil, true)
	if diff := cmp.Diff(silent.Expect, bare.Expect, same); diff != "" {
		t.Errorf("expectation of bare TCP (-want +got):\n%s", diff)
	}
	equal(t, "backends of bare TCP", bare.Backend, silent.Backend)
	equal(t, "sent", bare.TCP.Content().Reveal(), "a")
	equal(t, "sent of a file", file.TCP.Content().Reveal(), "content")
	equal(t, "written is replaced", file.TCP.Send.Empty(), true)
	equal(t, "any suite", len(file.TLS.Ciphers), 0)
}

func TestBareTarget(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*Target)
		want   string
	}{
		{"as it is", func(*Target) {}, ""},
		{"reuse", func(t *Target) { t.Connection.Reuse = true },
			"connection.reuse: is for connections that are kept, and a door whose URL begins with tls:// is given a new one for each tick in this version; remove it"},
		{"method", func(t *Target) { t.HTTP.Method = "GET" },
			"http.method: is for requests of HTTP, and the URL begins with tls://; remove it, or write http:// or https://"},
		{"status", func(t *Target) { t.Expect.Status = []string{"200"} },
			"expect.status: is for answers of HTTP, and the URL begins with tls://; write tcp.expect, or remove it"},
		{"suite that is none", func(t *Target) { t.TLS.Ciphers = []CipherSuite{1} },
			"tls.ciphers[0]: 1 is not the number of a cipher suite that Go can speak; write one of those of crypto/tls"},
		{"group that is none", func(t *Target) { t.TLS.Groups = []Group{1} },
			"tls.groups[0]: 1 is not the number of a group that Go can speak; write one of those of crypto/tls"},
		{"size below 0", func(t *Target) { s := Size(-1); t.URL = URL{}; t.Expect.BodySize = &s },
			"url: is missing; write url: http://HOST/PATH\nexpect.status: is empty, so that no answer is a success; write for example [\"2xx\"]\nexpect.body_size: -1 is out of range; write a size from 0 to 1024GiB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			target, err := ForURL("tls://h:1")
			if err != nil {
				t.Fatal(err)
			}
			if row.change(&target); target.URL.IsZero() {
				target.HTTP.Method, target.HTTP.Version = "GET", "1.1"
			}
			_, err = target.Validate()
			checkError(t, err, row.want)
		})
	}
}

// TestHandshake shakes hands with what a configuration asks for.
func TestHandshake(t *testing.T) {
	t.Parallel()
	cert, key := writePair(t, t.TempDir(), "a")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, url, tls    string
		version, protocol string
		suite             uint16
		group             tls.CurveID
	}{
		{"suite and group", "https://h/", "max_version: TLS12, ciphers: [ECDHE-ECDSA-AES256-SHA], groups: [P-384]",
			"TLS 1.2", "http/1.1", tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, tls.CurveP384},
		{"suite that is not secure", "tls://h:1", "max_version: TLS12, ciphers: [ECDHE-ECDSA-AES128-SHA256], groups: [P-521]",
			"TLS 1.2", "", tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256, tls.CurveP521},
		{"old version", "tls://h:1", "min_version: TLS10, max_version: TLS10, ciphers: [ECDHE-ECDSA-AES128-SHA]",
			"TLS 1.0", "", tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.X25519},
		{"hybrid", "https://h/", "min_version: TLS13, groups: [SecP384r1MLKEM1024]",
			"TLS 1.3", "http/1.1", 0, tls.SecP384r1MLKEM1024},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := fakeParser()
			config, _, err := p.parse([]byte("targets: [{name: a, rate: 1, url: '" + row.url + "', tls: {insecure_skip_verify: true, " + row.tls + "}}]"))
			if err != nil {
				t.Fatal(err)
			}
			client, server := net.Pipe()
			defer client.Close()
			defer server.Close()
			done := make(chan error, 1)
			go func() {
				suites := append([]uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256}, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA)
				done <- tls.Server(server, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS10, CipherSuites: suites, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true}).Handshake()
			}()
			conn := tls.Client(client, config.Targets[0].TLSConfig())
			if err := conn.Handshake(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			state := conn.ConnectionState()
			equal(t, "version", tls.VersionName(state.Version), row.version)
			equal(t, "protocol", state.NegotiatedProtocol, row.protocol)
			equal(t, "group", state.CurveID, row.group)
			if row.suite != 0 {
				equal(t, "suite", tls.CipherSuiteName(state.CipherSuite), tls.CipherSuiteName(row.suite))
			}
		})
	}
}

// TestReloadTLS replaces the files of a target one after the other.
func TestReloadTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key := writePair(t, folder, "a")
	newCert, newKey := writePair(t, folder, "b")
	text := "targets: [{name: a, rate: 1, url: 'https://h/', tls: {ca_file: a.pem, cert_file: a.pem, key_file: " + key + "}}]"
	config, _, err := Parse([]byte(text), filepath.Join(folder, "x.yml"))
	if err != nil {
		t.Fatal(err)
	}
	target := &config.Targets[0]
	if diff := cmp.Diff([]string{cert, cert, key}, target.TLSFiles()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	replace := func(path, by string) {
		data, err := os.ReadFile(by)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := target.TLSConfig()
	replace(cert, newCert)
	c, err := target.ReloadTLS()
	equal(t, "half replaced", c == nil, true)
	checkError(t, err, `tls.cert_file: certificate "a.pem" and key `+quote(key)+" do not go together: private key does not match public key; write the paths of a PEM certificate and of its key")
	replace(key, newKey)
	c, err = target.ReloadTLS()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "other certificate", string(c.Certificates[0].Certificate[0]) == string(old.Certificates[0].Certificate[0]), false)
	equal(t, "other authority", c.RootCAs.Equal(old.RootCAs), false)
	equal(t, "other sessions", c.ClientSessionCache == old.ClientSessionCache, false)
	equal(t, "the target's own", target.TLSConfig().RootCAs.Equal(old.RootCAs), true)
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	_, err = target.ReloadTLS()
	checkError(t, err, `tls.ca_file: file "a.pem" does not exist; write the path of a readable file
tls.cert_file: file "a.pem" does not exist; write the path of a readable file`)

	plain, err := ForURL("http://h/")
	if err != nil {
		t.Fatal(err)
	}
	plain.TLS.CAFile = cert
	c, err = plain.ReloadTLS()
	equal(t, "no TLS", c == nil && err == nil && plain.TLSFiles() == nil, true)
}

// TestSessionIsResumed tells that one session is enough for a door.
func TestSessionIsResumed(t *testing.T) {
	t.Parallel()
	target, err := ForURL("https://10.0.0.7/")
	if err != nil {
		t.Fatal(err)
	}
	cert, key := writePair(t, t.TempDir(), "a")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	target.TLS.InsecureSkipVerify = true
	door, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	var answered sync.WaitGroup
	defer answered.Wait()
	defer door.Close()
	answered.Go(func() {
		for {
			conn, err := door.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("x")) // behind the tickets
			_ = conn.Close()
		}
	})
	client := target.TLSConfig()
	for i, want := range []bool{false, true, true} {
		conn, err := tls.Dial("tcp", door.Addr().String(), client)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().DidResume; got != want {
			t.Errorf("handshake %d: resumed %v, want %v", i, got, want)
		}
		_ = conn.Close()
	}
}

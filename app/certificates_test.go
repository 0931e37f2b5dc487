package app

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
	"github.com/steadyprobe/steadyprobe/probe"
)

// replace puts another file in the place of one, in one step.
func replace(t *testing.T, path, by string) {
	t.Helper()
	if err := os.Rename(by, path); err != nil {
		t.Fatal(err)
	}
}

// TestCertificatesAreReadAgain replaces a client certificate and its key one
// after the other, as tools do, and looks in between.
func TestCertificatesAreReadAgain(t *testing.T) {
	ca := testcert.NewCA(t, "test", testcert.Options{})
	first, second := ca.Leaf(t, testcert.Options{Client: true}), ca.Leaf(t, testcert.Options{Client: true})
	cert, key := testcert.Write(t, first)
	newCert, newKey := testcert.Write(t, second)
	target, err := config.ForURL("https://localhost/")
	if err != nil {
		t.Fatal(err)
	}
	target.TLS.CertFile, target.TLS.KeyFile = cert, key
	if _, err := target.Validate(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	c := newCertificates(&target, probe.NewClock(), slog.New(slog.NewTextHandler(&log, nil)))
	shows := func(what string, want []byte, lines int) {
		t.Helper()
		c.next.Store(0) // a second is over
		if got := c.config().Certificates[0].Certificate[0]; !bytes.Equal(got, want) {
			t.Errorf("%s: another certificate is shown", what)
		}
		if n := strings.Count(log.String(), "\n"); n != lines {
			t.Errorf("%s: logged %d lines, want %d:\n%s", what, n, lines, &log)
		}
	}
	old := c.config()
	shows("nothing has changed", first.Certificate[0], 0)
	if c.config() != old {
		t.Error("files that have not changed were read again")
	}
	replace(t, cert, newCert)
	if c.config() != old {
		t.Error("files were looked at twice within a second")
	}
	shows("the key is of another certificate", first.Certificate[0], 1)
	shows("it still is", first.Certificate[0], 1)
	replace(t, key, newKey)
	shows("both are new", second.Certificate[0], 2)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	shows("the key is gone", second.Certificate[0], 3)
	if !strings.Contains(log.String(), "does not exist") || strings.Contains(log.String(), "PRIVATE") {
		t.Errorf("the log does not say what is wrong, or says too much:\n%s", &log)
	}
}

// TestCertificatesThatChangeAtOnce replaces files between the reading of the
// configuration and its use.
func TestCertificatesThatChangeAtOnce(t *testing.T) {
	ca := testcert.NewCA(t, "test", testcert.Options{})
	first, second := ca.Leaf(t, testcert.Options{Client: true}), ca.Leaf(t, testcert.Options{Client: true})
	for _, row := range []struct {
		name  string
		whole bool
		want  []byte
		log   string
	}{
		{"both", true, second.Certificate[0], ""},
		{"the certificate only", false, first.Certificate[0], "do not go together"},
	} {
		t.Run(row.name, func(t *testing.T) {
			cert, key := testcert.Write(t, first)
			newCert, newKey := testcert.Write(t, second)
			target, err := config.ForURL("https://localhost/")
			if err != nil {
				t.Fatal(err)
			}
			target.TLS.CertFile, target.TLS.KeyFile = cert, key
			if _, err := target.Validate(); err != nil {
				t.Fatal(err)
			}
			replace(t, cert, newCert)
			if row.whole {
				replace(t, key, newKey)
			}
			var log bytes.Buffer
			c := newCertificates(&target, probe.NewClock(), slog.New(slog.NewTextHandler(&log, nil)))
			if got := c.config().Certificates[0].Certificate[0]; !bytes.Equal(got, row.want) {
				t.Error("another certificate is shown")
			}
			if !strings.Contains(log.String(), row.log) || (row.log == "") != (log.Len() == 0) {
				t.Errorf("logged %q, want %q", &log, row.log)
			}
		})
	}
}

func TestCertificatesWithoutFiles(t *testing.T) {
	target, err := config.ForURL("https://localhost/")
	if err != nil {
		t.Fatal(err)
	}
	c := newCertificates(&target, probe.NewClock(), quiet())
	if got := c.config(); got == nil || got != c.config() || got.ServerName != "localhost" {
		t.Errorf("got %+v", got)
	}
}

// TestCertificateOfADoorThatResumes has a door replace its certificate and go on
// resuming sessions that began under the old one.
func TestCertificateOfADoorThatResumes(t *testing.T) {
	ca := testcert.NewCA(t, "test", testcert.Options{})
	served := ca.Leaf(t, testcert.Options{})
	door := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &served, nil }}
	target, err := config.ForURL("https://localhost/")
	if err != nil {
		t.Fatal(err)
	}
	target.TLS.CA = string(ca.PEM())
	if _, err := target.Validate(); err != nil {
		t.Fatal(err)
	}
	c := newCertificates(&target, probe.NewClock(), quiet())
	shake := func(what string, resumed bool, leaf tls.Certificate) {
		t.Helper()
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			defer far.Close()
			server := tls.Server(far, door)
			_, _ = server.Write([]byte("x")) // behind the tickets
		}()
		client := tls.Client(near, c.config())
		if _, err := client.Read(make([]byte, 1)); err != nil {
			t.Fatal(what, err)
		}
		state := client.ConnectionState()
		if state.DidResume != resumed || !bytes.Equal(state.PeerCertificates[0].Raw, leaf.Certificate[0]) {
			t.Errorf("%s: resumed %v, want %v and the right certificate", what, state.DidResume, resumed)
		}
	}
	first := served
	shake("first", false, first)
	shake("second", true, first)
	served = ca.Leaf(t, testcert.Options{})
	shake("the certificate is new, the session is not", true, first)
	c.full.Store(0) // a minute is over
	shake("a minute later", false, served)
	shake("after that", true, served)
}

package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

var (
	errCutOff    = errors.New("holds a certificate that is cut off, or does not begin on a line of its own")
	errDirectory = errors.New("is a directory")
	errTooLarge  = errors.New("is too large")
)

// readFile returns what the file at path holds.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, errDirectory
	}
	data, err := io.ReadAll(io.LimitReader(file, mostFile+1))
	if err == nil && len(data) > mostFile {
		err = errTooLarge
	}
	return data, err
}

// reason says in the same words on every system why a file could not be read.
func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read by this user"
	case errors.Is(err, errDirectory), errors.Is(err, syscall.EISDIR):
		return errDirectory.Error()
	case errors.Is(err, errTooLarge):
		return fmt.Sprintf("is larger than %d MiB", mostFile>>20)
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return "cannot be read: " + err.Error()
}

// files reads the files that a configuration names, each once.
type files struct {
	folder string // that relative paths start at
	hint   string // says so in messages, where the user may not expect it
	open   func(path string) ([]byte, error)
	cache  map[string]content
}

type content struct {
	data []byte
	err  error
}

func newFiles(folder string, open func(path string) ([]byte, error)) *files {
	return &files{folder: folder, open: open, cache: map[string]content{}}
}

// read returns what the file holds that the setting at path names. It returns
// nil when there is none, or when it cannot be read, which is reported.
func (f *files) read(c *checker, path, name string) []byte {
	if name == "" || !c.good(path) {
		return nil
	}
	full := within(f.folder, name)
	found, known := f.cache[full]
	if !known {
		found.data, found.err = f.open(full)
		f.cache[full] = found
	}
	if found.err != nil {
		c.fail(path, "file %s %s; write the path of a readable file%s", quote(name), reason(found.err), f.hint)
		return nil
	}
	return found.data
}

// within returns the path of a file whose relative path starts at folder.
func within(folder, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(folder, name)
}

// secret returns what the file holds without the white space around it, which
// editors add.
func (f *files) secret(c *checker, path, name string) Secret {
	data := f.read(c, path, name)
	text := strings.TrimSpace(string(data))
	if data != nil && text == "" {
		c.fail(path, "file %s is empty; write the value into it", quote(name))
	}
	return NewSecret(text)
}

// fill reads all files that the target names, and checks what they hold.
func (f *files) fill(c *checker, t *Target) {
	f.fillTraffic(c, t)
	f.fillTLS(c, &t.TLS)
}

// fillTraffic reads the files of what a target sends, and checks what they hold.
func (f *files) fillTraffic(c *checker, t *Target) {
	if t.folder = ""; len(t.trafficFiles()) > 0 {
		t.folder = f.folder
	}
	h := &t.HTTP
	h.content = NewSecret(string(f.read(c, "http.body_file", h.BodyFile)))
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		header, path := h.Headers[name], headerPath(name)
		header.contents = nil
		for _, file := range header.Files {
			if file == "" && c.good(path) {
				c.fail(path, "has a file without name; write its path")
			}
			value := f.secret(c, path, file)
			c.value(path, value)
			header.contents = append(header.contents, value)
		}
		h.Headers[name] = header
	}
	if b := h.BasicAuth; b != nil {
		b.username = f.secret(c, "http.basic_auth.username_file", b.UsernameFile)
		b.password = f.secret(c, "http.basic_auth.password_file", b.PasswordFile)
		c.userPart("http.basic_auth.username_file", b.username)
	}
	if a := h.Authorization; a != nil {
		a.credentials = f.secret(c, "http.authorization.credentials_file", a.CredentialsFile)
		c.value("http.authorization.credentials_file", a.credentials)
	}
	t.TCP.content = NewSecret(string(f.read(c, "tcp.send_file", t.TCP.SendFile)))
}

// fillTLS reads the files of a target's TLS, and checks that they are usable.
func (f *files) fillTLS(c *checker, t *TLS) {
	if t.folder = ""; t.CAFile != "" || t.CertFile != "" || t.KeyFile != "" {
		t.folder = f.folder
	}
	t.ca = NewSecret(t.CA)
	if t.CAFile != "" {
		t.ca = NewSecret(string(f.read(c, "tls.ca_file", t.CAFile)))
	}
	t.cert = NewSecret(string(f.read(c, "tls.cert_file", t.CertFile)))
	t.key = NewSecret(string(f.read(c, "tls.key_file", t.KeyFile)))
	if t.CAFile != "" && c.good("tls.ca_file") {
		if _, err := authorities(t.ca); err != nil {
			c.fail("tls.ca_file", "file %s %s; write the path of a PEM file with the certificates of the authorities", quote(t.CAFile), err)
		}
	}
	if t.CertFile == "" || t.KeyFile == "" || !c.good("tls.cert_file", "tls.key_file") {
		return
	}
	if encrypted(t.key) {
		c.fail("tls.key_file", "key %s is encrypted, and nobody can be asked for its passphrase; write the path of one that is not, as openssl pkey -in FILE prints it", quote(t.KeyFile))
		return
	}
	if cutOff(t.cert) {
		c.fail("tls.cert_file", "file %s %s; write the path of a PEM certificate, and of those that lead to its authority, where the door lacks them", quote(t.CertFile), errCutOff)
		return
	}
	if _, err := tls.X509KeyPair([]byte(t.cert.Reveal()), []byte(t.key.Reveal())); err != nil {
		text := strings.TrimPrefix(err.Error(), "tls: ")
		c.fail("tls.cert_file", "certificate %s and key %s do not go together: %s; write the paths of a PEM certificate and of its key", quote(t.CertFile), quote(t.KeyFile), text)
	}
}

// encrypted reports whether a PEM file begins with a key that needs a
// passphrase (RFC 5958, section 3, and before it RFC 1421, section 4.6.1.1).
func encrypted(text Secret) bool {
	block, _ := pem.Decode([]byte(text.Reveal()))
	return block != nil && (block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"))
}

// authorities returns the certificates of a PEM file, every one of which must
// be valid.
func authorities(text Secret) (*x509.CertPool, error) {
	pool, rest, n := x509.NewCertPool(), []byte(text.Reveal()), 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("holds a certificate that cannot be parsed")
		}
		pool.AddCert(certificate)
		n++
	}
	switch {
	case cutOff(text):
		return nil, errCutOff
	case n == 0:
		return nil, errors.New("holds no PEM certificate")
	}
	return pool, nil
}

// cutOff reports whether a PEM file has certificates that begin and cannot be
// decoded. Decoding passes over them, so that a file which is being written
// would be a good one with fewer certificates.
func cutOff(text Secret) bool {
	whole, rest := 0, []byte(text.Reveal())
	begun := bytes.Count(rest, []byte("-----BEGIN CERTIFICATE-----"))
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return whole < begun
		}
		if block.Type == "CERTIFICATE" {
			whole++
		}
	}
}

package config

import (
	"crypto/tls"
)

// TLSConfig returns how the door is to be spoken to over TLS, and nil for one
// whose URL begins with http or tcp. Where resumption is on it has a session
// cache of its own. It offers HTTP/1.1 to an https door, and no protocol to a
// tls one. A target that did not pass [Load] or [Target.Validate] may be given
// less than its files hold.
func (t *Target) TLSConfig() *tls.Config {
	if !t.URL.TLS() {
		return nil
	}
	c := &tls.Config{
		MinVersion:         uint16(t.TLS.MinVersion),
		MaxVersion:         uint16(t.TLS.MaxVersion),
		ServerName:         t.TLS.ServerName,
		InsecureSkipVerify: t.TLS.InsecureSkipVerify, // the user's choice, warned about
	}
	if t.URL.HTTP() {
		c.NextProtos = []string{"http/1.1"}
	}
	if c.ServerName == "" {
		c.ServerName = t.URL.Hostname()
	}
	for _, suite := range t.TLS.Ciphers {
		c.CipherSuites = append(c.CipherSuites, uint16(suite))
	}
	for _, group := range t.TLS.Groups {
		c.CurvePreferences = append(c.CurvePreferences, tls.CurveID(group))
	}
	if pool, err := authorities(t.TLS.ca); err == nil {
		c.RootCAs = pool
	}
	if pair, err := tls.X509KeyPair([]byte(t.TLS.cert.Reveal()), []byte(t.TLS.key.Reveal())); err == nil {
		c.Certificates = []tls.Certificate{pair}
	}
	if t.TLS.Resumption {
		// A config with a server name has one session in it.
		c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	return c
}

// TLSFiles returns the paths of the files that [Target.ReloadTLS] reads, fit
// for opening: the authorities, the certificate and the key, as far as there
// are any. It returns none for a door that is not spoken to over TLS.
func (t *Target) TLSFiles() []string {
	if !t.URL.TLS() {
		return nil
	}
	var paths []string
	for _, name := range []string{t.TLS.CAFile, t.TLS.CertFile, t.TLS.KeyFile} {
		if name != "" {
			paths = append(paths, within(t.TLS.folder, name))
		}
	}
	return paths
}

// ReloadTLS reads the files of [Target.TLSFiles] again and returns what
// [Target.TLSConfig] returns of what they hold now, with an empty session
// cache: a session that began under another authority or certificate is not to
// be resumed. It fails, with an [*Errors] that names each file and what to do,
// when one of them cannot be read or used, which may be so for a moment while a
// certificate and its key are replaced one after the other. It changes nothing
// of the target and may be called concurrently.
func (t *Target) ReloadTLS() (*tls.Config, error) {
	if !t.URL.TLS() {
		return nil, nil
	}
	fresh := *t
	r := &report{}
	newFiles(t.TLS.folder, readFile).fillTLS(&checker{report: r, marks: newMarks()}, &fresh.TLS)
	if err := r.err(); err != nil {
		return nil, err
	}
	return fresh.TLSConfig(), nil
}

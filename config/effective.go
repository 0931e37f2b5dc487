package config

import (
	"encoding/base64"
	"maps"
	"reflect"
	"slices"
)

// HeaderField is one line of a request's header.
type HeaderField struct {
	Name  string
	Value Secret
}

// HeaderFields returns the header fields that the configuration asks for,
// sorted by name: the headers, and the Authorization of basic_auth,
// authorization or the URL's user info. Host, User-Agent, Content-Length and
// Connection are not among them, unless a header sets the User-Agent.
func (t *Target) HeaderFields() []HeaderField {
	var fields []HeaderField
	for _, name := range slices.Sorted(maps.Keys(t.HTTP.Headers)) {
		h := t.HTTP.Headers[name]
		for _, value := range slices.Concat(h.Values, h.Secrets, h.contents) {
			fields = append(fields, HeaderField{Name: name, Value: value})
		}
	}
	if value := t.authorizationValue(); !value.Empty() {
		fields = append(fields, HeaderField{Name: "Authorization", Value: value})
	}
	return fields
}

func (t *Target) authorizationValue() Secret {
	if a := t.HTTP.Authorization; a != nil {
		scheme := a.Type
		if scheme == "" {
			scheme = "Bearer"
		}
		return NewSecret(scheme + " " + either(a.CredentialsFile, a.credentials, a.Credentials).Reveal())
	}
	if b := t.HTTP.BasicAuth; b != nil {
		return basic(either(b.UsernameFile, b.username, b.Username).Reveal(), either(b.PasswordFile, b.password, b.Password))
	}
	if name, password, ok := t.URL.User(); ok {
		return basic(name, password)
	}
	return Secret{}
}

// either returns what the file holds where one is named.
func either(file string, content, written Secret) Secret {
	if file != "" {
		return content
	}
	return written
}

// basic returns the credentials of RFC 7617.
func basic(name string, password Secret) Secret {
	return NewSecret("Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password.Reveal())))
}

// HostHeader returns the value of the Host header.
func (t *Target) HostHeader() string {
	if t.HTTP.Host != "" {
		return t.HTTP.Host
	}
	return t.URL.Host()
}

// DialAddress returns the HOST:PORT to connect to.
func (t *Target) DialAddress() string {
	if t.ConnectTo != "" {
		return t.ConnectTo
	}
	return t.URL.Address()
}

// Equal reports whether both targets say the same, what their files hold
// included. A rate of 10 and one of 10.0 are the same.
func (t *Target) Equal(o *Target) bool {
	if !t.Rate.Equal(o.Rate) {
		return false
	}
	a, b := *t, *o
	a.Rate, b.Rate = Rate{}, Rate{}
	return reflect.DeepEqual(a, b)
}

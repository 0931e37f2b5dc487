package config

import "fmt"

// masked is what is shown in the place of a secret.
const masked = "<secret>"

// Secret is text that must not be shown. Whatever prints, logs or marshals it
// shows "<secret>", or nothing when it is empty. The text is behind a pointer,
// so that printing a structure which hides it in an unexported field does not
// show it either. The zero Secret is empty.
type Secret struct{ text *string }

// NewSecret returns text as a secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text itself. It must not be logged or put into an error.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s.text == nil }

// Equal reports whether both hold the same text.
func (s Secret) Equal(o Secret) bool { return s.Reveal() == o.Reveal() }

// String returns "<secret>", or "" when the secret is empty.
func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return masked
}

// GoString returns the same as String.
func (s Secret) GoString() string { return s.String() }

// Format writes the same as String, whatever the verb is.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText returns the same as String, for JSON, YAML and structured logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Secret) parseText(text string) error {
	*s = NewSecret(text)
	return nil
}

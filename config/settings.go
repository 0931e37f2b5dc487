package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Settings are a part of the file that another package reads, because it knows
// what may be there. Here only their form is checked: plain mappings and lists,
// without aliases, merge keys and keys that are there twice. Their lines and
// their path in the file stay known. The zero Settings are not written.
type Settings struct {
	node *yaml.Node
	file string
	path string
}

// Written reports whether there are any.
func (s Settings) Written() bool { return s.node != nil }

// Node returns the settings as they were written, which must not be changed;
// nil where they are not.
func (s Settings) Node() *yaml.Node { return s.node }

// Folder returns the folder that relative paths of files start at.
func (s Settings) Folder() string { return filepath.Dir(s.file) }

// Text returns the settings without positions and comments: two that have the
// same text say the same. It may hold secrets and must not be shown.
func (s Settings) Text() string {
	if s.node == nil {
		return ""
	}
	text, err := yaml.Marshal(s.node)
	if err != nil { // plain nodes, written to memory, cannot fail
		panic("config: encoding: " + err.Error())
	}
	return string(text)
}

// Problem returns what is wrong with the field below the settings that has this
// path, empty for the settings themselves. The text says what to write instead,
// and shows no secret.
func (s Settings) Problem(line int, field, text string) Problem {
	return Problem{File: s.file, Line: line, Field: join(s.path, field), Text: text}
}

// settings copies what is written, without what is only about how.
func (d *decoder) settings(n *yaml.Node, line int, path string, s *Settings) {
	*s = Settings{node: d.plainCopy(n, line, path), file: d.report.file, path: join(d.block, path)}
}

func (d *decoder) plainCopy(n *yaml.Node, line int, path string) *yaml.Node {
	n = follow(n)
	c := &yaml.Node{Kind: n.Kind, Tag: n.ShortTag(), Value: n.Value, Line: line}
	switch n.Kind {
	case yaml.MappingNode:
		for _, p := range d.pairs(n, line, path) {
			at := join(path, shown(p.key))
			if !d.spend(1, p.line, at) {
				break
			}
			key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: p.key, Line: p.line}
			c.Content = append(c.Content, key, d.plainCopy(p.value, p.line, at))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			if !d.spend(1, item.Line, at) {
				break
			}
			c.Content = append(c.Content, d.plainCopy(item, follow(item).Line, at))
		}
	case yaml.ScalarNode:
		if !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!timestamp", "!!null"}, c.Tag) {
			d.fail(line, path, "has a tag that is not supported; write the plain value")
		}
	}
	return c
}

// masked returns the settings for people: of those that may hold a secret only
// what is known to hold none.
func (s Settings) masked() *yaml.Node {
	switch {
	case s.node == nil:
		return &yaml.Node{Kind: yaml.MappingNode}
	case strings.HasSuffix(s.path, relabelConfigs):
		return s.node
	}
	return maskedNode(s.node, "")
}

// maskedNode masks what is below a key.
func maskedNode(n *yaml.Node, key string) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	switch {
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			c.Content[i] = maskedNode(item, key)
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if slices.Contains(opaqueSettings(), key) {
				name = "" // what the user has named says nothing of its value
			}
			c.Content[i], c.Content[i+1] = n.Content[i], maskedNode(n.Content[i+1], name)
		}
	case slices.Contains(publicSettings(), key):
	case slices.Contains(urlSettings(), key):
		return quoted(maskedURL(n.Value))
	case n.Value != "" && !isNull(n):
		return quoted(masked)
	}
	return &c
}

// maskedURL returns a URL of any kind without what may be secret in it.
func maskedURL(text string) string {
	u, err := url.Parse(strings.Replace(text, maskedUser, "//"+url.PathEscape(masked)+"@", 1))
	if err != nil || u.Opaque != "" || text == masked {
		return masked
	}
	public := URL{parsed: u}
	return public.String()
}

// publicSettings returns the names of settings of Prometheus's discovery that
// hold no secret, nor anything below them.
func publicSettings() []string {
	return []string{
		"files", "refresh_interval", "names", "type", "port",
		"role", "kubeconfig_file", "own_namespace", "label", "field", "node", "namespace", "deployment", "job", "cronjob",
		"follow_redirects", "enable_http2", "no_proxy", "proxy_from_environment",
		"username_file", "password_file", "credentials_file", "bearer_token_file", "client_secret_file", "client_certificate_key_file",
		"client_id", "client_certificate_key_id", "grant_type", "signature_algorithm", "scopes",
		"ca", "ca_file", "cert_file", "key_file", "server_name", "insecure_skip_verify", "min_version", "max_version",
	}
}

// urlSettings returns the names of those that hold a URL.
func urlSettings() []string { return []string{"url", "api_server", "proxy_url", "token_url"} }

// opaqueSettings returns the names of those whose keys the user chooses.
func opaqueSettings() []string {
	return []string{"http_headers", "proxy_connect_header", "endpoint_params", "claims"}
}

// Unknown returns that there is no such key below the settings, with what to
// write instead.
func (s Settings) Unknown(line int, field, key string, fields []string) Problem {
	return s.Problem(line, join(field, shown(key)), "unknown field; "+suggestion(key, fields))
}

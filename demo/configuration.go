package demo

import (
	_ "embed"
	"strings"
)

//go:embed steadyprobe.yml
var configurationText string

// configuration returns the text of a configuration that probes the doors at
// these addresses. The authority is PEM.
func configuration(steadyHTTP, steadyHTTPS, reloadingHTTP, authority string) []byte {
	return []byte(strings.NewReplacer(
		"STEADY_HTTP", steadyHTTP,
		"STEADY_TLS", steadyHTTPS,
		"RELOADING_HTTP", reloadingHTTP,
		"AUTHORITY\n", indented(authority),
	).Replace(configurationText))
}

// indented returns the lines as those of a block of YAML.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("        " + line)
	}
	return b.String()
}

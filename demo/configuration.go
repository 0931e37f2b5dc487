package demo

import (
	_ "embed"
	"strings"
)

//go:embed steadyprobe.yml
var configurationText string

// configuration returns the text of a configuration that probes the doors at
// these addresses. The authority is the path of a PEM file.
func configuration(steadyHTTP, steadyHTTPS, reloadingHTTP, authority string) []byte {
	return []byte(strings.NewReplacer(
		"STEADY_HTTP", steadyHTTP,
		"STEADY_TLS", steadyHTTPS,
		"RELOADING_HTTP", reloadingHTTP,
		"AUTHORITY", "'"+strings.ReplaceAll(authority, "'", "''")+"'", // as YAML quotes it
	).Replace(configurationText))
}

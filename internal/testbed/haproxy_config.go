package testbed

import (
	"fmt"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

const haproxyConfiguration = `global
	maxconn 8000
	nbthread 1
	stats socket %[1]s mode 600 level admin
	stats timeout 1h
	log stdout format raw local0
%[2]s
defaults
	mode http
	timeout connect 5s
	timeout client 60s
	timeout server 60s
	timeout http-keep-alive %[3]dms
frontend door
	bind %[4]s
	bind %[5]s ssl crt %[6]s ssl-min-ver %[7]s ssl-max-ver %[8]s
%[9]s
`

// configuration returns the text of haproxy.cfg.
func (h *HAProxyServer) configuration(o HAProxyOptions) string {
	h.t.Helper()
	timeout := o.KeepaliveTimeout
	if timeout == 0 {
		timeout = time.Minute
	}
	global := "\tlua-load " + h.path("wait.lua") + "\n" + o.Global
	if o.NoResumption {
		global = "\ttune.ssl.cachesize 0\n\tssl-default-bind-options no-tls-tickets\n" + global
	}
	certificate, key := testcert.Write(h.t, h.CA.Leaf(h.t, o.Certificate))
	pair := h.write("door.pem", read(h.t, certificate)+read(h.t, key)) // HAProxy wants both in one file
	versions := o.TLS.names()
	return fmt.Sprintf(haproxyConfiguration, h.socket("worker"), global, timeout.Milliseconds(), h.HTTP, h.HTTPS,
		pair, versions[0], versions[len(versions)-1], h.frontend(o))
}

// frontend returns what the door does with requests, and its backend.
func (h *HAProxyServer) frontend(o HAProxyOptions) string {
	var b strings.Builder
	if o.AccessLog {
		b.WriteString("\ttcp-request connection set-var(sess.connection) uuid\n" +
			"\tlog global\n" +
			"\tlog-format \"" + logMark + "%[var(sess.connection)] %[ssl_fc_is_resumed] %[ssl_fc_protocol] %ST\"\n")
	}
	b.WriteString(o.Frontend + "\n")
	for _, code := range []int{403, 404, 429, 500, 502, 503} {
		fmt.Fprintf(&b, "\thttp-request return status %d if { path /status/%[1]d }\n", code)
	}
	if len(o.Backends) == 0 {
		fmt.Fprintf(&b, "\thttp-request return status 200 content-type text/plain file %s\n", h.path("body"))
		return b.String()
	}
	b.WriteString("\tdefault_backend servers\nbackend servers\n")
	for i, address := range o.Backends {
		fmt.Fprintf(&b, "\tserver s%d %s\n", i, address)
	}
	return b.String()
}

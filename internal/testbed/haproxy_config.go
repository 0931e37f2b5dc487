package testbed

import (
	"crypto/tls"
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
	mode %[3]s
	timeout connect 5s
	timeout client 60s
	timeout server 60s
	timeout http-keep-alive %[4]dms
frontend door
%[5]s
%[6]s
`

// configuration returns the text of haproxy.cfg.
func (h *HAProxyServer) configuration(o HAProxyOptions) string {
	h.t.Helper()
	timeout := o.KeepaliveTimeout
	if timeout == 0 {
		timeout = time.Minute
	}
	global, mode := o.Global, "http"
	if strings.Contains(o.Frontend, "lua.wait") {
		global = "\tlua-load " + h.path("wait.lua") + "\n" + global
	}
	if o.NoResumption {
		global = "\ttune.ssl.cachesize 0\n\tssl-default-bind-options no-tls-tickets\n" + global
	}
	if o.TCP {
		mode = "tcp"
	}
	return fmt.Sprintf(haproxyConfiguration, h.socket("worker"), global, mode, timeout.Milliseconds(), h.bind(o), h.frontend(o))
}

// Certify puts another certificate in the place of the one that HAProxy has,
// for it to take at the next Reload or Start.
func (h *HAProxyServer) Certify(c tls.Certificate) {
	h.t.Helper()
	certificate, key := testcert.Write(h.t, c)
	overwrite(h.t, h.pair, read(h.t, certificate)+read(h.t, key)) // HAProxy wants both in one file
}

// bind returns the lines that say where the door listens.
func (h *HAProxyServer) bind(o HAProxyOptions) string {
	versions := o.TLS.names()
	var b strings.Builder
	for i := range 1 + len(o.Addresses) {
		plain, secure := h.HTTP, h.HTTPS
		if i > 0 {
			plain, secure = portAt(h.HTTP, o.Addresses[i-1]), portAt(h.HTTPS, o.Addresses[i-1])
		}
		fmt.Fprintf(&b, "\tbind %s %s\n\tbind %s ssl crt %s ssl-min-ver %s ssl-max-ver %s %[2]s %[7]s\n",
			plain, o.Bind, secure, h.pair, versions[0], versions[len(versions)-1], o.BindTLS)
	}
	return b.String()
}

// frontend returns what the door does with requests, and its backend.
func (h *HAProxyServer) frontend(o HAProxyOptions) string {
	var b strings.Builder
	if o.AccessLog {
		status := "%ST"
		if o.TCP {
			status = "0" // there is none
		}
		b.WriteString("\ttcp-request connection set-var(sess.connection) uuid\n" +
			"\tlog global\n" +
			"\tlog-format \"" + logMark + "%[var(sess.connection)] %[ssl_fc_is_resumed] %[ssl_fc_protocol] " + status + " " + o.Note + "\"\n")
	}
	b.WriteString(o.Frontend + "\n")
	if !o.TCP {
		for _, code := range []int{403, 404, 429, 500, 502, 503} {
			fmt.Fprintf(&b, "\thttp-request return status %d if { path /status/%[1]d }\n", code)
		}
	}
	if len(o.Backends) == 0 && o.Slots == 0 && o.Backend == "" {
		fmt.Fprintf(&b, "\thttp-request return status 200 content-type text/plain file %s\n", h.path("body"))
		return b.String()
	}
	b.WriteString("\tdefault_backend servers\nbackend servers\n" + o.Backend)
	for i, address := range o.Backends {
		fmt.Fprintf(&b, "\tserver s%d %s %s\n", i, address, o.Server)
	}
	if o.Slots > 0 {
		fmt.Fprintf(&b, "\tserver-template slot 1-%d 127.0.0.1:1 disabled %s\n", o.Slots, o.Server)
	}
	return b.String()
}

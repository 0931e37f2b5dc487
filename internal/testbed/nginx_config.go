package testbed

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"

	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

const nginxConfiguration = `%s
daemon off;
worker_processes 1;
pid %[2]s/nginx.pid;
error_log %[2]s/error.log notice;
events { worker_connections 4096; }
http {
	default_type text/plain;
	client_body_temp_path %[2]s/client;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	log_format bed '%[15]s$pid.$connection $connection_requests "$ssl_session_reused" "$ssl_protocol" $status %[16]s';
	access_log %[3]s;
	keepalive_timeout %[4]d;
	keepalive_requests %[5]d;
%[6]s
	server {
%[7]s
		ssl_certificate %[8]s;
		ssl_certificate_key %[9]s;
		ssl_protocols %[10]s;
		ssl_session_cache %[11]s;
		ssl_session_tickets %[12]s;
%[13]s
	}
	server {
		listen %[14]s;
		access_log off;
		keepalive_timeout 0;
		location / { stub_status; }
	}
}
`

// configuration returns the text of nginx.conf.
func (n *NGINXServer) configuration(o NGINXOptions) string {
	n.t.Helper()
	user, log, cache, tickets, upstream := "", "off", "shared:bed:4m", "on", ""
	if os.Geteuid() == 0 {
		user = "user root root;" // the test's folder is closed to others
	}
	if o.AccessLog {
		log = n.path("access.log") + " bed"
	}
	if o.NoSessionCache {
		cache = "off"
	}
	if o.NoTickets {
		tickets = "off"
	}
	if len(o.Backends) > 0 {
		upstream = "\tupstream backends { server " + strings.Join(o.Backends, "; server ") + "; keepalive 64; " + o.Upstream + " }"
	}
	timeout, requests := int(o.KeepaliveTimeout.Seconds()), o.KeepaliveRequests
	if timeout == 0 {
		timeout = 75
	}
	if requests == 0 {
		requests = 1000
	}
	return fmt.Sprintf(nginxConfiguration, user, n.dir, log, timeout, requests, upstream, n.listen(o),
		n.certificate, n.key, strings.Join(o.TLS.names(), " "), cache, tickets, o.Server+"\n"+locations(o), n.status, logMark, o.Note)
}

// listen returns the lines that say where the door listens.
func (n *NGINXServer) listen(o NGINXOptions) string {
	words := ""
	if o.ProxyProtocol {
		words = " proxy_protocol"
	}
	var b strings.Builder
	for i := range 1 + len(o.Addresses) {
		plain, secure := n.HTTP, n.HTTPS
		if i > 0 {
			plain, secure = portAt(n.HTTP, o.Addresses[i-1]), portAt(n.HTTPS, o.Addresses[i-1])
		}
		fmt.Fprintf(&b, "\t\tlisten %s backlog=4096%s;\n\t\tlisten %s ssl backlog=4096%[2]s;\n", plain, words, secure)
	}
	return b.String()
}

// locations returns the locations of the door.
func locations(o NGINXOptions) string {
	var b strings.Builder
	for _, code := range []int{204, 301, 403, 429, 500, 502, 503, 404} {
		fmt.Fprintf(&b, "\t\tlocation = /status/%d { return %[1]d; }\n", code)
	}
	if len(o.Backends) > 0 {
		b.WriteString("\t\tlocation / { proxy_pass http://backends; proxy_http_version 1.1; proxy_set_header Connection \"\"; }\n")
	} else {
		fmt.Fprintf(&b, "\t\tlocation / { return 200 %q; }\n", Body())
	}
	return b.String() + o.Locations
}

// Certify puts another certificate in the place of the one that nginx has, for
// it to take at the next Reload or Start.
func (n *NGINXServer) Certify(c tls.Certificate) {
	n.t.Helper()
	certificate, key := testcert.Write(n.t, c)
	overwrite(n.t, n.certificate, read(n.t, certificate))
	overwrite(n.t, n.key, read(n.t, key))
}

package test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// TestExpectations holds answers of nginx and HAProxy against everything that
// may be expected of them. A request that fails here was answered all the same.
func TestExpectations(t *testing.T) {
	checkLeaks(t)
	n := testbed.NGINX(t, testbed.NGINXOptions{
		AccessLog: true, Note: "$http_user_agent $uri",
		Server: `add_header X-Version "v2.1" always;`,
		Locations: `
		location = /ok { return 200 "status: ok, 12 items"; }
		location = /empty { return 200; }
		location = /maintenance { return 200 "<h1>Down for maintenance</h1>"; }
		location = /twice { add_header X-Who a; add_header X-Who b; return 200 "x"; }
`,
	})
	h := testbed.HAProxy(t, testbed.HAProxyOptions{AccessLog: true, Note: "%[capture.req.hdr(0)] %HP", Frontend: `
	http-request capture req.hdr(User-Agent) len 64
	http-request return status 200 content-type text/plain hdr X-Version v2.1 string "status: ok, 12 items" if { path /ok }
	http-request return status 200 hdr X-Version v2.1 if { path /empty }
	http-request return status 200 content-type text/html string "<h1>Down for maintenance</h1>" if { path /maintenance }
	http-request return status 200 content-type text/plain hdr X-Who a hdr X-Who b string "x" if { path /twice }
	http-request redirect location /elsewhere code 301 if { path /status/301 }
`})
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(testbed.Body())))
	rows := []struct {
		name, path, expect string
		failure            string // of all requests; empty: none
	}{
		{"a class of statuses", "/ok", `{status: ["2xx"]}`, ""},
		{"a status", "/status/404", `{status: ["404"]}`, ""},
		{"an error that is expected", "/status/503", `{status: ["2xx", "5xx"]}`, ""},
		{"another status", "/status/503", `{status: ["2xx"]}`, "response/status"},
		{"a redirect is an answer", "/status/301", `{status: ["3xx"]}`, ""},
		{"a redirect is not what it leads to", "/status/301", `{status: ["2xx"]}`, "response/status"},
		{"a regular expression", "/ok", `{body: "ok, [0-9]+ items$"}`, ""},
		{"another regular expression", "/maintenance", `{body: "ok, [0-9]+ items$"}`, "response/body"},
		{"a text", "/ok", `{body_contains: "status: ok"}`, ""},
		{"another text", "/maintenance", `{body_contains: "status: ok"}`, "response/body"},
		{"a size", "/", `{body_size: 1KiB}`, ""},
		{"another size", "/ok", `{body_size: 1KiB}`, "response/body"},
		{"nothing", "/empty", `{body_size: 0}`, ""},
		{"not nothing", "/ok", `{body_size: 0}`, "response/body"},
		{"a digest", "/", `{body_sha256: ` + sum + `}`, ""},
		{"another digest", "/ok", `{body_sha256: ` + sum + `}`, "response/body"},
		{"a header", "/ok", `{headers: {x-version: "^v2\\."}}`, ""},
		{"another header", "/ok", `{headers: {X-Version: "^v3\\."}}`, "response/header"},
		{"no header", "/ok", `{headers: {X-Missing: ".*"}}`, "response/header"},
		{"one of several", "/twice", `{headers: {X-Who: "^b$"}}`, ""},
		{"all at once", "/ok", `{status: ["200"], headers: {X-Version: v2}, body: ^status, body_contains: items, body_size: 20}`, ""},
		{"a status before a header", "/status/503", `{headers: {X-Missing: ".*"}, body_size: 1}`, "response/status"},
		{"a header before a body", "/ok", `{headers: {X-Missing: ".*"}, body_size: 1}`, "response/header"},
		{"a body that is too long", "/", `{max_body: 1000}`, "response/size"},
		{"a body that is just short enough", "/", `{max_body: 1024}`, ""},
	}
	for _, door := range []struct {
		name, address string
		log           func() testbed.Log
	}{{"nginx", n.HTTP, n.Log}, {"HAProxy", h.HTTP, h.Log}} {
		var targets strings.Builder
		for i, row := range rows {
			fmt.Fprintf(&targets, "  - {name: row-%d, url: \"http://%s%s\", rate: 40, connections: 5, expect: %s}\n", i, door.address, row.path, row.expect)
		}
		results := once(t, 500*time.Millisecond, configured(t, "%s", targets.String())...)
		log := door.log()
		for i, row := range rows {
			t.Run(door.name+" "+row.name, func(t *testing.T) {
				r := &results[i]
				if row.failure == "" && r.Failures != 0 || row.failure != "" && r.FailuresBy[row.failure] != 20 {
					t.Errorf("failures %v of 20, want %q for all or none", r.FailuresBy, row.failure)
				}
				// No redirect is followed: all requests are of that path.
				note := fmt.Sprintf("steadyprobe/test (+row-%d) %s", i, row.path)
				if got := log.Notes[note]; got != 20 {
					t.Errorf("the door logged %d requests as %q, want 20", got, note)
				}
				// A body that is cut short is no answer that counts.
				code, answers := "200", uint64(20)
				if status, ok := strings.CutPrefix(row.path, "/status/"); ok {
					code = status
				}
				if row.failure == "response/size" {
					answers = 0
				}
				if r.Responses[code] != answers || total(r.Responses) != answers {
					t.Errorf("answers %v, want %d with %s", r.Responses, answers, code)
				}
			})
		}
		// Nothing was asked for but by these.
		if want := uint64(20 * len(rows)); log.Requests != want {
			t.Errorf("%s logged %d requests, want %d", door.name, log.Requests, want)
		}
	}
}

package main

import (
	"math"
	"time"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/internal/testcert"
)

// counts is what a door counted, the truth that all tools are held against.
type counts struct {
	Connections uint64 `json:"connections"`
	Requests    uint64 `json:"requests"`
	Full        uint64 `json:"full_handshakes"`
	Resumed     uint64 `json:"resumed_handshakes"`
}

func (c counts) minus(o counts) counts {
	return counts{c.Connections - o.Connections, c.Requests - o.Requests, c.Full - o.Full, c.Resumed - o.Resumed}
}

// door is a server that runs until its owner ends.
type door interface {
	URL() string
	Counts() counts
	Stall(d time.Duration) // answers nothing meanwhile; returns at its end
}

// plainDoor is an nginx with one worker that answers with 1 KB.
type plainDoor struct{ *testbed.NGINXServer }

func newPlainDoor(o *testbed.Holder) door {
	// A connection that is closed after 1,000 requests would be an error to
	// some tools, and work to all.
	return plainDoor{testbed.NGINX(o, testbed.NGINXOptions{KeepaliveRequests: math.MaxInt32, KeepaliveTimeout: time.Hour})}
}

// URL is where it answers.
func (d plainDoor) URL() string { return "http://" + d.HTTP + "/" }

// Counts asks its stub_status page.
func (d plainDoor) Counts() counts {
	c := d.Counters()
	return counts{Connections: c.Accepts, Requests: c.Requests}
}

// tlsDoor is a HAProxy with one thread that answers with an empty body. Unlike
// nginx it counts handshakes without a log.
type tlsDoor struct{ *testbed.HAProxyServer }

// newTLSDoor returns what starts a door with an RSA-2048 certificate, as in the
// first of the studies that the project repeats.
func newTLSDoor(versions testbed.TLSVersions, resumes bool) func(*testbed.Holder) door {
	return func(o *testbed.Holder) door {
		return tlsDoor{testbed.HAProxy(o, testbed.HAProxyOptions{
			TLS:          versions,
			NoResumption: !resumes,
			Certificate:  testcert.Options{RSA: true},
			Global: "\tssl-default-bind-ciphers ECDHE-RSA-AES256-GCM-SHA384\n" +
				"\tssl-default-bind-ciphersuites TLS_AES_256_GCM_SHA384\n",
			Frontend: "\thttp-request return status 200 if { path /empty }",
		})}
	}
}

// URL is where it answers.
func (d tlsDoor) URL() string { return "https://" + d.HTTPS + "/empty" }

// Counts asks its runtime socket.
func (d tlsDoor) Counts() counts {
	c := d.Counters()
	return counts{Connections: c.Connections, Requests: c.Requests, Full: c.Full, Resumed: c.Resumed}
}

package report

import (
	"crypto/tls"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// span is a number of equal values in a histogram.
type span struct {
	value time.Duration
	count int64
}

func histogram(t *testing.T, spans ...span) *hdrhistogram.Histogram {
	t.Helper()
	h := hdrhistogram.New(1, int64(2*time.Hour), 3)
	for _, s := range spans {
		if err := h.RecordValues(int64(s.value), s.count); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// healthy is a run of 30 s at 1,000 requests/s that lost nothing.
func healthy(t *testing.T) Input {
	var l probe.Ledger
	l.Scheduled = 30000
	l.Completed[probe.NoChurn][probe.Success] = 30000
	l.Opened = 50
	l.Closed[probe.CloseShutdown] = 50
	l.Bytes = probe.Bytes{Sent: 30000 * 100, Received: 30000 * 1200}
	return Input{
		Target:      "shop-ingress",
		URL:         "https://user:secret@shop.example.com/healthz?token=secret#secret",
		Rate:        1000,
		RateText:    "1000",
		Connections: 50,
		Duration:    30 * time.Second,
		Ledger:      l,
		Latency:     histogram(t, span{110 * time.Microsecond, 20000}, span{180 * time.Microsecond, 9800}, span{2 * time.Millisecond, 200}),
		ServiceTime: histogram(t, span{80 * time.Microsecond, 20000}, span{150 * time.Microsecond, 9990}, span{time.Millisecond, 10}),
		Lateness:    histogram(t, span{30 * time.Microsecond, 29700}, span{90 * time.Microsecond, 300}),
		SelfLatency: histogram(t, span{60 * time.Microsecond, 600}),
		Responses:   []record.ResponseCount{{Code: 200, Protocol: probe.HTTP11, Count: 30000}},
		Handshakes: []record.HandshakeCount{
			{Version: tls.VersionTLS13, Cipher: tls.TLS_AES_128_GCM_SHA256, Group: uint16(tls.X25519MLKEM768), Resumed: true, Count: 49},
			{Version: tls.VersionTLS13, Cipher: tls.TLS_AES_128_GCM_SHA256, Group: uint16(tls.X25519MLKEM768), Count: 1},
		},
	}
}

// sick is a run of 10 s at 200 requests/s against a door that fails in many
// ways, on a machine that is too busy.
func sick(t *testing.T) Input {
	var l probe.Ledger
	l.Scheduled = 2000
	l.Completed[probe.Settled][probe.Success] = 1000
	l.Completed[probe.ScalingDown][probe.Success] = 500
	l.Completed[probe.Settled][probe.ReadTimeout] = 20
	l.Completed[probe.ScalingUp][probe.ReadTimeout] = 10
	l.Completed[probe.Settled][probe.ConnectLocalResource] = 5
	l.Completed[probe.Settled][probe.ResponseStatus] = 65
	l.Completed[probe.Settled][probe.ScheduleExpired] = 300
	l.Completed[probe.Settled][probe.ScheduleShutdown] = 90
	l.InFlight, l.Backlog = 4, 6 // 1000+500+30+5+65+300+90+4+6 = 2000
	l.Opened = 70
	l.Closed[probe.ClosePeer] = 12
	l.Closed[probe.CloseTimeout] = 30
	l.OpeningFailures[probe.ConnectRefused] = 7
	l.Bytes = probe.Bytes{Sent: 160000, Received: 3 << 20}
	atEnd := l
	atEnd.InFlight, atEnd.Backlog = 20, 80
	atEnd.Bytes = probe.Bytes{Sent: 150000, Received: 2 << 20} // the last answers came later
	atEnd.Completed[probe.Settled][probe.ScheduleShutdown] = 0 // came with the end of the run
	return Input{
		Target:      "http://sick.example.com/",
		URL:         "http://sick.example.com/",
		Rate:        200,
		Connections: 20,
		Duration:    10 * time.Second,
		Ledger:      l,
		AtEnd:       atEnd,
		Latency:     histogram(t, span{200 * time.Millisecond, 1500}, span{5200 * time.Millisecond, 490}),
		ServiceTime: histogram(t, span{4 * time.Millisecond, 1500}, span{5 * time.Second, 100}),
		Lateness:    histogram(t, span{time.Millisecond, 1900}, span{30 * time.Millisecond, 90}),
		SelfLatency: histogram(t, span{20 * time.Millisecond, 200}),
		Responses: []record.ResponseCount{
			{Code: 200, Protocol: probe.HTTP11, Count: 1500},
			{Code: 503, Protocol: probe.HTTP10, Count: 5},
			{Code: 503, Protocol: probe.HTTP11, Count: 50},
			{Code: 0, Protocol: probe.HTTP11, Count: 10},
		},
		Clamped:   3,
		Saturated: []string{"file_descriptors", "cpu", "cpu"},
		Warnings:  []string{"the certificate was not verified\x1b[31m"},
	}
}

// closed is a run of 10 s in a closed loop that was interrupted.
func closed(t *testing.T) Input {
	var l probe.Ledger
	l.Scheduled = 700020
	l.Completed[probe.NoChurn][probe.Success] = 699990
	l.Completed[probe.NoChurn][probe.ResponseStatus] = 20
	l.Completed[probe.NoChurn][probe.ReadTimeout] = 5
	l.Completed[probe.NoChurn][probe.ScheduleShutdown] = 5 // 699990+20+5+5 = 700020
	l.Opened = 20
	l.Closed[probe.CloseShutdown] = 20
	l.Bytes = probe.Bytes{Sent: 700020 * 100, Received: 700020 * 1000}
	atEnd := l
	atEnd.Completed[probe.NoChurn][probe.Success] -= 15
	atEnd.Completed[probe.NoChurn][probe.ScheduleShutdown] = 0
	atEnd.InFlight = 20
	atEnd.Bytes = probe.Bytes{Sent: 700000 * 100, Received: 700000 * 1000}
	return Input{
		Target:      "capacity",
		URL:         "http://door.test/",
		RateText:    "max",
		Closed:      true,
		Interrupted: true,
		Connections: 20,
		Duration:    10 * time.Second,
		Ledger:      l,
		AtEnd:       atEnd,
		Latency:     histogram(t), // as record.Dense has it
		ServiceTime: histogram(t, span{250 * time.Microsecond, 699000}, span{3 * time.Millisecond, 990}, span{5 * time.Second, 5}),
		Lateness:    histogram(t),
		SelfLatency: histogram(t, span{60 * time.Microsecond, 200}),
		Responses:   []record.ResponseCount{{Code: 200, Protocol: probe.HTTP11, Count: 699990}, {Code: 503, Protocol: probe.HTTP11, Count: 20}},
	}
}

// users is healthy with ticks that come at random, and under economical pacing.
func users(t *testing.T) Input {
	in := healthy(t)
	in.Economy, in.Poisson = true, true
	in.Handshakes = append(in.Handshakes, record.HandshakeCount{Version: tls.VersionTLS12, Cipher: tls.TLS_RSA_WITH_AES_128_CBC_SHA, Count: 2})
	in.Lateness = histogram(t, span{500 * time.Microsecond, 15000}, span{time.Millisecond, 14990}, span{2 * time.Millisecond, 10})
	return in
}

// nothing is a run that was stopped before its first tick.
func nothing() Input {
	return Input{URL: "http://127.0.0.1:1/", Rate: 0.2, RateText: "1/5", Connections: 1}
}

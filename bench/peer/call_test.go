package peer

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestCalls(t *testing.T) {
	constant := Work{URL: "http://door/", Rate: 1000, Connections: 50, Duration: 10 * time.Second}
	closed := Work{URL: "http://door/", Connections: 50, Duration: 10 * time.Second}
	handshakes := Work{URL: "https://door/", Connections: 50, Duration: 10 * time.Second, NewConnections: true, TLS: "1.2"}
	for _, row := range []struct {
		tool string
		work Work
		want string // empty: unfit
	}{
		{"steadyprobe", constant, "run --rate=1000 --connections=50 --duration=10s --insecure --format=json --log.level=error http://door/"},
		{"steadyprobe", closed, "run --rate=max --connections=50 --duration=10s --insecure --format=json --log.level=error http://door/"},
		{"steadyprobe", handshakes, "run --rate=max --connections=50 --duration=10s --insecure --format=json --log.level=error --no-reuse https://door/"},
		{"steadyprobe economy", constant, "run --rate=1000 --connections=50 --duration=10s --insecure --format=json --log.level=error --pacing=economy http://door/"},
		{"steadyprobe economy", closed, ""},
		{"wrk", constant, ""},
		{"wrk", closed, "-t2 -c50 -d10s --latency http://door/"},
		{"wrk", handshakes, "-t2 -c50 -d10s --latency -H Connection: close https://door/"},
		{"wrk2", constant, "-t2 -c50 -d10s -L -R1000 http://door/"},
		{"wrk2", closed, ""},
		{"ab", constant, ""},
		{"ab", closed, "-q -t 10 -n 1500000 -c 50 -k http://door/"},
		{"ab", handshakes, "-q -t 10 -n 1500000 -c 50 -f TLS1.2 https://door/"},
		{"h2load", constant, "--h1 -t2 -c50 -D 10 --rps=20 --log-file=requests.log http://door/"},
		{"h2load", Work{Rate: 1001, Connections: 50}, ""}, // it takes a rate for each connection
		{"h2load", closed, "--h1 -t2 -c50 -D 10 http://door/"},
		{"h2load", handshakes, "--h1 -t2 -c50 -n 100000000 -H Connection: close https://door/"},
		{"vegeta", constant, "attack -rate=1000 -duration=10s -connections=50 -insecure -keepalive=true -output=results.bin"},
		{"vegeta", closed, ""},
		{"vegeta capped", closed, "attack -rate=0 -duration=10s -connections=50 -insecure -keepalive=true -output=results.bin -workers=50 -max-workers=50"},
		{"fortio", constant, "load -qps 1000 -c 50 -t 10s -r 0.00001 -p 50,95,99,99.9 -loglevel error -quiet -k -keepalive=true -json - http://door/"},
		{"bombardier", constant, "-c 50 -d 10s -t 5s -k -l -o json -p r -r 1000 http://door/"},
		{"bombardier", handshakes, "-c 50 -d 10s -t 5s -k -l -o json -p r -H Connection: close https://door/"},
		{"oha", constant, "-z 10s -c 50 --no-tui --output-format json --insecure -q 1000 --latency-correction http://door/"},
	} {
		t.Run(row.tool+" "+row.want, func(t *testing.T) {
			call, err := named(t, row.tool).Call(row.work)
			if row.want == "" {
				if !errors.Is(err, ErrUnfit) {
					t.Errorf("error = %v, want that it is unfit", err)
				}
				return
			}
			if got := strings.Join(call.Args, " "); err != nil || got != row.want {
				t.Errorf("call = %q (%v), want %q", got, err, row.want)
			}
			if call.Endless == (call.Read != nil) {
				t.Errorf("endless = %v, and it reads: %v", call.Endless, call.Read != nil)
			}
		})
	}
}

func TestK6Script(t *testing.T) {
	for _, row := range []struct {
		name string
		work Work
		want string
	}{
		{"constant", Work{Rate: 200, Connections: 20, Duration: 10 * time.Second},
			"door: { executor: 'constant-arrival-rate', rate: 200, preAllocatedVUs: 20, maxVUs: 20, duration: '10s' }"},
		{"closed", Work{Connections: 20, Duration: 10 * time.Second}, "door: { executor: 'constant-vus', vus: 20, duration: '10s' }"},
		{"new connections", Work{NewConnections: true}, "noConnectionReuse: true"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.work.Scratch = t.TempDir()
			call, err := named(t, "k6").Call(row.work)
			if err != nil {
				t.Fatal(err)
			}
			script, err := os.ReadFile(call.Args[len(call.Args)-1])
			if err != nil || !strings.Contains(string(script), row.want) {
				t.Errorf("script = %q (%v), want in it %q", script, err, row.want)
			}
		})
	}
}

// named returns a tool by its name, which no two may share.
func named(t *testing.T, name string) Tool {
	t.Helper()
	var found []Tool
	for _, tool := range All("steadyprobe") {
		if tool.Name == name {
			found = append(found, tool)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d tools %q, want 1", len(found), name)
	}
	return found[0]
}

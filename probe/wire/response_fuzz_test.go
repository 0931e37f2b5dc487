package wire

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/steadyprobe/steadyprobe/probe"
)

// FuzzResponse holds that nothing panics or stands still, that the result does
// not depend on how the bytes were cut, and that the limits are kept. What
// net/http accepts too must be the same answer for both.
func FuzzResponse(f *testing.F) {
	for _, row := range validAnswers() {
		f.Add([]byte(row.data), row.head, uint64(3))
	}
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n"), false, uint64(1))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1,1\r\nConnection: a,close\r\n\r\nx"), true, uint64(5))
	f.Fuzz(func(t *testing.T, data []byte, head bool, seed uint64) {
		whole, cut := newLookedAt(head), newLookedAt(head)
		want := feedAll(t, whole, string(data), true)
		got := feedCut(t, cut, data, func() int {
			seed = seed*6364136223846793005 + 1442695040888963407 // Knuth, MMIX
			return int(seed >> 61)
		})
		if !got.done && got.outcome == probe.Success {
			done, o := cut.eof()
			got = cut.answered(done, o, 0)
		}
		if got != want {
			t.Fatalf("in pieces %+v\nwhole     %+v", got, want)
		}
		if a, b := whole.evidence, cut.evidence; want.done && (a.outcome(want.body) != b.outcome(want.body) || a.who() != b.who() || !bytes.Equal(a.body, b.body) || int64(len(a.body)) != want.body) {
			t.Fatalf("in pieces %v by %v of %q, whole %v by %v of %q", b.outcome(want.body), b.who(), b.body, a.outcome(want.body), a.who(), a.body)
		}
		if want.body > testMaxBody || want.done && want.code < 200 || want.outcome != probe.Success && want.done {
			t.Fatalf("%+v", want)
		}
		if want.done {
			agreeWithNetHTTP(t, string(data), head, want)
		}
	})
}

// lookedAt is what answers are held to while they are fuzzed.
var lookedAt = newJudge(
	Expect{Headers: []HeaderExpectation{header("a", "b")}, Body: regexp.MustCompile("^(?s:.*)l"), BodySHA256: digest("hello")},
	BackendRule{Header: "A", Body: regexp.MustCompile("(h.)"), Names: probe.NewBackends(10)}, false, nil)

func newLookedAt(head bool) *response {
	r := newResponse(head)
	r.evidence = newEvidence(lookedAt)
	return r
}

// agreeWithNetHTTP compares an answer that is complete with what net/http
// makes of it, where it makes anything of it.
func agreeWithNetHTTP(t *testing.T, data string, head bool, want answered) {
	code, minor, body, rest, err := readByNetHTTP(data, head)
	if err != nil {
		return
	}
	if int(want.code) != code || (want.proto == probe.HTTP10) != (minor == 0) || want.body != body || want.rest != rest {
		t.Fatalf("%+v\nnet/http: code %d, minor version %d, body %d, rest %d", want, code, minor, body, rest)
	}
}

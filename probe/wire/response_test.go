package wire

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/steadyprobe/steadyprobe/probe"
)

const (
	testMaxHeader = 256
	testMaxBody   = 64
)

// answered is all that a response tells of one answer.
type answered struct {
	done    bool
	outcome probe.Outcome
	code    uint16
	proto   probe.Protocol
	closes  bool
	body    int64
	rest    int // bytes behind a complete answer
	started bool
}

func (r *response) answered(done bool, o probe.Outcome, rest int) answered {
	return answered{done, o, r.code, r.proto, r.closes, r.body, rest, r.started()}
}

// feedCut feeds data in pieces of the sizes that cut returns.
func feedCut(tb testing.TB, r *response, data []byte, cut func() int) answered {
	tb.Helper()
	for len(data) > 0 {
		piece := data[:max(1, min(cut(), len(data)))]
		n, done, o := r.feed(piece)
		if n < 0 || n > len(piece) {
			tb.Fatalf("took %d of %d bytes", n, len(piece))
		}
		if n < len(piece) && !done && o == probe.Success {
			tb.Fatalf("took %d of %d bytes of an answer that goes on", n, len(piece))
		}
		if done && o != probe.Success {
			tb.Fatalf("done and %v", o)
		}
		data = data[n:]
		if done || o != probe.Success {
			if !done {
				data = nil // where it was noticed is not part of the contract
			}
			return r.answered(done, o, len(data))
		}
	}
	return r.answered(false, probe.Success, 0)
}

// feedAll feeds data whole, then the end of the connection where eof is set.
func feedAll(tb testing.TB, r *response, data string, eof bool) answered {
	tb.Helper()
	got := feedCut(tb, r, []byte(data), func() int { return len(data) })
	if eof && !got.done && got.outcome == probe.Success {
		done, o := r.eof()
		got = r.answered(done, o, 0)
	}
	return got
}

func newResponse(head bool) *response {
	r := new(response)
	r.reset(head, testMaxHeader, testMaxBody)
	return r
}

// validAnswers are answers that net/http reads in the same way.
func validAnswers() []struct {
	name string
	head bool
	data string
	want answered
} {
	ok := func(code uint16, proto probe.Protocol, closes bool, body int64, rest int) answered {
		return answered{true, probe.Success, code, proto, closes, body, rest, true}
	}
	const h10, h11 = probe.HTTP10, probe.HTTP11
	return []struct {
		name string
		head bool
		data string
		want answered
	}{
		{"content-length", false, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", ok(200, h11, false, 5, 0)},
		{"content-length zero", false, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ok(200, h11, false, 0, 0)},
		{"bytes behind", false, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP", ok(200, h11, false, 2, 4)},
		{"bytes behind no body", false, "HTTP/1.1 204 No Content\r\n\r\nHTTP", ok(204, h11, false, 0, 4)},
		{"names in any case", false, "HTTP/1.1 200 OK\r\ncONTENT-lENGTH:5\r\nCONNECTION:CLOSE\r\n\r\nhello", ok(200, h11, true, 5, 0)},
		{"white space around value", false, "HTTP/1.1 200 OK\r\nContent-Length: \t 5 \t\r\n\r\nhello", ok(200, h11, false, 5, 0)},
		{"equal lengths twice", false, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", ok(200, h11, false, 5, 0)},
		{"length with leading zeros", false, "HTTP/1.1 200 OK\r\nContent-Length: 005\r\n\r\nhello", ok(200, h11, false, 5, 0)},
		{"no reason", false, "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx", ok(200, h11, false, 1, 0)},
		{"no reason and no space", false, "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", ok(200, h11, false, 1, 0)},
		{"reason beyond ASCII", false, "HTTP/1.1 200 sch\xf6n\r\nContent-Length: 1\r\n\r\nx", ok(200, h11, false, 1, 0)},
		{"LF alone", false, "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", ok(200, h11, false, 2, 0)},
		{"empty value and tabs", false, "HTTP/1.1 200 OK\r\nX-A:\r\nX-B:a\tb, and some more\tof it\r\nContent-Length: 2\r\n\r\nok", ok(200, h11, false, 2, 0)},
		{"unknown status", false, "HTTP/1.1 799 Odd\r\nContent-Length: 1\r\n\r\nx", ok(799, h11, false, 1, 0)},
		{"chunked", false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0B\r\n and others\r\n0\r\n\r\n", ok(200, h11, false, 16, 0)},
		{"chunked in any case", false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\nA\r\n0123456789\r\na\r\n0123456789\r\n000\r\n\r\nHTTP", ok(200, h11, false, 20, 4)},
		{"chunk extensions", false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a;b=c\r\nx\r\n1;d=\"e f\"\r\ny\r\n0;last\r\n\r\n", ok(200, h11, false, 2, 0)},
		{"padded chunk size", false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1  \r\nx\r\n0 \r\n\r\n", ok(200, h11, false, 1, 0)},
		{"trailers", false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\nHTTP", ok(200, h11, false, 1, 4)},
		{"empty chunked", false, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ok(200, h11, false, 0, 0)},
		{"HEAD with length", true, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", ok(200, h11, false, 0, 0)},
		{"HEAD chunked", true, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ok(200, h11, false, 0, 0)},
		{"HEAD without length", true, "HTTP/1.1 200 OK\r\n\r\n", ok(200, h11, false, 0, 0)},
		{"304 with length", false, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n", ok(304, h11, false, 0, 0)},
		{"204 without length", false, "HTTP/1.1 204 No Content\r\n\r\n", ok(204, h11, false, 0, 0)},
		{"close announced", false, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", ok(200, h11, true, 1, 0)},
		{"close in a list", false, "HTTP/1.1 200 OK\r\nConnection: upgrade , Close\r\nContent-Length: 1\r\n\r\nx", ok(200, h11, true, 1, 0)},
		{"keep-alive", false, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", ok(200, h11, false, 1, 0)},
		{"HTTP/1.0", false, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", ok(200, h10, true, 1, 0)},
		{"HTTP/1.0 keep-alive", false, "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", ok(200, h10, false, 1, 0)},
		{"until the close", false, "HTTP/1.1 200 OK\r\n\r\nhello", ok(200, h11, true, 5, 0)},
		{"until the close empty", false, "HTTP/1.0 200 OK\r\n\r\n", ok(200, h10, true, 0, 0)},
		{"interim answers first", false, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", ok(200, h11, false, 1, 0)},
		{"length and chunked", false, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", ok(200, h11, true, 1, 0)},
		{"body as long as may be", false, "HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + strings.Repeat("x", 64), ok(200, h11, false, 64, 0)},
	}
}

func TestResponseValid(t *testing.T) {
	for _, row := range validAnswers() {
		t.Run(row.name, func(t *testing.T) {
			if got := feedAll(t, newResponse(row.head), row.data, true); got != row.want {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
		})
	}
}

// TestResponseAgreesWithNetHTTP reads the valid answers with the standard
// library too.
func TestResponseAgreesWithNetHTTP(t *testing.T) {
	for _, row := range validAnswers() {
		t.Run(row.name, func(t *testing.T) {
			code, minor, body, rest, err := readByNetHTTP(row.data, row.head)
			if err != nil {
				t.Fatal(err)
			}
			got := feedAll(t, newResponse(row.head), row.data, true)
			if int(got.code) != code || (got.proto == probe.HTTP10) != (minor == 0) || got.body != body || got.rest != rest {
				t.Errorf("got  %+v\nnet/http: code %d, minor version %d, body %d, rest %d", got, code, minor, body, rest)
			}
		})
	}
}

// readByNetHTTP returns the final answer as net/http sees it, and how many
// bytes are left behind it.
func readByNetHTTP(data string, head bool) (code, minor int, body int64, rest int, err error) {
	request := &http.Request{Method: http.MethodGet}
	if head {
		request.Method = http.MethodHead
	}
	in := strings.NewReader(data)
	buffered := bufio.NewReader(in)
	for {
		answer, err := http.ReadResponse(buffered, request)
		if err != nil {
			return 0, 0, 0, 0, err
		}
		body, err := io.Copy(io.Discard, answer.Body)
		if err != nil {
			return 0, 0, 0, 0, err
		}
		if answer.StatusCode < 200 && answer.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		return answer.StatusCode, answer.ProtoMinor, body, buffered.Buffered() + in.Len(), nil
	}
}

func TestResponseByRFC(t *testing.T) {
	ok := func(closes bool, body int64) answered {
		return answered{true, probe.Success, 200, probe.HTTP11, closes, body, 0, true}
	}
	for _, row := range []struct {
		name string
		data string
		want answered
	}{
		// What net/http refuses or reads otherwise.
		{"list of equal lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length: 05\r\n\r\nhello", ok(false, 5)},
		{"coding before chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, , chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", ok(false, 1)},
		{"codings in two fields", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", ok(false, 1)},
		{"chunked not last", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n12345", ok(true, 5)},
		{"other coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n12345", ok(true, 5)},
		{"higher minor version", "HTTP/1.7 200 OK\r\nContent-Length: 1\r\n\r\nx", ok(false, 1)},
		{"framing in trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nContent-Length: 9\r\nTransfer-Encoding: chunked, chunked\r\nConnection: close\r\n\r\n", ok(false, 1)},
		{"trailers end in LF", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\n\n", ok(false, 1)},
		{"names of the same length", "HTTP/1.1 200 OK\r\nConnectioms: close\r\nConnectiom: close\r\nContent-Lengtx: 9\r\nTransfer-Encodinx: chunked\r\nContent-Length: 1\r\n\r\nx", ok(false, 1)},
		{"all token characters", "HTTP/1.1 200 OK\r\n!#$%&'*+-.^_`|~09azAZ: v\r\nContent-Length: 1\r\n\r\nx", ok(false, 1)},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := feedAll(t, newResponse(false), row.data, true); got != row.want {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
		})
	}
}

func TestResponseUnusable(t *testing.T) {
	const (
		malformed = probe.ResponseProtocol
		ok        = "HTTP/1.1 200 OK\r\n"
		chunked   = ok + "Transfer-Encoding: chunked\r\n\r\n"
	)
	for _, row := range []struct {
		name string
		data string
		want probe.Outcome
	}{
		{"one byte of another protocol", "S", malformed},
		{"other protocol", "SSH-2.0-OpenSSH\r\n", malformed},
		{"HTTP/2 settings frame", "\x00\x00\x12\x04\x00", malformed},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\n", malformed},
		{"TLS alert", "\x15\x03\x03\x00\x02\x02\x28", malformed},
		{"lower-case protocol", "http/1.1 200 OK\r\n", malformed},
		{"empty line first", "\r\nHTTP/1.1 200 OK\r\n", malformed},
		{"HTTP/2 version", "HTTP/2.0 200 OK\r\n", malformed},
		{"HTTP/1 without minor", "HTTP/1 200 OK\r\n", malformed},
		{"minor of two digits", "HTTP/1.11 200 OK\r\n", malformed},
		{"minor not a digit", "HTTP/1.x 200 OK\r\n", malformed},
		{"no status", "HTTP/1.1\r\n", malformed},
		{"status of two digits", "HTTP/1.1 20 OK\r\n", malformed},
		{"status of four digits", "HTTP/1.1 2000 OK\r\n", malformed},
		{"status below 100", "HTTP/1.1 099 OK\r\n", malformed},
		{"status not a number", "HTTP/1.1 2x0 OK\r\n", malformed},
		{"two spaces", "HTTP/1.1  200 OK\r\n", malformed},
		{"reason with NUL", "HTTP/1.1 200 O\x00K\r\n", malformed},
		{"reason with CR", "HTTP/1.1 200 O\rK\r\n", malformed},
		{"two CR", "HTTP/1.1 200 OK\r\r\n", malformed},
		{"name missing", ok + ": x\r\n", malformed},
		{"colon missing", ok + "Server\r\n", malformed},
		{"white space before colon", ok + "Content-Length : 1\r\n", malformed},
		{"white space in name", ok + "Content Length: 1\r\n", malformed},
		{"name beyond ASCII", ok + "Caf\xe9: 1\r\n", malformed},
		{"folded line", ok + "A: b\r\n c\r\n", malformed},
		{"folded by tab", ok + "A: b\r\n\tc\r\n", malformed},
		{"value with NUL", ok + "A: b\x00c\r\n", malformed},
		{"value with NUL among many", ok + "A: 12345678\x00abcdefghijkl\r\n", malformed},
		{"value with DEL", ok + "A: 1234567\x7f12345678\r\n", malformed},
		{"value with bare CR", ok + "A: b\rContent-Length: 1\r\n", malformed},
		{"value with escape", ok + "A: \x1b[0m\r\n", malformed},
		{"lengths differ", ok + "Content-Length: 5\r\nContent-Length: 6\r\n", malformed},
		{"lengths in list differ", ok + "Content-Length: 5, 6\r\n", malformed},
		{"length empty", ok + "Content-Length:\r\n", malformed},
		{"length list ends empty", ok + "Content-Length: 5,\r\n", malformed},
		{"length with plus", ok + "Content-Length: +5\r\n", malformed},
		{"length negative", ok + "Content-Length: -5\r\n", malformed},
		{"length with space inside", ok + "Content-Length: 5 5\r\n", malformed},
		{"length hexadecimal", ok + "Content-Length: 0x5\r\n", malformed},
		{"length fraction", ok + "Content-Length: 5.0\r\n", malformed},
		// 2^63 is the first that does not fit.
		{"length overflows", ok + "Content-Length: 9223372036854775808\r\n", malformed},
		{"length overflows twice", ok + "Content-Length: 18446744073709551621\r\n", malformed},
		{"length fits", ok + "Content-Length: 9223372036854775807\r\n\r\n", probe.ResponseSize},
		{"length above max_body", ok + "Content-Length: 65\r\n\r\n", probe.ResponseSize},
		{"chunked twice", ok + "Transfer-Encoding: chunked, chunked\r\n", malformed},
		{"chunked in two fields", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", malformed},
		{"chunked with parameter", ok + "Transfer-Encoding: chunked;a=b\r\n", malformed},
		{"coding not a token", ok + "Transfer-Encoding: \"chunked\"\r\n", malformed},
		{"coded HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", malformed},
		{"other protocol not asked for", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", malformed},
		{"too many interim answers", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", responseMostInterim+1), malformed},
		{"chunk size missing", chunked + "\r\n", malformed},
		{"chunk size of space", chunked + " 5\r\n", malformed},
		{"chunk size with sign", chunked + "+5\r\n", malformed},
		{"chunk size not hexadecimal", chunked + "5g\r\n", malformed},
		{"chunk size with prefix", chunked + "0x5\r\n", malformed},
		{"chunk size then junk", chunked + "5 5\r\n", malformed},
		{"chunk size ends in LF", chunked + "5\n", malformed},
		{"chunk size then CR alone", chunked + "5\rh", malformed},
		{"chunk size overflows", chunked + "8000000000000000\r\n", malformed},
		{"chunk size too long", chunked + "00000000000000001\r\n", malformed},
		{"chunk size above max_body", chunked + "41\r\n", probe.ResponseSize},
		{"chunk size fits", chunked + "7fffffffffffffff\r\n", probe.ResponseSize},
		{"chunks above max_body", chunked + "3f\r\n" + strings.Repeat("x", 63) + "\r\n2\r\n", probe.ResponseSize},
		{"chunk longer than said", chunked + "5\r\nhello!", malformed},
		{"chunk ends in LF", chunked + "5\r\nhello\n", malformed},
		{"chunk ends in CR alone", chunked + "5\r\nhello\r5", malformed},
		{"extension with control", chunked + "5;a\x00\r\n", malformed},
		{"extension with LF", chunked + "5;a\n", malformed},
		{"extensions too long", chunked + strings.Repeat("1;0123456789\r\nx\r\n", 24), malformed}, // 24 × 11 > 256
		{"trailers too long", chunked + "0\r\n" + strings.Repeat("A: 0123456789\r\n", 18), malformed},
		{"trailer malformed", chunked + "0\r\nA b\r\n", malformed},
		{"trailer folded", chunked + "0\r\n A: b\r\n", malformed},
		{"body until close above max_body", ok + "\r\n" + strings.Repeat("x", 65), probe.ResponseSize},
		{"header too long", ok + strings.Repeat("A: 0123456789\r\n", 17), malformed}, // 17 + 17 × 15 = 272 > 256
		{"line too long", ok + "A: " + strings.Repeat("x", 256), malformed},
		{"status line too long", "HTTP/1.1 200 " + strings.Repeat("x", 256), malformed},
	} {
		t.Run(row.name, func(t *testing.T) {
			for name, got := range map[string]answered{
				"whole":      feedAll(t, newResponse(false), row.data, false),
				"byte-wise":  feedCut(t, newResponse(false), []byte(row.data), func() int { return 1 }),
				"with bytes": feedAll(t, newResponse(false), row.data+"x", false),
			} {
				if got.done || got.outcome != row.want {
					t.Errorf("%s: got %+v, want %v", name, got, row.want)
				}
			}
		})
	}
}

func TestResponseHeaderLimitIsExact(t *testing.T) {
	const frame = "HTTP/1.1 204 No Content\r\nA: \r\n\r\n" // 32 bytes
	fits := strings.Replace(frame, "A: ", "A: "+strings.Repeat("x", testMaxHeader-len(frame)), 1)
	over := strings.Replace(fits, "A: ", "A: x", 1)
	if got := feedAll(t, newResponse(false), fits, false); !got.done {
		t.Errorf("%d bytes of header: %+v", len(fits), got)
	}
	if got := feedAll(t, newResponse(false), over, false); got.outcome != probe.ResponseProtocol {
		t.Errorf("%d bytes of header: %+v", len(over), got)
	}
	// The limit is for each header section: an interim answer has its own.
	if got := feedAll(t, newResponse(false), "HTTP/1.1 100 Continue\r\n\r\n"+fits, false); !got.done {
		t.Errorf("behind an interim answer: %+v", got)
	}
	if got := feedAll(t, newResponse(false), strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", responseMostInterim)+fits, false); !got.done {
		t.Errorf("behind %d interim answers: %+v", responseMostInterim, got)
	}
}

func TestResponseEOF(t *testing.T) {
	const length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, row := range []struct {
		name string
		data string
		want probe.Outcome
	}{
		{"nothing came", "", probe.ReadEOF},
		{"behind an interim answer", "HTTP/1.1 100 Continue\r\n\r\n", probe.ReadEOF},
		{"inside an interim answer", "HTTP/1.1 100 Continue\r\n", probe.ReadTruncated},
		{"one byte", "H", probe.ReadTruncated},
		{"behind the status line", "HTTP/1.1 200 OK\r\n", probe.ReadTruncated},
		{"inside a field", "HTTP/1.1 200 OK\r\nServ", probe.ReadTruncated},
		{"before the body", length, probe.ReadTruncated},
		{"inside the body", length + "hell", probe.ReadTruncated},
		{"before the chunks", chunked, probe.ReadTruncated},
		{"inside a chunk size", chunked + "5", probe.ReadTruncated},
		{"inside a chunk", chunked + "5\r\nhell", probe.ReadTruncated},
		{"between chunks", chunked + "5\r\nhello\r\n", probe.ReadTruncated},
		{"inside the last chunk", chunked + "5\r\nhello\r\n0\r\n", probe.ReadTruncated},
		{"inside the trailers", chunked + "5\r\nhello\r\n0\r\nA: b\r\n", probe.ReadTruncated},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newResponse(false)
			got := feedAll(t, r, row.data, true)
			if got.done || got.outcome != row.want || got.started != (row.data != "") {
				t.Errorf("got %+v, want %v", got, row.want)
			}
			if n, done, o := r.feed([]byte("x")); n != 0 || done || o != row.want {
				t.Errorf("afterwards: took %d, done %v, %v", n, done, o)
			}
		})
	}
}

func TestResponseAfterDone(t *testing.T) {
	r := newResponse(false)
	feedAll(t, r, "HTTP/1.1 204 No Content\r\n\r\n", false)
	if n, done, o := r.feed([]byte("HTTP")); n != 0 || !done || o != probe.Success {
		t.Errorf("feeding: took %d, done %v, %v", n, done, o)
	}
	if done, o := r.eof(); !done || o != probe.Success {
		t.Errorf("closing: done %v, %v", done, o)
	}
}

// TestResponseSplit feeds every valid answer in two pieces at every place,
// byte by byte, and with an old answer behind it in the same response.
func TestResponseSplit(t *testing.T) {
	for _, row := range validAnswers() {
		t.Run(row.name, func(t *testing.T) {
			r := new(response)
			for at := 1; at <= len(row.data); at++ {
				r.reset(row.head, testMaxHeader, testMaxBody)
				first := true
				got := feedCut(t, r, []byte(row.data), func() int {
					if first {
						first = false
						return at
					}
					return len(row.data)
				})
				if !got.done {
					done, o := r.eof()
					got = r.answered(done, o, 0)
				}
				if got != row.want {
					t.Fatalf("cut at %d: got %+v, want %+v", at, got, row.want)
				}
			}
		})
	}
}

func TestResponseCodeIsOfCompleteHeaders(t *testing.T) {
	r := newResponse(false)
	for _, piece := range []string{"HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 503 Busy\r\n", "Content-Length: 1\r\n"} {
		r.feed([]byte(piece))
		if r.code != 0 || r.proto != probe.NoProtocol {
			t.Fatalf("behind %q: code %d, protocol %v", piece, r.code, r.proto)
		}
	}
	if r.feed([]byte("\r\n")); r.code != 503 || r.proto != probe.HTTP11 {
		t.Errorf("code %d, protocol %v", r.code, r.proto)
	}
}

func TestResponseAllocatesNothing(t *testing.T) {
	for name, answer := range benchmarkAnswers() {
		t.Run(name, func(t *testing.T) {
			r := new(response)
			for _, piece := range []int{len(answer), 7} {
				feed := func() {
					r.reset(false, 16<<10, 1<<20)
					for p := answer; len(p) > 0; {
						n, _, o := r.feed(p[:min(piece, len(p))])
						if o != probe.Success {
							panic(fmt.Sprint("feeding: ", o))
						}
						p = p[n:]
					}
				}
				if n := testing.AllocsPerRun(100, feed); n != 0 {
					t.Errorf("%v allocations in pieces of %d", n, piece)
				}
			}
		})
	}
}

func TestResponseGivesALongLineBack(t *testing.T) {
	r := new(response)
	r.reset(false, 64<<10, 1)
	r.feed([]byte("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 32<<10)))
	if cap(r.line) <= responseKeptLine {
		t.Fatal("the line was not kept")
	}
	r.reset(false, 64<<10, 1)
	if cap(r.line) > responseKeptLine {
		t.Errorf("keeps %d bytes", cap(r.line))
	}
}

package wire

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/steadyprobe/steadyprobe/probe"
)

// responseFraming is what the status line and the header fields say about
// where the answer ends and whether the connection outlives it.
type responseFraming struct {
	code      uint16
	proto     probe.Protocol
	measured  bool // there is a Content-Length
	length    int64
	coded     bool // there is a Transfer-Encoding
	chunked   bool // and chunked is the last coding
	close     bool // Connection says close
	keepAlive bool // Connection says keep-alive
}

// responsePrefix is how every answer begins that this codec understands. The
// name of the protocol is case-sensitive (RFC 9112 section 2.3).
const responsePrefix = "HTTP/1."

// responseMayBeHTTP reports whether b can be the beginning of an answer.
func responseMayBeHTTP(b []byte) bool {
	n := min(len(b), len(responsePrefix))
	return string(b[:n]) == responsePrefix[:n]
}

// takeStatusLine takes "HTTP/1.1 200 OK" (RFC 9112 section 4) and reports
// whether it is well formed. The reason may be missing, and the space before
// it too, which many doors forget. A higher minor version is read as the
// highest that is known (RFC 9110 section 2.5).
func (f *responseFraming) takeStatusLine(line []byte) bool {
	const shortest = len(responsePrefix + "1 200")
	if len(line) < shortest || string(line[:len(responsePrefix)]) != responsePrefix {
		return false
	}
	minor, rest := line[len(responsePrefix)], line[len(responsePrefix)+1:]
	if !responseIsDigit(minor) || rest[0] != ' ' {
		return false
	}
	a, b, c := rest[1], rest[2], rest[3]
	if !responseIsDigit(a) || a == '0' || !responseIsDigit(b) || !responseIsDigit(c) {
		return false
	}
	f.code = uint16(a-'0')*100 + uint16(b-'0')*10 + uint16(c-'0')
	f.proto = probe.HTTP11
	if minor == '0' {
		f.proto = probe.HTTP10
	}
	return len(line) == shortest || line[shortest] == ' ' && responseIsText(line[shortest+1:])
}

// takeField takes a field and reports whether its value is well formed where
// it matters for the framing. The name must consist of token characters.
func (f *responseFraming) takeField(name, value []byte) bool {
	const connection, contentLength, transferEncoding = "connection", "content-length", "transfer-encoding"
	switch len(name) {
	case len(connection):
		if responseIs(name, connection) {
			f.takeConnection(value)
		}
	case len(contentLength):
		if responseIs(name, contentLength) {
			return f.takeContentLength(value)
		}
	case len(transferEncoding):
		if responseIs(name, transferEncoding) {
			return f.takeTransferEncoding(value)
		}
	}
	return true
}

// takeConnection takes the options of a Connection field (RFC 9110 section
// 7.6.1) that concern the connection itself.
func (f *responseFraming) takeConnection(value []byte) {
	for more := true; more; {
		var option []byte
		option, value, more = bytes.Cut(value, []byte{','})
		option = responseTrim(option)
		f.close = f.close || responseIs(option, "close")
		f.keepAlive = f.keepAlive || responseIs(option, "keep-alive")
	}
}

// takeContentLength takes a length, or a list of equal ones, as comes of
// fields that were joined on the way; fields that differ make the message
// invalid (RFC 9112 section 6.3, rule 5, and RFC 9110 section 8.6).
func (f *responseFraming) takeContentLength(value []byte) bool {
	for more := true; more; {
		var item []byte
		item, value, more = bytes.Cut(value, []byte{','})
		length := responseLengthOf(responseTrim(item))
		if length < 0 || f.measured && f.length != length {
			return false
		}
		f.measured, f.length = true, length
	}
	return true
}

// responseLengthOf returns the value of decimal digits, or -1 for anything
// else and for what does not fit.
func responseLengthOf(digits []byte) int64 {
	if len(digits) == 0 {
		return -1
	}
	var n int64
	for _, c := range digits {
		d := int64(c) - '0'
		if d < 0 || d > 9 || n > (math.MaxInt64-d)/10 {
			return -1
		}
		n = n*10 + d
	}
	return n
}

// takeTransferEncoding takes a list of transfer codings (RFC 9112 section
// 6.1). Chunked may be applied only once; behind another coding it still
// frames the body, before another it does not. Parameters are refused: no
// registered coding has any, and for chunked they are an error (section 7).
func (f *responseFraming) takeTransferEncoding(value []byte) bool {
	f.coded = true
	for more := true; more; {
		var coding []byte
		coding, value, more = bytes.Cut(value, []byte{','})
		coding = responseTrim(coding)
		if len(coding) == 0 {
			continue // RFC 9110 section 5.6.1.2
		}
		if responseNameLen(coding) != len(coding) {
			return false
		}
		again := f.chunked
		f.chunked = responseIs(coding, "chunked")
		if again && f.chunked {
			return false
		}
	}
	return true
}

// valid reports whether the fields may stand together. A transfer coding in an
// HTTP/1.0 answer means that its framing is faulty (RFC 9112 section 6.1).
func (f *responseFraming) valid() bool { return !f.coded || f.proto != probe.HTTP10 }

// closes reports whether the connection ends with this answer (RFC 9112
// section 9.3). It is not to be trusted either behind an answer that has both
// a transfer coding, which counts, and a length (section 6.3, rule 3).
func (f *responseFraming) closes() bool {
	return f.close || f.proto == probe.HTTP10 && !f.keepAlive || f.coded && f.measured
}

// responseIs reports whether b is name, which is of lower-case letters and
// hyphens, in any case. b must have no control character: without those, 0x20
// makes no letter and no hyphen of anything but the same.
func responseIs(b []byte, name string) bool {
	if len(b) != len(name) {
		return false
	}
	for i, c := range b {
		if c|0x20 != name[i] {
			return false
		}
	}
	return true
}

// responseTrim removes optional white space (RFC 9110 section 5.6.3).
func responseTrim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

func responseIsDigit(c byte) bool { return c-'0' <= 9 }

// responseNameLen returns how many token characters (RFC 9110 section 5.6.2) b
// begins with.
func responseNameLen(b []byte) int {
	for i, c := range b {
		if (c|0x20)-'a' >= 26 && c != '-' && !responseIsDigit(c) && bytes.IndexByte([]byte("!#$%&'*+.^_`|~"), c) < 0 {
			return i
		}
	}
	return len(b)
}

// responseIsText reports whether b has no control character but tabs (RFC 9110
// section 5.5). CR and NUL must be refused or replaced, the others may be.
func responseIsText(b []byte) bool {
	for len(b) >= 8 && responseNoControl(binary.LittleEndian.Uint64(b)) {
		b = b[8:]
	}
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// responseNoControl reports whether none of eight bytes is below 0x20 or 0x7f.
// A byte below 0x80 borrows into its top bit when 0x20 is taken from it and it
// was smaller; for 0x7f the same is done with its difference to 0x7f and 1.
func responseNoControl(x uint64) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	del := x ^ 0x7f*ones
	return ((x-0x20*ones)&^x|(del-ones)&^del)&tops == 0
}

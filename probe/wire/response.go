package wire

import (
	"bytes"

	"github.com/steadyprobe/steadyprobe/probe"
)

const (
	// responseMostInterim is how many 1xx answers may come before the final
	// one. RFC 9110 section 15.2 sets no limit; without one a door could keep
	// a request busy with them until its timeout.
	responseMostInterim = 16

	// responseKeptLine is the largest line buffer that a connection keeps
	// from one answer to the next.
	responseKeptLine = 4 << 10
)

// responseState is where in an answer the next byte belongs.
type responseState uint8

const (
	responseStatusLine responseState = iota
	responseField
	responseLength     // a body of known length
	responseUntilClose // a body that ends where the connection does
	responseChunkSize
	responseChunkPad       // white space behind a chunk size
	responseChunkExtension // behind the semicolon
	responseChunkSizeLF
	responseChunkData
	responseChunkDataCR
	responseChunkDataLF
	responseTrailer
	responseDone // this and what follows takes no further byte
	responseFailed
)

// response takes one HTTP/1.x answer at a time apart (RFC 9112, RFC 9110). The
// bytes are pushed into it as they come, in pieces of any size, and the result
// does not depend on how they were cut. It is strict: what is malformed is
// response/protocol, also where the RFCs would let a client repair it.
//
// There is one per connection, to be reset before each answer. It keeps no
// part of the answer but an unfinished line, and what its evidence keeps. Its
// methods never block, and allocate only while that outgrows all before it.
// They may not be called concurrently.
type response struct {
	// Of the final answer, set when its header section is complete.
	code   uint16         // status, 0 before
	proto  probe.Protocol // HTTP10 or HTTP11, NoProtocol before
	closes bool           // the door said that it closes: the connection is not to be used again
	body   int64          // bytes of the body so far, without chunk framing

	head      bool // the request was HEAD
	maxHeader int
	maxBody   int64

	state   responseState
	outcome probe.Outcome // of responseFailed
	seen    bool          // a byte of any answer came
	interim int           // 1xx answers so far
	line    []byte        // the part of an unfinished line that came before
	section int           // bytes of this header section; in a chunked body, of its extensions and trailers
	left    int64         // bytes missing of the body, or of the chunk
	digits  int           // of the chunk size

	fields responseFraming

	evidence *evidence // of what else is looked at; nil: of nothing
}

// reset makes r, but not its evidence, ready for the next answer. maxHeader limits a header section
// with its status line, and all chunk extensions and trailers together, in
// bytes; maxBody limits the body.
func (r *response) reset(head bool, maxHeader int, maxBody int64) {
	line := r.line[:0]
	if cap(line) > responseKeptLine {
		line = nil
	}
	*r = response{head: head, maxHeader: maxHeader, maxBody: maxBody, line: line, evidence: r.evidence}
}

// started reports whether any byte of the answer came, an interim (1xx) answer
// included.
func (r *response) started() bool { return r.seen }

// feed takes bytes from the front of p and returns how many: all of them,
// unless the answer is complete (done) or unusable (o). Bytes behind a
// complete answer were not asked for. A finished response takes nothing and
// says the same again.
func (r *response) feed(p []byte) (n int, done bool, o probe.Outcome) {
	for n < len(p) && r.state < responseDone {
		n += r.step(p[n:])
	}
	return n, r.state == responseDone, r.outcome
}

// eof tells r that the door sends nothing more. That completes a body which is
// delimited by it (RFC 9112 section 6.3, rule 8). Everywhere else the answer
// is incomplete (section 8): read/eof while no byte of the final status line
// came, else read/truncated.
func (r *response) eof() (done bool, o probe.Outcome) {
	switch {
	case r.state >= responseDone:
	case r.state == responseUntilClose:
		r.state = responseDone
	case r.state == responseStatusLine && len(r.line) == 0:
		r.fail(probe.ReadEOF)
	default:
		r.fail(probe.ReadTruncated)
	}
	return r.state == responseDone, r.outcome
}

// step takes at least one byte from the front of a p that is not empty, or
// fails.
func (r *response) step(p []byte) int {
	switch r.state {
	case responseStatusLine, responseField, responseTrailer:
		return r.stepLine(p)
	case responseLength:
		n := r.take(p)
		if r.left == 0 {
			r.state = responseDone
		}
		return n
	case responseUntilClose:
		r.left = r.maxBody - r.body
		n := r.take(p)
		if n < len(p) {
			r.fail(probe.ResponseSize)
		}
		return n
	default:
		return r.stepChunked(p)
	}
}

// take counts up to r.left bytes of p as body.
func (r *response) take(p []byte) int {
	n := min(r.left, int64(len(p)))
	r.left -= n
	r.body += n
	if r.evidence != nil {
		r.evidence.takeBody(p[:n])
	}
	return int(n)
}

// stepLine collects a line and interprets it when it is complete. It ends with
// LF, and one CR before that is not part of it (RFC 9112 section 2.2); any
// other CR is refused with the other control characters.
func (r *response) stepLine(p []byte) int {
	r.seen = true
	n, complete := len(p), false
	if end := bytes.IndexByte(p, '\n'); end >= 0 {
		n, complete = end+1, true
	}
	if n > r.maxHeader-r.section {
		return r.malformed(n)
	}
	r.section += n
	if !complete {
		r.line = append(r.line, p...)
		if r.state == responseStatusLine && !responseMayBeHTTP(r.line) {
			// What does not speak HTTP/1 may never send a line end.
			return r.malformed(n)
		}
		return n
	}
	line := p[:n-1]
	if len(r.line) > 0 {
		r.line = append(r.line, line...)
		line = r.line
		r.line = r.line[:0]
	}
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	if !r.takeLine(line) {
		return r.malformed(n)
	}
	return n
}

// takeLine interprets one line of the header or trailer section and reports
// whether it is well formed.
func (r *response) takeLine(line []byte) bool {
	switch {
	case r.state == responseStatusLine:
		// Also an empty line: only servers are to skip those before a message
		// (RFC 9112 section 2.2).
		r.state = responseField
		return r.fields.takeStatusLine(line)
	case len(line) > 0:
		name := responseNameLen(line)
		// No name is also what a folded line has (obs-fold, RFC 9112 section
		// 5.2), and white space before the colon ends the name (section 5.1).
		if name == 0 || name == len(line) || line[name] != ':' || !responseIsText(line[name+1:]) {
			return false
		}
		if r.state == responseTrailer {
			return true // not to be merged into the header (RFC 9110 section 6.5.1)
		}
		if r.evidence != nil {
			r.evidence.takeField(line[:name], line[name+1:])
		}
		return r.fields.takeField(line[:name], line[name+1:])
	case r.state == responseTrailer:
		r.state = responseDone
		return true
	default:
		return r.endHead()
	}
}

// endHead decides where the body ends (RFC 9112 section 6.3) and reports
// whether the answer may come after that request.
func (r *response) endHead() bool {
	f := &r.fields
	r.section = 0
	if f.code < 200 {
		if f.code == 101 || r.interim == responseMostInterim {
			return false // 101: nobody asked for another protocol (RFC 9110 section 7.8)
		}
		r.interim++
		r.state, r.fields = responseStatusLine, responseFraming{}
		if r.evidence != nil {
			r.evidence.resetHead()
		}
		return true
	}
	if !f.valid() {
		return false
	}
	r.code, r.proto, r.closes = f.code, f.proto, f.closes()
	switch {
	case r.head || f.code == 204 || f.code == 304: // rule 1
		r.state = responseDone
	case f.chunked: // rules 3 and 4
		r.beginChunk()
	case f.coded || !f.measured: // rules 4 and 8
		r.closes = true
		r.state = responseUntilClose
	case f.length > r.maxBody:
		r.fail(probe.ResponseSize)
	case f.length == 0:
		r.state = responseDone
	default: // rule 6
		r.left = f.length
		r.state = responseLength
	}
	return true
}

func (r *response) fail(o probe.Outcome) { r.state, r.outcome = responseFailed, o }

// malformed fails as response/protocol at the n-th byte from here.
func (r *response) malformed(n int) int {
	r.fail(probe.ResponseProtocol)
	return n
}

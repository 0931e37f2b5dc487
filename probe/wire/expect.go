package wire

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"regexp"

	"github.com/steadyprobe/steadyprobe/probe"
)

// Expect is what an answer must be like besides its status; the zero value
// expects nothing. A status that is no success wins over headers, and these win
// over the body. The body is what is left when chunks are put together; a
// content coding is not undone, and none is asked for. Of an answer to HEAD no
// body is expected, whatever is said here.
type Expect struct {
	Headers []HeaderExpectation // all of them; response/header

	// Of the body, all of them; response/body. Regexp and substring make each
	// connection hold a body of up to MaxBody bytes, a digest does not.
	Body         *regexp.Regexp     // nil: any
	BodyContains []byte             // empty: anything
	BodySize     *int64             // exactly so many bytes; nil: any
	BodySHA256   *[sha256.Size]byte // nil: any
}

// HeaderExpectation is a field that an answer must have. Of several fields of
// one name it suffices that one matches.
type HeaderExpectation struct {
	Name  string         // in any case
	Value *regexp.Regexp // of the value without white space around it; nil: any
}

// keptBody is the largest buffer for bodies that a connection keeps from one
// answer to the next.
const keptBody = 64 << 10

// judge is what the answers of a target are held to, made ready for all its
// connections.
type judge struct {
	expect  Expect
	names   [][]byte // of the headers
	backend backendRule
	keeps   bool // the body must be kept
	turns   *Turns
}

// newJudge returns nil where nothing is expected and nothing tells backends
// apart.
func newJudge(e Expect, b BackendRule, head bool, turns *Turns) *judge {
	if b.Names == nil {
		b = BackendRule{}
	}
	if head {
		e.Body, e.BodyContains, e.BodySize, e.BodySHA256, b.Body = nil, nil, nil, nil, nil
	}
	j := &judge{expect: e, backend: newBackendRule(b), turns: turns}
	for _, h := range e.Headers {
		j.names = append(j.names, []byte(h.Name))
	}
	j.keeps = e.Body != nil || len(e.BodyContains) > 0 || j.backend.body != nil
	if !j.keeps && len(e.Headers) == 0 && e.BodySize == nil && e.BodySHA256 == nil && j.backend.header == nil {
		return nil
	}
	return j
}

// readsBody reports whether judging takes longer the longer the body is.
func (j *judge) readsBody() bool { return j != nil && (j.keeps || j.expect.BodySHA256 != nil) }

// evidence is what one answer has shown of what its judge looks at. There is
// one per connection.
type evidence struct {
	*judge
	met    []bool // headers that are as expected
	named  bool   // a field named the backend
	name   []byte // as it was named
	body   []byte
	digest hash.Hash // nil: none is expected
	sum    [sha256.Size]byte
}

// newEvidence returns nil for no judge.
func newEvidence(j *judge) *evidence {
	if j == nil {
		return nil
	}
	e := &evidence{judge: j, met: make([]bool, len(j.names))}
	if j.expect.BodySHA256 != nil {
		e.digest = sha256.New()
	}
	return e
}

// reset makes e ready for the next answer.
func (e *evidence) reset() {
	e.resetHead()
	e.body = e.body[:0]
	if cap(e.body) > keptBody {
		e.body = nil
	}
	if e.digest != nil {
		e.digest.Reset()
	}
}

// resetHead forgets the header of an interim answer.
func (e *evidence) resetHead() {
	clear(e.met)
	e.named = false
}

// takeField takes a field of the header.
func (e *evidence) takeField(name, value []byte) {
	value = responseTrim(value)
	for i, n := range e.names {
		if !e.met[i] && isField(name, n) {
			expected := e.expect.Headers[i].Value
			e.met[i] = expected == nil || expected.Match(value)
		}
	}
	if !e.named && e.backend.header != nil && isField(name, e.backend.header) {
		e.named = true
		e.name = append(e.name[:0], value[:min(len(value), mostBackendName+1)]...)
	}
}

// isField reports whether a field's name is that of n, both of token
// characters.
func isField(name, n []byte) bool { return len(name) == len(n) && bytes.EqualFold(name, n) }

// takeBody takes the next part of the body.
func (e *evidence) takeBody(p []byte) {
	if e.keeps {
		e.body = append(e.body, p...)
	}
	if e.digest != nil {
		e.digest.Write(p)
	}
}

// outcome judges a complete answer with a body of so many bytes.
func (e *evidence) outcome(size int64) probe.Outcome {
	for _, met := range e.met {
		if !met {
			return probe.ResponseHeader
		}
	}
	x := &e.expect
	switch {
	case x.BodySize != nil && size != *x.BodySize,
		len(x.BodyContains) > 0 && !bytes.Contains(e.body, x.BodyContains),
		e.digest != nil && !e.digested(),
		x.Body != nil && !e.turns.match(x.Body, e.body):
		return probe.ResponseBody
	}
	return probe.Success
}

// digested reports whether the body has the digest that is expected.
func (e *evidence) digested() bool {
	e.digest.Sum(e.sum[:0])
	return e.sum == *e.expect.BodySHA256
}

package wire

import (
	"math"

	"github.com/steadyprobe/steadyprobe/probe"
)

// responseMostDigits is how long a chunk size may be: enough for 64 bits.
const responseMostDigits = 16

// beginChunk expects a chunk size next.
func (r *response) beginChunk() { r.state, r.left, r.digits = responseChunkSize, 0, 0 }

// stepChunked takes a part of a chunked body (RFC 9112 section 7.1). Its lines
// end with CR and LF: that a lone LF may end a line (section 2.2) is said of
// status line and fields only.
func (r *response) stepChunked(p []byte) int {
	switch r.state {
	case responseChunkSize:
		return r.stepChunkSize(p)
	case responseChunkPad, responseChunkExtension:
		return r.stepChunkExtension(p)
	case responseChunkSizeLF:
		if p[0] != '\n' {
			return r.malformed(1)
		}
		r.beginChunkData()
	case responseChunkData:
		n := r.take(p)
		if r.left == 0 {
			r.state = responseChunkDataCR
		}
		return n
	case responseChunkDataCR:
		if p[0] != '\r' {
			return r.malformed(1)
		}
		r.state = responseChunkDataLF
	default: // responseChunkDataLF
		if p[0] != '\n' {
			return r.malformed(1)
		}
		r.beginChunk()
	}
	return 1
}

// stepChunkSize takes hexadecimal digits and the byte behind them.
func (r *response) stepChunkSize(p []byte) int {
	for i, c := range p {
		if digit := responseHex(c); digit >= 0 {
			if r.digits == responseMostDigits || r.left > math.MaxInt64>>4 {
				return r.malformed(i + 1)
			}
			r.digits++
			r.left = r.left<<4 | digit
			continue
		}
		switch {
		case r.digits == 0:
			return r.malformed(i + 1)
		case c == '\r':
			r.state = responseChunkSizeLF
		default:
			r.state = responseChunkPad
			return i + r.stepChunkExtension(p[i:])
		}
		return i + 1
	}
	return len(p)
}

// stepChunkExtension skips extensions (RFC 9112 section 7.1.1), and the white
// space that some doors pad the size with.
func (r *response) stepChunkExtension(p []byte) int {
	for i, c := range p {
		if c == '\r' {
			r.state = responseChunkSizeLF
			return i + 1
		}
		r.section++
		switch {
		case r.section > r.maxHeader:
			return r.malformed(i + 1)
		case r.state == responseChunkExtension:
			if c < ' ' && c != '\t' || c == 0x7f {
				return r.malformed(i + 1)
			}
		case c == ';':
			r.state = responseChunkExtension
		case c != ' ' && c != '\t':
			return r.malformed(i + 1)
		}
	}
	return len(p)
}

// beginChunkData goes on behind the line of a chunk size.
func (r *response) beginChunkData() {
	switch {
	case r.left == 0:
		r.state = responseTrailer
	case r.left > r.maxBody-r.body:
		r.fail(probe.ResponseSize)
	default:
		r.state = responseChunkData
	}
}

// responseHex returns the value of a hexadecimal digit, or -1.
func responseHex(c byte) int64 {
	switch {
	case responseIsDigit(c):
		return int64(c - '0')
	case (c|0x20)-'a' < 6:
		return int64(c|0x20-'a') + 10
	}
	return -1
}

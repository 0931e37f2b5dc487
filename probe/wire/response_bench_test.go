package wire

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/steadyprobe/steadyprobe/probe"
)

// benchmarkAnswers are answers with 1 KiB of body as doors send them.
func benchmarkAnswers() map[string][]byte {
	const head = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 30 Nov 2025 16:24:11 GMT\r\nContent-Type: text/html\r\n" +
		"Last-Modified: Sun, 30 Nov 2025 16:00:00 GMT\r\nConnection: keep-alive\r\n"
	body := bytes.Repeat([]byte("0123456789abcdef"), 64)
	chunked := []byte(head + "Transfer-Encoding: chunked\r\n\r\n")
	for part := body; len(part) > 0; part = part[256:] {
		chunked = fmt.Appendf(chunked, "%x\r\n%s\r\n", 256, part[:256])
	}
	return map[string][]byte{
		"length":  append([]byte(head+"Content-Length: 1024\r\nETag: \"5f3e-400\"\r\nAccept-Ranges: bytes\r\n\r\n"), body...),
		"chunked": append(chunked, "0\r\n\r\n"...),
	}
}

// BenchmarkResponse takes one answer of 1 KiB apart, whole as one read brings
// it.
func BenchmarkResponse(b *testing.B) {
	for name, answer := range benchmarkAnswers() {
		b.Run(name, func(b *testing.B) {
			r := new(response)
			b.SetBytes(int64(len(answer)))
			b.ReportAllocs()
			for b.Loop() {
				r.reset(false, 16<<10, 1<<20)
				if n, done, o := r.feed(answer); n != len(answer) || !done || o != probe.Success {
					b.Fatal(n, done, o)
				}
			}
		})
	}
}

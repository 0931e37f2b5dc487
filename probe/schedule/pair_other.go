//go:build !unix

package schedule

import (
	"net"
	"time"
)

// localPair returns the ends of a TCP connection over loopback. Its buffers
// hold 64 KiB or more, 8,192 messages, which is 6 minutes of a reader that
// does not read.
func localPair() (net.Conn, sender, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = l.Close() }()
	// The backlog of the listener completes the handshake before Accept.
	writer, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		return nil, nil, err
	}
	for {
		reader, err := l.AcceptTCP()
		if err != nil {
			_ = writer.Close()
			return nil, nil, err
		}
		if reader.RemoteAddr().String() == writer.LocalAddr().String() {
			return reader, deadlineSender{writer}, nil
		}
		_ = reader.Close() // a stranger found the port
	}
}

// deadlineSender waits for room 1 ms at most.
type deadlineSender struct{ net.Conn }

func (s deadlineSender) send(b []byte) (n int) {
	if err := s.SetWriteDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return 0
	}
	n, _ = s.Write(b) // what did not fit is sent with the next message
	return n
}

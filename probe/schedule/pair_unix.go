//go:build unix

package schedule

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// localPair returns the ends of a Unix stream socket pair. Its buffer holds
// about 270 messages on Linux with default settings, which is 13 s of a reader
// that does not read, and about 1,000 on darwin.
func localPair() (net.Conn, sender, error) {
	// The lock keeps a process that is started now from inheriting the ends.
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	reader, errReader := connOf(fds[0])
	writer, errWriter := connOf(fds[1])
	if err := errors.Join(errReader, errWriter); err != nil {
		closeAll(reader, writer)
		return nil, nil, err
	}
	s, err := newSocketSender(writer)
	if err != nil {
		closeAll(reader, writer)
		return nil, nil, err
	}
	return reader, s, nil
}

// connOf turns fd into a connection that the runtime's poller knows.
func connOf(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "socketpair")
	conn, err := net.FileConn(f)
	_ = f.Close() // conn has a descriptor of its own
	return conn, err
}

func closeAll(conns ...net.Conn) {
	for _, c := range conns {
		if c != nil {
			_ = c.Close()
		}
	}
}

// socketSender writes past the runtime's poller, which would wait for room.
type socketSender struct {
	net.Conn
	raw syscall.RawConn

	// Of the call of send that is going on. write is kept because a function
	// literal in send would be allocated each time.
	write func(fd uintptr) bool
	b     []byte
	n     int
}

func newSocketSender(conn net.Conn) (*socketSender, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errors.New("connection has no descriptor")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &socketSender{Conn: conn, raw: raw}
	s.write = func(fd uintptr) bool {
		n, err := unix.Write(int(fd), s.b)
		if err == nil {
			s.n = n
		}
		return true // do not wait for room
	}
	return s, nil
}

func (s *socketSender) send(b []byte) (n int) {
	s.b, s.n = b, 0
	_ = s.raw.Write(s.write) // fails only when closed
	s.b = nil
	return s.n
}

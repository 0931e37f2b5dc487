package wire

import (
	"net"
	"sync"
)

// watched is a connection whose bytes a Loop gives to a function.
type watched struct {
	conn *looped
	take func([]byte)

	mu   sync.Mutex // held while take runs
	over bool
}

// Watch gives what comes over a connection to take, on the loop's goroutine and
// in the order of its other work, until stop is called: whoever measures by it
// feels what an answer feels that the loop reads. Stop closes the connection
// and returns when take has returned for the last time. It must be called
// before the loop is closed. Watch returns false, and leaves the connection as
// it is, where the loop cannot read it.
func (l *Loop) Watch(c net.Conn, take func([]byte)) (stop func(), ok bool) {
	conn, ok := l.adopt(c)
	if !ok {
		return nil, false
	}
	w := &watched{conn: conn, take: take}
	l.mu.Lock()
	l.watched[conn.fd] = w
	l.mu.Unlock()
	conn.begin()
	return w.stop, true
}

func (w *watched) serve(buffer []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if n, err := w.conn.Read(buffer); err == nil {
		w.take(buffer[:n])
	}
}

func (w *watched) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.over = true
	l := w.conn.loop
	l.mu.Lock()
	delete(l.watched, w.conn.fd)
	l.mu.Unlock()
	_ = w.conn.Close()
}

package haproxy

import (
	"bufio"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/churn"
)

var (
	_ churn.Workload = (*Workload)(nil)
	_ churn.Keeper   = (*Workload)(nil)
	_ churn.Killer   = (*Workload)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSocket answers each line of commands with what it was told, or with
// nothing, and closes the connection. It is for what a real HAProxy cannot be
// made to say.
type fakeSocket struct {
	path string

	mu      sync.Mutex
	answer  func(line string) (text string, hangs bool)
	serving sync.WaitGroup
}

func listen(t *testing.T, answer func(line string) (text string, hangs bool)) *fakeSocket {
	t.Helper()
	f := &fakeSocket{path: filepath.Join(t.TempDir(), "s"), answer: answer}
	l, err := net.Listen("unix", f.path)
	if err != nil {
		t.Fatal(err)
	}
	closing := make(chan struct{})
	f.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.serving.Go(func() { f.serve(conn, closing) })
		}
	})
	t.Cleanup(func() {
		close(closing)
		l.Close()
		f.serving.Wait()
	})
	return f
}

func (f *fakeSocket) serve(conn net.Conn, closing <-chan struct{}) {
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return
	}
	line = strings.TrimSpace(line)
	f.mu.Lock()
	text, hangs := f.answer(line)
	f.mu.Unlock()
	_, _ = conn.Write([]byte(text))
	if hangs {
		<-closing
	}
}

func (f *fakeSocket) workload(t *testing.T) *Workload {
	t.Helper()
	w, err := New(Options{Socket: f.path, Backend: "servers"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func reasonOf(err error) churn.Reason {
	var e *churn.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return churn.NoReason
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// What HAProxy 2.6 says, shortened to the columns and fields that matter and
// some that do not.
const (
	info    = "Name: HAProxy\nVersion: 2.6.12\nPid: 17\nUptime_sec: 9\nStopping: 0\nStart_time_sec: 1796079058\n"
	columns = "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight\n"
	stat    = "# pxname,svname,status,weight,act,bck,tracked,\n"
)

// healthy is the answer to the questions for two servers, s0 and s1.
const healthy = info + "\n" +
	columns + "3 servers 1 s0 127.0.0.1 2 0 1 1\n3 servers 2 s1 127.0.0.1 2 0 1 1\n\n" +
	stat + "servers,s0,no check,1,1,0,,\nservers,s1,no check,1,1,0,,\n\n"

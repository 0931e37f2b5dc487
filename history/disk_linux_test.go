package history

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/steadyprobe/steadyprobe/probe"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// seconds are spans without end, one for each second of the past ten hours on,
// with a thousand latencies each.
type seconds struct {
	random *rand.Rand
	from   probe.Instant
}

func newSeconds(clock probe.Clock) *seconds {
	return &seconds{random: rand.New(rand.NewPCG(3, 4)), from: clock.Now().Add(-10 * time.Hour)}
}

func (s *seconds) next() record.Span {
	until := s.from.Add(time.Second)
	span := record.Span{From: s.from, Until: until, Completed: 1000, Failed: 1}
	for i := range 1000 {
		span.Cells = append(span.Cells, record.Cell{Highest: time.Duration(i+1)*time.Millisecond + time.Duration(s.random.IntN(1000)), Count: 1})
	}
	s.from = until
	return span
}

// latencies returns how many are in all logs of a target, which the library's
// reader must be able to read.
func latencies(t *testing.T, path, target string) (n int64) {
	t.Helper()
	for _, file := range logs(t, path) {
		if strings.HasPrefix(file, target+"/") {
			for _, h := range intervals(t, filepath.Join(path, file)) {
				n += h.TotalCount()
			}
		}
	}
	return n
}

// TestFullDisk writes to a disk of 64 KB until that is full, and goes on when
// there is room again: what could not be written has left nothing behind.
func TestFullDisk(t *testing.T) {
	path := t.TempDir()
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a disk of a size of its own takes root: %v", err)
	}
	defer func() {
		if err := unix.Unmount(path, 0); err != nil {
			t.Error(err)
		}
	}()
	ballast := filepath.Join(path, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 20<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	clock := probe.NewClock()
	f := newFolder(path, 0, 0)
	defer f.close()
	w, log := newWriter(f, clock, (&lines{}).logger()), newSeconds(clock)
	written := int64(0)
	writeUntilFull := func() {
		t.Helper()
		for range 1000 {
			span := log.next()
			if _, err := w.write("a", []record.Span{span}); err != nil {
				if !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("got %v, want that the disk is full", err)
				}
				return
			}
			written += 1000
		}
		t.Fatal("the disk is never full")
	}
	check := func(when string) {
		t.Helper()
		if got := latencies(t, path, "a"); got != written {
			t.Errorf("%s: the logs have %d latencies, %d were written", when, got, written)
		}
	}
	writeUntilFull()
	check("full")
	first := written
	writeUntilFull()
	check("still full")
	if first == 0 || written != first {
		t.Errorf("%d latencies were written, and %d more without any room", first, written-first)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	writeUntilFull()
	check("full again")
	if written == first {
		t.Error("nothing was written when there was room again")
	}
}

// killed is the environment variable that says where a process of this test
// writes until it is killed.
const killed = "STEADYPROBE_TEST_HISTORY"

// TestKilledWriter kills a process that does nothing but write, again and again:
// each time all that it said was written is there, and the next one goes on.
func TestKilledWriter(t *testing.T) {
	if path := os.Getenv(killed); path != "" {
		writeForEver(path)
	}
	path := t.TempDir()
	said := int64(0)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for range 12 {
		said += writeAndKill(t, path, time.Duration(random.IntN(int(30*time.Millisecond))))
	}
	// The last word of the last one may be half a line, too.
	clock := probe.NewClock()
	f := newFolder(path, 0, 0)
	defer f.close()
	if _, err := newWriter(f, clock, (&lines{}).logger()).write("a", []record.Span{newSeconds(clock).next()}); err != nil {
		t.Fatal(err)
	}
	// What was written and could not be said any more is at most one each time.
	if got := latencies(t, path, "a"); got < said+1000 || got > said+1000+12*1000 {
		t.Errorf("the logs have %d latencies, %d were written", got, said)
	}
}

// writeAndKill returns how many latencies the process said it had written.
func writeAndKill(t *testing.T, path string, after time.Duration) (said int64) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
	c.Env = append(os.Environ(), killed+"="+path)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	for first := true; scanner.Scan(); first = false {
		if !strings.HasPrefix(scanner.Text(), "written") {
			t.Errorf("the process says %q", scanner.Text())
			continue
		}
		said += 1000
		if first {
			time.AfterFunc(after, func() { _ = c.Process.Kill() })
		}
	}
	_ = c.Wait() // it was killed
	return said
}

// writeForEver writes and says so until the process is killed.
func writeForEver(path string) {
	clock := probe.NewClock()
	f := newFolder(path, 0, 0)
	w, log := newWriter(f, clock, (&lines{}).logger()), newSeconds(clock)
	for {
		if _, err := w.write("a", []record.Span{log.next()}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("written")
	}
}

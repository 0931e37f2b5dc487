package notefile

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/steadyprobe/steadyprobe/churn"
)

// another is set in the environment of a process of this test program that is
// to be another daemon: it leads in the folder that it names.
const another = "STEADYPROBE_TEST_NOTEFILE"

func TestMain(m *testing.M) {
	if folder := os.Getenv(another); folder != "" {
		beAnother(folder)
	}
	goleak.VerifyTestMain(m)
}

// beAnother leads, writes a note, says so, and waits to be killed.
func beAnother(folder string) {
	b, err := New(Options{Folder: folder, Churn: "shop"})
	if err == nil {
		err = b.Campaign(context.Background(), func(ctx context.Context) {
			err := b.Save(ctx, churn.Note{Held: true, Baseline: 4, Set: 2, Deadline: time.Unix(7, 0)})
			fmt.Println("leading", err)
			time.Sleep(time.Minute) // were it not killed, it would not stay for ever
			os.Exit(3)
		})
	}
	fmt.Println("not leading", err)
	os.Exit(1)
}

func TestOneLeads(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var leaders, terms atomic.Int32
		lead := func(ctx context.Context) {
			if n := leaders.Add(1); n != 1 {
				t.Errorf("%d lead at once", n)
			}
			terms.Add(1)
			<-ctx.Done()
			leaders.Add(-1)
		}
		var books [3]*Book
		var cancels [3]context.CancelFunc
		over := make(chan error, len(books))
		for i := range books {
			books[i] = open(t, folder, "shop")
			ctx, cancel := context.WithCancel(t.Context())
			cancels[i] = cancel
			go func() { over <- books[i].Campaign(ctx, lead) }()
			time.Sleep(10 * electionPeriod)
			if n := leaders.Load(); n != 1 || terms.Load() != 1 {
				t.Errorf("with %d who stand, %d lead, after %d terms", i+1, n, terms.Load())
			}
			if got := books[i].Leader(); got != identity() {
				t.Errorf("book %d says that %q leads, want %q", i, got, identity())
			}
		}
		for i, b := range books {
			err := b.Save(t.Context(), churn.Note{Paused: true})
			if i == 0 && err != nil || i > 0 && reasonOf(err) != churn.Conflict {
				t.Errorf("book %d: Save returned %v", i, err)
			}
		}
		for i := range books {
			cancels[i]()
			if err := <-over; err != nil {
				t.Errorf("Campaign returned %v", err)
			}
			time.Sleep(2 * electionPeriod) // the next one has tried
			want := int32(1)
			if i == len(books)-1 {
				want = 0
			}
			if n := leaders.Load(); n != want {
				t.Errorf("after %d resigned %d lead, want %d", i+1, n, want)
			}
			if got := books[i].Leader(); got != "" {
				t.Errorf("book %d says that %q leads, although it does not look any more", i, got)
			}
			if err := books[i].Save(t.Context(), churn.Note{}); reasonOf(err) != churn.Conflict {
				t.Errorf("book %d does not lead any more: Save returned %v", i, err)
			}
		}
	})
}

// TestOtherChurnsAreFree leads for two churns in one folder.
func TestOtherChurnsAreFree(t *testing.T) {
	folder := t.TempDir()
	leading(t, open(t, folder, "shop"))
	leading(t, open(t, folder, "basket"))
}

// TestTermsFollowEachOther goes on standing for election when lead returns by
// itself.
func TestTermsFollowEachOther(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		terms := 0
		begun := time.Now()
		err := open(t, folder, "shop").Campaign(ctx, func(context.Context) {
			if terms++; terms == 3 {
				cancel()
			}
		})
		if took := time.Since(begun); err != nil || terms != 3 || took != 2*electionPeriod {
			t.Errorf("%d terms in %v, %v; want 3 in %v", terms, took, err, 2*electionPeriod)
		}
	})
}

// TestLockIsTakenAway replaces the file of the lock, as who cleans up a folder
// does: then two could lead, and the first one must notice.
func TestLockIsTakenAway(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprintf("replaced %v", replaced), func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "churn-shop.lock")
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				b := open(t, folder, "shop")
				terms := 0
				err := b.Campaign(ctx, func(ctx context.Context) {
					if terms++; terms == 2 {
						cancel() // it got the new one
						return
					}
					if err := os.Remove(path); err != nil {
						t.Error(err)
					}
					if replaced {
						leading(t, open(t, folder, "shop"))()
					}
					if err := b.Save(t.Context(), churn.Note{Paused: true}); replaced && reasonOf(err) != churn.Conflict || err == nil {
						t.Errorf("Save returned %v", err)
					}
					begun := time.Now()
					<-ctx.Done()
					if took := time.Since(begun); took > electionPeriod {
						t.Errorf("it took %v to notice", took)
					}
				})
				if err != nil || terms != 2 {
					t.Errorf("%d terms, %v; want 2", terms, err)
				}
			})
		})
	}
}

func TestPanicGivesTheLockUp(t *testing.T) {
	folder := t.TempDir()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = open(t, folder, "shop").Campaign(t.Context(), func(context.Context) { panic("no") })
	}()
	leading(t, open(t, folder, "shop"))
}

func TestStandingTwice(t *testing.T) {
	b := open(t, t.TempDir(), "shop")
	resign := leading(t, b)
	err := b.Campaign(t.Context(), func(context.Context) { t.Error("it leads twice") })
	if want := `standing for election for churn "shop": this does so already`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	resign()
	leading(t, b)() // it may stand again
}

// TestKilledLeader kills another process that leads: the lock becomes free at
// once, and its note is there.
func TestKilledLeader(t *testing.T) {
	folder := t.TempDir()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), another+"="+folder)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Wait() }() // killed
	defer func() { _ = other.Process.Kill() }()
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "leading <nil>\n" {
		t.Fatalf("the other process says %q", line)
	}

	b := open(t, folder, "shop")
	if err := b.term(t.Context(), func(context.Context) { t.Error("two lead") }); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("pid %d on ", other.Process.Pid); !strings.HasPrefix(b.Leader(), want) {
		t.Errorf("%q leads, want %s…", b.Leader(), want)
	}
	if err := b.Save(t.Context(), churn.Note{}); reasonOf(err) != churn.Conflict {
		t.Errorf("Save returned %v", err)
	}

	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // killed
	leading(t, b)
	if b.Leader() != identity() {
		t.Errorf("%q leads, want this process", b.Leader())
	}
	want := churn.Note{Held: true, Baseline: 4, Set: 2, Deadline: time.Unix(7, 0)}
	if n, err := b.Load(t.Context()); err != nil || !same(n, want) {
		t.Errorf("loaded %+v, %v; want %+v", n, err, want)
	}
}

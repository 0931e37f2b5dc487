package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/steadyprobe/steadyprobe/churn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "s3cr3t-bearer-token"

// kubeconfig writes one, and returns its path.
func kubeconfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// reaching returns a kubeconfig with two contexts, one of them without a
// namespace.
func reaching(server string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: fra1
clusters:
- {name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}
users:
- {name: u, user: {token: %s}}
contexts:
- {name: fra1, context: {cluster: c, user: u, namespace: probes}}
- {name: bare, context: {cluster: c, user: u}}
- {name: broken, context: {cluster: gone, user: u}}
`, server, secret)
}

func TestConnect(t *testing.T) {
	good := kubeconfig(t, reaching("https://127.0.0.1:1"))
	t.Setenv("KUBECONFIG", good) // is never taken by itself
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, tc := range []struct {
		name string
		o    ClusterOptions
		err  string
	}{
		{"current context", ClusterOptions{Kubeconfig: good}, ""},
		{"another context", ClusterOptions{Kubeconfig: good, Context: "bare", Namespace: "probes"}, ""},
		{"no file said", ClusterOptions{}, "kubeconfig: want one, because this is no pod of a cluster"},
		{"a context without a file", ClusterOptions{Context: "fra1"}, `context "fra1": want a kubeconfig that has it`},
		{"no such file", ClusterOptions{Kubeconfig: "/no/such"}, `reading kubeconfig "/no/such": `},
		{"no such context", ClusterOptions{Kubeconfig: good, Context: "ber1"}, `reading kubeconfig "` + good + `": it has no context "ber1"`},
		{"no such cluster", ClusterOptions{Kubeconfig: good, Context: "broken"}, `reading context "broken" of kubeconfig "` + good + `": `},
		{"no namespace", ClusterOptions{Kubeconfig: good, Context: "bare"}, "our own namespace: want one, the context has none"},
		{"no name of a namespace", ClusterOptions{Kubeconfig: good, Namespace: "Probes"}, `our own namespace "Probes": `},
		{"no context at all", ClusterOptions{Kubeconfig: kubeconfig(t, "apiVersion: v1\nkind: Config\n")}, "reading kubeconfig "},
		{"no YAML", ClusterOptions{Kubeconfig: kubeconfig(t, "token: "+secret+"\n  x: [")}, "reading kubeconfig "},
		{"another kind of file", ClusterOptions{Kubeconfig: kubeconfig(t, "users: {token: "+secret+"}\n")}, "reading kubeconfig "},
		{"no address", ClusterOptions{Kubeconfig: kubeconfig(t, reaching("::"+secret))}, `reading context "fra1" of kubeconfig `},
		{"no host", ClusterOptions{Kubeconfig: kubeconfig(t, reaching("api:6443"))}, `reading context "fra1" of kubeconfig `},
		{"a user in the address", ClusterOptions{Kubeconfig: kubeconfig(t, reaching("https://bob:"+secret+"@api:6443"))}, `reading context "fra1" of kubeconfig `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Connect(tc.o)
			if !begins(err, tc.err) {
				t.Errorf("%v, want %s", err, tc.err)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%v shows a secret", err)
			}
		})
	}
}

// lockedBuffer is a log that is written and read by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A cluster that is not there is named by its file, its context and its server,
// and nothing secret is said about it anywhere.
func TestDeadCluster(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	closed.Close()
	for _, tc := range []struct{ name, server, shown string }{
		{"nobody listens", "https://" + address, "https://" + address},
		{"no such name", "https://api.invalid:6443", "https://api.invalid:6443"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log lockedBuffer
			file := kubeconfig(t, reaching(tc.server))
			c, err := Connect(ClusterOptions{
				Kubeconfig: file, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			if err != nil {
				t.Fatal(err)
			}
			w, err := c.Workload(goodOptions())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			began := time.Now()
			_, observed := w.Observe(ctx)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v to say that nobody answers, want an answer when it is known", took)
			}
			_, loaded := w.Load(ctx)
			for _, err := range []error{observed, loaded} {
				var e *churn.Error
				if !errors.As(err, &e) || e.Reason != churn.Unreachable {
					t.Errorf("%v, want reason %v", err, churn.Unreachable)
				}
				want := fmt.Sprintf("cluster %s (context \"fra1\" of kubeconfig %q)", tc.shown, file)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want in it: %s", err, want)
				}
			}
			for _, text := range []string{fmt.Sprint(observed), fmt.Sprint(loaded), log.String()} {
				if strings.Contains(text, secret) {
					t.Errorf("a secret is shown: %s", text)
				}
			}
		})
	}
}

// What only the elected instance may do is not done by one that is not.
func TestNotElected(t *testing.T) {
	c, err := Connect(ClusterOptions{Kubeconfig: kubeconfig(t, reaching("https://127.0.0.1:1"))})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Workload(goodOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, err := range map[string]error{
		"Scale": w.Scale(t.Context(), 4),
		"Save":  w.Save(t.Context(), churn.Note{Held: true}),
	} {
		if reasonOf(err) != churn.Conflict || !strings.Contains(err.Error(), "this instance does not hold the lease") {
			t.Errorf("%s: %v, want reason %v, for it does not hold the lease", name, err, churn.Conflict)
		}
	}
	if w.Leader() != "" {
		t.Errorf("leader %q, want none", w.Leader())
	}
	w.Announce(churn.Announcement{Reason: churn.AnnouncePaused}) // about a workload that is not known: nothing
	w.Close()
	w.Close()
}

// Two workloads of one process are two in elections: while one still gives its
// lease up, the other one must not take it for its own.
func TestIdentities(t *testing.T) {
	for _, tc := range []struct{ name, pod, identity, want string }{
		{"of a pod", "probe-0", "", "probe-0_"},
		{"of a host", "", "", "_"},
		{"as told", "probe-0", "me", "me"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Connect(ClusterOptions{Kubeconfig: kubeconfig(t, reaching("https://127.0.0.1:1")), Pod: tc.pod, Identity: tc.identity})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for range 2 {
				w, err := c.Workload(goodOptions())
				if err != nil {
					t.Fatal(err)
				}
				w.Close()
				if !strings.Contains(w.Identity(), tc.want) || (w.Identity() == tc.want) != (tc.identity != "") {
					t.Errorf("identity %q, want %q in it", w.Identity(), tc.want)
				}
				seen[w.Identity()] = true
			}
			if want := map[bool]int{true: 1, false: 2}[tc.identity != ""]; len(seen) != want {
				t.Errorf("identities %v, want %d", seen, want)
			}
		})
	}
}

// Nothing of client-go's own messages reaches standard error.
func TestStandardError(t *testing.T) {
	if _, err := Connect(ClusterOptions{Kubeconfig: "/no/such"}); err == nil {
		t.Fatal("there is a cluster where none is")
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	before := os.Stderr
	os.Stderr = write
	klog.ErrorS(errors.New("wrong"), "failed")
	klog.Warning("careful")
	utilruntime.HandleError(errors.New("unhandled"))
	klog.Flush()
	os.Stderr = before
	write.Close()
	if text, err := io.ReadAll(read); err != nil || len(text) > 0 {
		t.Errorf("standard error has %q, %v, want nothing", text, err)
	}
}

func TestOwnWorkload(t *testing.T) {
	for _, tc := range []struct {
		name, namespace, pod string
		refused              bool
	}{
		{"our own", "shop", "web-7d4f9c8b5-x2x4z", true},
		{"of that name in another namespace", "probes", "web-7d4f9c8b5-x2x4z", false},
		{"another one", "shop", "probe-7d4f9c8b5-x2x4z", false},
		{"in no pod", "shop", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Connect(ClusterOptions{Kubeconfig: kubeconfig(t, reaching("https://127.0.0.1:1")), Namespace: tc.namespace, Pod: tc.pod})
			if err != nil {
				t.Fatal(err)
			}
			w, err := c.Workload(goodOptions())
			if w != nil {
				w.Close()
			}
			if (err != nil) != tc.refused || err != nil && !strings.Contains(err.Error(), "it seems to be our own, we are pod") {
				t.Errorf("%v, want it refused: %v", err, tc.refused)
			}
		})
	}
}

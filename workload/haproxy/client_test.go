package haproxy

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

func TestOptions(t *testing.T) {
	tests := []struct {
		name    string
		options Options
		error   string
	}{
		{"path", Options{Socket: "/run/haproxy/admin.sock", Backend: "shop"}, ""},
		{"address", Options{Socket: "[::1]:9999", Backend: "a-B_c.d:1", Mode: Weight}, ""},
		{"nothing", Options{}, "socket \"\": want an absolute path or HOST:PORT\nbackend \"\": want its name, letters, digits and -_.: alone"},
		{"relative", Options{Socket: "admin.sock", Backend: "shop"}, `socket "admin.sock": want an absolute path or HOST:PORT`},
		{"no host", Options{Socket: ":9999", Backend: "shop"}, `socket ":9999": want an absolute path or HOST:PORT`},
		{"more than a name", Options{Socket: "/s", Backend: "shop;shutdown frontend door"}, `backend "shop;shutdown frontend door": want its name, letters, digits and -_.: alone`},
		{"two lines", Options{Socket: "/s", Backend: "shop\n"}, `backend "shop\n": want its name, letters, digits and -_.: alone`},
		{"unknown mode", Options{Socket: "/s", Backend: "shop", Mode: "off"}, `mode "off": want drain, maint or weight`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.options)
			want := test.error
			if want != "" {
				want = "checking the servers of HAProxy to churn: " + want
			}
			if message(err) != want {
				t.Errorf("got %q, want %q", message(err), want)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
		whole      bool
	}{
		{"nothing", "", nil, true},
		{"silent", "\n", []string{""}, true},
		{"some", "\nNo such server.\n\n\na\nb\n\n", []string{"", "No such server.", "", "a\nb"}, true},
		{"torn in an answer", "a\n\nb\n", []string{"a"}, false},
		{"torn in a line", "a\n\nb", []string{"a"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, whole := split(test.text)
			if !slices.Equal(got, test.want) || whole != test.whole {
				t.Errorf("got %q, %v; want %q, %v", got, whole, test.want, test.whole)
			}
		})
	}
}

// TestGarbage asks what is no HAProxy, or one that does not say all.
func TestGarbage(t *testing.T) {
	tests := []struct {
		name, text string
		error      string // its end
	}{
		{"nothing", "", `want the answers of a stats socket of HAProxy to 3 commands, got ""`},
		{"HTTP", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", `want the answers of a stats socket of HAProxy to 3 commands, got "HTTP/1.1 400 Bad Request Connection: close"`},
		{"torn", healthy[:len(healthy)-40], `want the answers of a stats socket of HAProxy to 3 commands, got "Name: HAProxy Version: 2.6.12 Pid: 17`},
		{"without an end", healthy[:len(healthy)-1], `want the answers of a stats socket of HAProxy to 3 commands, got "Name: HAProxy Version: 2.6.12 Pid: 17`},
		{"too much", healthy + "\n", `want the answers of a stats socket of HAProxy to 3 commands, got "Name: HAProxy Version: 2.6.12 Pid: 17`},
		{"unknown commands", "Unknown command.\n\nUnknown command.\n\nUnknown command.\n\n", `reading the answer to "show info": field Pid: strconv.Atoi: parsing "": invalid syntax; got "Unknown command."`},
		{"bytes", "\xff\xfe\x00\n\n\n\n", `reading the answer to "show info": field Pid: strconv.Atoi: parsing "": invalid syntax; got "�` + `\x00"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := listen(t, func(string) (string, bool) { return test.text, false })
			o, err := f.workload(t).Observe(t.Context())
			if reasonOf(err) != churn.Other || !strings.Contains(err.Error(), test.error) || o != (churn.Observation{}) {
				t.Errorf("observed %+v, %v\nwant %s", o, err, test.error)
			}
		})
	}
}

func TestTooMuchIsNotKept(t *testing.T) {
	f := listen(t, func(string) (string, bool) { return strings.Repeat("x", mostAnswer+1), true })
	_, err := f.workload(t).Observe(t.Context())
	if reasonOf(err) != churn.Other || !strings.HasSuffix(err.Error(), "the answer has more than 8388608 bytes") {
		t.Errorf("got %v", err)
	}
}

// TestSilence asks somebody who does not answer, or only in part.
func TestSilence(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "a part": healthy[:100], "all but the end": healthy} {
		t.Run(name, func(t *testing.T) {
			f := listen(t, func(string) (string, bool) { return text, true })
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(5*time.Millisecond, func() { cancel(nil) })
			begun := time.Now()
			_, err := f.workload(t).Observe(ctx)
			if reasonOf(err) != churn.Unreachable || !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), "no answer: context canceled") {
				t.Errorf("after %v got %v", time.Since(begun), err)
			}
		})
	}
}

// TestHandOver asks the process that a reload replaces, and then the new one.
func TestHandOver(t *testing.T) {
	asked := 0
	f := listen(t, func(string) (string, bool) {
		if asked++; asked < 3 {
			return strings.Replace(healthy, "Stopping: 0", "Stopping: 1", 1), false
		}
		return healthy, false
	})
	o, err := f.workload(t).Observe(t.Context())
	if want := (churn.Observation{Desired: 2, Ready: 2, Endpoints: 2}); err != nil || o != want || asked != 3 {
		t.Errorf("observed %+v, %v after %d questions; want %+v after 3", o, err, asked, want)
	}
}

func TestItOnlyStops(t *testing.T) {
	f := listen(t, func(string) (string, bool) {
		return strings.Replace(healthy, "Stopping: 0", "Stopping: 1", 1), false
	})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(5*time.Millisecond, cancel)
	_, err := f.workload(t).Observe(ctx)
	if reasonOf(err) != churn.Unreachable || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWhyThereIsNoConnection(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name   string
		ctx    context.Context
		err    error
		reason churn.Reason
		error  string
	}{
		{"no right", t.Context(), &os.SyscallError{Syscall: "connect", Err: syscall.EACCES}, churn.Forbidden,
			"forbidden: connect: permission denied; let the user of the daemon read and write the socket, by user, group and mode on its stats socket line"},
		{"no socket", t.Context(), fs.ErrNotExist, churn.Unreachable,
			"unreachable: file does not exist; either HAProxy does not run, or it has no stats socket there"},
		{"refused", t.Context(), syscall.ECONNREFUSED, churn.Unreachable, "unreachable: connection refused"},
		{"too late", ended, syscall.EACCES, churn.Unreachable, "unreachable: context canceled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := unconnected(test.ctx, test.err); reasonOf(err) != test.reason || message(err) != test.error {
				t.Errorf("got %v, want %s", err, test.error)
			}
		})
	}
}

// TestVerdicts has commands that were carried out, refused, or some of each.
func TestVerdicts(t *testing.T) {
	commands := []string{"set server b/s0 state drain", "set server b/s1 state drain"}
	tests := []struct {
		name    string
		answers []string
		reason  churn.Reason
		error   string
	}{
		{"all", []string{"", ""}, churn.NoReason, ""},
		{"not allowed", []string{"Permission denied", "Permission denied"}, churn.Forbidden,
			`forbidden: 2 of 2 commands were not carried out: "set server b/s0 state drain" was answered with "Permission denied"; write level admin on its stats socket line`},
		{"all gone", []string{"No such server.", "No such server."}, churn.Conflict,
			`conflict: 2 of 2 commands were not carried out: "set server b/s0 state drain" was answered with "No such server."`},
		{"one gone", []string{"", "No such server."}, churn.Other,
			`error: 1 of 2 commands were not carried out: "set server b/s1 state drain" was answered with "No such server."`},
		{"one gone, one not allowed", []string{"No such server.", "Permission denied"}, churn.Forbidden,
			`forbidden: 2 of 2 commands were not carried out: "set server b/s1 state drain" was answered with "Permission denied"; write level admin on its stats socket line`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := verdict(commands, test.answers); reasonOf(err) != test.reason || message(err) != test.error {
				t.Errorf("got %v, want %s", err, test.error)
			}
		})
	}
}

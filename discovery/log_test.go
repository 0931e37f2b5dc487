package discovery

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{"plain", "dial tcp 10.0.0.1:80: connection refused", "dial tcp 10.0.0.1:80: connection refused"},
		{"user info and query", `Get "http://u:planted@h:80/a?key=planted&b": EOF`, `Get "http://<secret>@h:80/a?<secret>": EOF`},
		{"twice", `http://planted@h https://planted@i/?planted`, `http://<secret>@h https://<secret>@i/?<secret>`},
		{"a path", `Get "/a?key=planted": stopped`, `Get "/a?<secret>": stopped`},
		{"an address with @ in the path", "http://h/@b", "http://h/@b"},
	} {
		if got := withoutSecrets(row.text); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}

// TestComplaints logs the same again and again, as a mechanism does that fails.
func TestComplaints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &logged{}
		c := newComplaints(slog.New(slog.NewTextHandler(log, nil)).With("discovery", "d"))
		l := slog.New(c).With("url", "http://planted@h/").WithGroup("g")
		if text, at := c.kept.lastError(); text != "" || !at.IsZero() {
			t.Errorf("last error %q", text)
		}
		began := time.Now()
		for range 21 { // 20 minutes
			l.Error("It failed", "err", errors.New("http://h/?planted"))
			l.Info("It goes on")
			time.Sleep(time.Minute)
		}
		text := log.String()
		// at 0, 10 and 20 minutes
		if n := strings.Count(text, "It failed"); n != 3 {
			t.Errorf("%d lines of 21, want 3", n)
		}
		if n := strings.Count(text, "It goes on"); n != 21 {
			t.Errorf("%d lines that are no complaint, want all 21", n)
		}
		if strings.Contains(text, "planted") || !strings.Contains(text, "discovery=d") || !strings.Contains(text, `g.err=http://h/?<secret>`) {
			t.Errorf("log:\n%s", text)
		}
		if last, at := c.kept.lastError(); last != "It failed err=http://h/?<secret>" || at.Sub(began) != 20*time.Minute {
			t.Errorf("last error %q at %v", last, at)
		}
		for i := range 3 * mostLines {
			l.Warn("It failed", "n", i)
		}
		if n := len(c.kept.logged); n > mostLines {
			t.Errorf("%d lines are remembered", n)
		}
	})
}

// TestWatchFailures logs as the client library of Kubernetes does.
func TestWatchFailures(t *testing.T) {
	t.Parallel()
	log, others := &logged{}, &logged{}
	h := WatchFailures(slog.New(slog.NewTextHandler(log, nil)), slog.NewTextHandler(others, &slog.HandlerOptions{Level: slog.LevelWarn}))
	l := slog.New(h).With("logger", "x").WithGroup("g")
	for range 3 {
		l.Error("Failed to watch", "type", "*v1.Ingress", "err", "forbidden")
	}
	l.Error("Something else", "err", "wrong")
	l.Info("Starting reflector")
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `level=WARN msg="A source cannot watch objects of a cluster" logger=x g.type=*v1.Ingress g.err=forbidden`) {
		t.Errorf("log:\n%s", text)
	}
	if text := others.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "Something else") {
		t.Errorf("log of others:\n%s", text)
	}
}

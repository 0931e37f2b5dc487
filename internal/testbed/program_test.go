package testbed

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLaunch(t *testing.T) {
	dir := t.TempDir()
	output := filepath.Join(dir, "output")
	p, err := Launch(ProgramOptions{
		Path: Program(t, "sh"), Args: []string{"-c", `echo "$PLACE $PWD"; while :; do sleep 0.01; echo on; done`},
		Environment: []string{"PLACE=here"}, Folder: dir, Output: output,
	})
	if err != nil {
		t.Fatal(err)
	}
	WaitFor(t, "the program to print", startLimit, func() bool { return strings.Contains(tail(output, 1000), "on\n") })
	if got, want := tail(output, 10_000), "here "+dir+"\n"; !strings.HasPrefix(got, want) {
		t.Errorf("it printed %q, want %q first", got, want)
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	// The shell may be in the middle of a line when it is stopped, not later.
	var before string
	WaitFor(t, "the program to stand still", startLimit, func() bool {
		before = tail(output, 10_000)
		time.Sleep(50 * time.Millisecond)
		return tail(output, 10_000) == before
	})
	if !p.Running() {
		t.Error("a paused program is over")
	}
	if err := p.Continue(); err != nil {
		t.Fatal(err)
	}
	WaitFor(t, "the program to go on", startLimit, func() bool { return tail(output, 100_000) != before })
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil || p.Running() {
		t.Errorf("killing a paused program = %v, running %t, want no error and no program", err, p.Running())
	}
	<-p.Over()
	if err := p.Stop(time.Second); err != nil {
		t.Errorf("stopping what is over = %v, want no error", err)
	}
}

func TestBackendsChange(t *testing.T) {
	far := HAProxy(t, HAProxyOptions{Frontend: "\thttp-after-response set-header X-Backend far\n"})
	near := HAProxy(t, HAProxyOptions{Frontend: "\thttp-after-response set-header X-Backend near\n"})
	h := HAProxy(t, HAProxyOptions{Backends: []string{far.HTTP}, Slots: 2})
	n := NGINX(t, NGINXOptions{Backends: []string{far.HTTP}})
	client := newClient(t, h.CA)
	who := func(address string) string {
		resp, err := client.Get("http://" + address + "/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.Header.Get("X-Backend")
	}
	if got := []string{who(h.HTTP), who(n.HTTP)}; !slices.Equal(got, []string{"far", "far"}) {
		t.Fatalf("answers came from %q, want far", got)
	}
	certificate := read(t, h.pair) + read(t, n.certificate)
	h.SetBackends([]string{near.HTTP})
	h.Reload()
	n.SetBackends([]string{near.HTTP})
	n.Reload()
	if got := []string{who(h.HTTP), who(n.HTTP)}; !slices.Equal(got, []string{"near", "near"}) {
		t.Errorf("answers came from %q, want near", got)
	}
	if read(t, h.pair)+read(t, n.certificate) != certificate {
		t.Error("other backends changed the certificates")
	}
	ip, port, _ := strings.Cut(far.HTTP, ":")
	for _, command := range []string{
		"set server servers/slot2 addr " + ip + " port " + port, "set server servers/slot2 state ready", "set server servers/s0 state maint",
	} {
		h.Command(command)
	}
	if got := who(h.HTTP); got != "far" {
		t.Errorf("the answer came from %q, want far, which a slot was given", got)
	}
	if _, err := (&HAProxyServer{sockets: t.TempDir()}).Ask("show info"); err == nil {
		t.Error("asking a HAProxy that is not there succeeded")
	}
}

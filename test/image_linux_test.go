package test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// image builds the image, or skips the test where nobody could: it takes root,
// and namespaces, which a container does not get by itself. In CI that is a
// failure, as a missing program is everywhere.
func image(t *testing.T, o testbed.ImageOptions) *testbed.Image {
	t.Helper()
	cannot := t.Skipf
	if os.Getenv("CI") != "" {
		cannot = t.Fatalf
	}
	if os.Getuid() != 0 {
		cannot("building an image without a daemon needs root")
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "true").CombinedOutput(); err != nil {
		cannot("running an image needs namespaces: %v: %s", err, out)
	}
	return testbed.BuildImage(t, o)
}

// TestImage builds the image with both stages of the Dockerfile and runs it as
// OpenShift does.
func TestImage(t *testing.T) {
	checkLeaks(t)
	d := startNGINX(t, 0, true)
	authority, err := os.ReadFile(d.caFile)
	if err != nil {
		t.Fatal(err)
	}
	const version, revision = "v1.2.3-test", "0123456789abcdef0123456789abcdef01234567"
	i := image(t, testbed.ImageOptions{Version: version, Revision: revision, Authorities: string(authority)})
	const user = 1000730000 // of a namespace's range in OpenShift

	t.Run("configuration", func(t *testing.T) {
		want := testbed.ImageConfig{
			User:         "65532:65532",
			ExposedPorts: map[string]struct{}{"10115/tcp": {}},
			Env:          i.Config.Env, // PATH, by Buildah
			Entrypoint:   []string{"/steadyprobe"},
			Cmd:          []string{"--config.file=/etc/steadyprobe/steadyprobe.yml"},
			WorkingDir:   "/etc/steadyprobe",
			Labels: map[string]string{
				"io.buildah.version":                   i.Config.Labels["io.buildah.version"],
				"org.opencontainers.image.title":       "steadyprobe",
				"org.opencontainers.image.description": "Constant-rate probe of load balancers and ingresses for Prometheus",
				"org.opencontainers.image.source":      "https://github.com/steadyprobe/steadyprobe",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     version,
				"org.opencontainers.image.revision":    revision,
			},
		}
		if diff := cmp.Diff(want, i.Config); diff != "" {
			t.Errorf("configuration (- want, + got):\n%s", diff)
		}
	})

	t.Run("files", func(t *testing.T) {
		var names []string
		for _, file := range i.Files() {
			mode, name, _ := strings.Cut(file, " ")
			names = append(names, name)
			// Others read it, nobody writes it, and only the program is run.
			program := name == "/steadyprobe"
			if regular := mode[0] == '-'; mode[7] != 'r' || mode[8] != '-' || (mode[9] == 'x') == (regular && !program) {
				t.Errorf("mode of %s", file)
			}
		}
		want := []string{
			"/LICENSE", "/etc", "/etc/ssl", "/etc/ssl/certs", "/etc/ssl/certs/ca-certificates.crt", "/etc/steadyprobe", "/steadyprobe",
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("files (- want, + got):\n%s", diff)
		}
	})

	t.Run("version", func(t *testing.T) {
		c := i.Start(user, "", "--version")
		if code := c.Wait(); code != 0 || !strings.Contains(c.Output(), version) || !strings.Contains(c.Output(), revision) {
			t.Errorf("exit code %d and %q, want 0, %s and %s", code, c.Output(), version, revision)
		}
	})

	t.Run("no configuration", func(t *testing.T) {
		c := i.Start(user, "")
		const want = "loading --config.file: /etc/steadyprobe/steadyprobe.yml: does not exist; name a readable YAML file"
		if code := c.Wait(); code != 1 || !strings.Contains(c.Output(), want) {
			t.Errorf("exit code %d and %q, want 1 and %q", code, c.Output(), want)
		}
	})

	t.Run("demo", func(t *testing.T) {
		c := i.Start(user, "", "demo", "--web.listen-address=127.0.0.1:0", "--log.level=info")
		daemonOf(t, c)
		if code := c.Stop(); code != 0 {
			t.Errorf("exit code %d after SIGTERM, want 0: %s", code, c.Output())
		}
	})

	t.Run("daemon", func(t *testing.T) { runImage(t, i, user, d) })
}

// runImage runs the daemon of the image, which finds its configuration although
// flags take the place of those of the image, and verifies the door by the
// authorities of the image.
func runImage(t *testing.T, i *testbed.Image, user int, d *realDoor) {
	folder := t.TempDir()
	configuration := fmt.Sprintf("targets: [{name: door, url: https://%s/, rate: 200}]\n", d.https)
	if err := os.WriteFile(filepath.Join(folder, "steadyprobe.yml"), []byte(configuration), 0o644); err != nil {
		t.Fatal(err)
	}
	c := i.Start(user, folder, "--web.listen-address=127.0.0.1:0")
	daemon := daemonOf(t, c)
	testbed.WaitFor(t, "the daemon to probe", 30*time.Second, func() bool { return d.counts().requests >= 50 })
	metrics, err := daemon.scrape()
	if err != nil {
		t.Fatal(err)
	}
	if n := metrics.sum("steadyprobe_requests_total"); n < 40 { // some of the 50 are in flight
		t.Errorf("%v requests, want those of the door", n)
	}
	if n := metrics.sum("steadyprobe_request_failures_total"); n != 0 {
		t.Errorf("%v requests failed: %s", n, c.Output())
	}
	if n := metrics.sum("steadyprobe_tls_certificate_verified", "target", "door"); n != 1 {
		t.Errorf("the door's certificate is verified: %v, want 1", n)
	}
	if n := metrics.sum("process_open_fds"); n == 0 {
		t.Error("nothing is known of the process: there is no /proc")
	}
	if code := c.Stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0: %s", code, c.Output())
	}
}

// daemonOf waits until the daemon in a container is ready.
func daemonOf(t *testing.T, c *testbed.Container) *daemon {
	t.Helper()
	var listening []string
	testbed.WaitFor(t, "the daemon to listen", 30*time.Second, func() bool {
		listening = listeningOn.FindStringSubmatch(c.Output())
		return listening != nil || !c.Running()
	})
	if listening == nil {
		t.Fatalf("it has ended: %s", c.Output())
	}
	d := &daemon{t: t, address: listening[1], client: &http.Client{Timeout: 30 * time.Second}}
	t.Cleanup(d.client.CloseIdleConnections)
	d.waitReady()
	return d
}

var listeningOn = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

package testbed

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Image is an image built by the project's Dockerfile, in a storage that ends
// with the test. It needs Buildah and root, but no daemon and no registry.
type Image struct {
	Config ImageConfig

	t       Owner
	buildah []string // the program and the flags of every call
	env     []string // its environment
	root    string   // the image's files, on the disk
}

// ImageConfig is what an image tells the runtime, in the words of the OCI image
// specification, "Image Configuration".
type ImageConfig struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Cmd          []string
	WorkingDir   string
	Labels       map[string]string
	Volumes      map[string]struct{}
}

// ImageOptions says how an image is built.
type ImageOptions struct {
	Version, Revision string // the build arguments of these names
	Authorities       string // the certificates (PEM) of the image that compiles
}

// standIn is the image that compiles, in place of golang from Docker Hub, which
// the test cannot count on: an empty one into which this machine's own system
// and Go are mounted. It compiles offline, from this machine's modules.
const standIn = `FROM scratch
COPY . /
ENV HOME=/root PATH=/goroot/bin:/usr/bin:/bin GOMODCACHE=/modules GOCACHE=/cache GOTOOLCHAIN=local GOPROXY=off GOFLAGS=
`

// BuildImage builds the image of the Dockerfile as it is, both stages.
func BuildImage(t Owner, o ImageOptions) *Image {
	t.Helper()
	dir := t.TempDir()
	i := &Image{t: t, env: append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "TMPDIR="+dir)}
	i.buildah = []string{
		Program(t, "buildah"), "--storage-driver", "vfs",
		"--root", filepath.Join(dir, "storage"), "--runroot", filepath.Join(dir, "run"),
	}
	const base = "localhost/go-of-this-machine"
	tree, volumes := standInTree(t, o.Authorities)
	file := filepath.Join(dir, "Dockerfile")
	if err := os.WriteFile(file, []byte(standIn), 0o600); err != nil {
		t.Fatalf("writing a Dockerfile: %v", err)
	}
	i.run("bud", "--isolation", "chroot", "--tag", base, "--file", file, tree)
	args := []string{
		"bud", "--isolation", "chroot", "--pull-never", "--tag", "steadyprobe",
		"--build-arg", "GO_IMAGE=" + base, "--build-arg", "VERSION=" + o.Version, "--build-arg", "REVISION=" + o.Revision,
	}
	i.run(append(append(args, volumes...), Root(t))...)
	var inspected struct {
		OCIv1 struct {
			Config ImageConfig `json:"config"`
		}
	}
	if err := json.Unmarshal([]byte(i.run("inspect", "--type", "image", "steadyprobe")), &inspected); err != nil {
		t.Fatalf("reading the configuration of the image: %v", err)
	}
	i.Config = inspected.OCIv1.Config
	container := strings.TrimSpace(i.run("from", "--pull-never", "steadyprobe"))
	i.root = strings.TrimSpace(i.run("mount", container))
	return i
}

// standInTree makes the files of the image that compiles, and returns the flags
// that mount the rest.
func standInTree(t Owner, authorities string) (tree string, volumes []string) {
	t.Helper()
	tree = t.TempDir()
	folders := []string{"usr", "goroot", "modules", "cache", "tmp", "root", "etc/ssl/certs"}
	mount := func(from, to, how string) { volumes = append(volumes, "--volume", from+":"+to+how) }
	mount("/usr", "/usr", ":ro")
	mount(goEnv(t, "GOROOT"), "/goroot", ":ro")
	mount(goEnv(t, "GOMODCACHE"), "/modules", ":ro")
	mount(goEnv(t, "GOCACHE"), "/cache", "") // or every test compiled the standard library
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		// Links into /usr on most systems.
		if to, err := os.Readlink("/" + name); err == nil {
			if err := os.Symlink(to, filepath.Join(tree, name)); err != nil {
				t.Fatalf("making the image that compiles: %v", err)
			}
		} else if _, err := os.Stat("/" + name); err == nil {
			folders = append(folders, name)
			mount("/"+name, "/"+name, ":ro")
		}
	}
	for _, name := range folders {
		if err := os.MkdirAll(filepath.Join(tree, name), 0o755); err != nil {
			t.Fatalf("making the image that compiles: %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(tree, "etc/ssl/certs/ca-certificates.crt"), []byte(authorities), 0o644); err != nil {
		t.Fatalf("making the image that compiles: %v", err)
	}
	return tree, volumes
}

// goEnv returns a setting of Go.
func goEnv(t Owner, name string) string {
	t.Helper()
	value, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatalf("asking go for %s: %v", name, err)
	}
	return strings.TrimSpace(string(value))
}

// run runs Buildah and returns what it printed on its standard output.
func (i *Image) run(args ...string) string {
	i.t.Helper()
	cmd := exec.Command(i.buildah[0], append(i.buildah[1:len(i.buildah):len(i.buildah)], args...)...)
	cmd.Env = i.env
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		i.t.Fatalf("running buildah %s: %v; it printed:\n%s%s", args[0], err, out, complaint.String())
	}
	return string(out)
}

// Files returns every file and folder of the image in lexical order, as
// "-rwxr-xr-x /path".
func (i *Image) Files() (files []string) {
	i.t.Helper()
	err := filepath.WalkDir(i.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && path != i.root {
			files = append(files, fmt.Sprintf("%v %s", info.Mode(), strings.TrimPrefix(path, i.root)))
		}
		return err
	})
	if err != nil {
		i.t.Fatalf("listing the files of the image: %v", err)
	}
	return files
}

package testbed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Browser is a headless Chromium with one tab and a profile of its own, which
// remembers what went wrong in its pages and whatever they asked for.
//
// It reaches loopback only: every other name and address is "not found" to it,
// so that what a page asks of a stranger is seen and answered by nobody.
//
// Errors and Requests may be called at any time, all else by the test's own
// goroutine.
type Browser struct {
	t   Owner
	dir string          // profile, home and temporary files
	tab context.Context // carries the tab, ends with the browser

	mu       sync.Mutex
	errors   []string
	requests []string
}

// Chromium starts a browser. The test's cleanup closes it.
func Chromium(t Owner) *Browser {
	t.Helper()
	b := &Browser{t: t, dir: shortFolder(t)} // of a socket among others, whose path may have 107 bytes
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatalf("opening the output of the browser: %v", err)
	}
	allocator, release := chromedp.NewExecAllocator(context.Background(), b.flags(browserProgram(t), output)...)
	tab, closeTab := chromedp.NewContext(allocator,
		chromedp.WithListener(b.listen),
		chromedp.WithErrorf(func(format string, args ...any) { b.note("driving the browser: " + fmt.Sprintf(format, args...)) }),
	)
	b.tab = tab
	t.Cleanup(func() {
		b.close(closeTab, release)
		_ = output.Close() // nobody writes any more
		if t.Failed() {
			t.Logf("end of what the browser printed:\n%s", tail(output.Name(), 4096))
		}
	})
	// The browser lives as long as the context of its first command: that one
	// cannot have a limit of its own.
	late := time.AfterFunc(startLimit, closeTab)
	_, err = chromedp.Call(tab, network.Enable, network.EnableParams{})
	late.Stop()
	if err != nil {
		t.Fatalf("starting the browser: %v", err)
	}
	return b
}

// browserProgram returns the path of the first browser that is installed, under
// any of the names that its packages give it.
func browserProgram(t Owner) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return Program(t, "chromium") // says how to install it
}

// flags returns how the browser is started. Its home is its own folder: the
// user's may be read-only, and is none of its business.
func (b *Browser) flags(path string, output *os.File) []chromedp.ExecAllocatorOption {
	env := []string{"TMPDIR=" + b.dir}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
		env = append(env, name+"="+b.dir)
	}
	return append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path),
		chromedp.UserDataDir(filepath.Join(b.dir, "profile")),
		chromedp.NoSandbox, // it cannot be had as root; all pages are ours
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-crash-reporter", true),
		chromedp.Flag("no-proxy-server", true), // whatever the environment says
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE [::1], EXCLUDE localhost"),
		chromedp.Flag("hide-scrollbars", true), // in pictures
		chromedp.Env(env...),
		chromedp.CombinedOutput(output),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) { cmd.SysProcAttr = ownGroup() }),
	)
}

// close ends the browser as a user does. What has not ended in time is killed
// with all that it started, and is an error.
func (b *Browser) close(closeTab, release context.CancelFunc) {
	b.t.Helper()
	var process *os.Process
	if c := chromedp.FromContext(b.tab); c.Browser != nil {
		process = c.Browser.Process()
	}
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		err = chromedp.Cancel(b.tab)
	}()
	select {
	case <-over:
	case <-time.After(stopLimit):
		b.t.Errorf("closing the browser: it did not end within %v and was killed", stopLimit)
		if process != nil {
			_ = killGroup(process) // it may have ended meanwhile
		}
		<-over
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		b.t.Errorf("closing the browser: %v", err)
	}
	closeTab()
	release()
	if process == nil {
		return // it has never started
	}
	// Its helpers end by themselves a little later, and still write to the
	// folder that is about to be removed.
	_ = killGroup(process) // no such group once they have
	if err := await("the browser's folder to be removed", stopLimit, func() bool { return os.RemoveAll(b.dir) == nil }); err != nil {
		b.t.Error(err)
	}
}

// listen notes what the tab tells. It must not block.
func (b *Browser) listen(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		b.requests = append(b.requests, e.Request.URL)
		b.mu.Unlock()
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			b.note("console: " + said(e.Args))
		}
	case *runtime.EventExceptionThrown:
		b.note("exception: " + described(e.ExceptionDetails))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.note(fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

func (b *Browser) note(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = append(b.errors, text)
}

// said returns the arguments of a call of the console as one text.
func said(args []*runtime.RemoteObject) string {
	texts := make([]string, len(args))
	for i, arg := range args {
		var text string
		if json.Unmarshal(arg.Value, &text) != nil {
			text = cmp.Or(arg.Description, string(arg.Value)) // an Error has no value
		}
		texts[i] = text
	}
	return strings.Join(texts, " ")
}

// described returns the text of an exception, with its stack if it has one.
func described(e *runtime.ExceptionDetails) string {
	if e.Exception == nil {
		return e.Text
	}
	return e.Text + " " + cmp.Or(e.Exception.Description, string(e.Exception.Value))
}

// Errors returns what went wrong in all pages so far, in order: calls of
// console.error and console.assert, exceptions that nobody caught, and what the
// browser itself complained of, such as files that could not be loaded and
// violations of the Content-Security-Policy.
func (b *Browser) Errors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.errors)
}

// Requests returns the URLs of all that the pages asked for so far, in order,
// whether or not it came: the pages themselves, what they consist of, what their
// scripts fetched.
func (b *Browser) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

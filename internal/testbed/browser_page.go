package testbed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Do runs actions of chromedp in the tab, one after the other, all within 30 s.
// The test fails when one does.
func (b *Browser) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.tab, startLimit)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("driving the browser: %v", err)
	}
}

// Open goes to a page and returns when all of it is loaded. A page that answers
// with an error status fails the test.
func (b *Browser) Open(url string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.tab, startLimit)
	defer cancel()
	answer, err := chromedp.Run(ctx, chromedp.NavigateResponse(url))
	if err != nil {
		b.t.Fatalf("opening %q in the browser: %v", url, err)
	}
	if answer.Status >= 400 {
		b.t.Fatalf("opening %q in the browser: status %d", url, answer.Status)
	}
}

// Evaluate evaluates a JavaScript expression in the page, waits for a promise,
// and stores the value in what result points to, as encoding/json does. It works
// also where the scripts of pages may not run.
func (b *Browser) Evaluate(expression string, result any) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.tab, startLimit)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise))
	if err == nil {
		err = json.Unmarshal(value, result)
	}
	if err != nil {
		b.t.Fatalf("evaluating %q in the browser: %v", expression, err)
	}
}

// Text returns the text of the first element that a CSS selector finds, as a
// reader sees it. The test fails when there is none.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	var text *string
	b.Evaluate(fmt.Sprintf("document.querySelector(%q)?.innerText ?? null", selector), &text)
	if text == nil {
		b.t.Fatalf("finding %q in the page: there is none", selector)
	}
	return *text
}

// Scripts says whether the pages opened from now on may run scripts. They may
// when the browser starts.
func (b *Browser) Scripts(on bool) {
	b.t.Helper()
	send(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
}

// Show sets the width and height of the window in CSS pixels, and whether its
// user prefers dark colours.
func (b *Browser) Show(width, height int, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	send(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	b.Do(chromedp.EmulateViewport(int64(width), int64(height)))
}

// wholePage is the height of the window, in CSS pixels, for a picture of a whole
// page.
const wholePage = 800

// Screenshot shows the page as Show does and writes a picture of it to a PNG
// file, whose folder it makes. A height of 0 is that of the whole page.
func (b *Browser) Screenshot(width, height int, dark bool, path string) {
	b.t.Helper()
	b.Show(width, cmp.Or(height, wholePage), dark)
	picture := chromedp.CaptureScreenshot()
	if height == 0 {
		picture = chromedp.FullScreenshot(100) // lossless
	}
	ctx, cancel := context.WithTimeout(b.tab, startLimit)
	defer cancel()
	png, err := chromedp.Run(ctx, picture)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, png, 0o644)
	}
	if err != nil {
		b.t.Fatalf("making the screenshot %q: %v", path, err)
	}
}

// send runs a command of the protocol in the tab.
func send[P, R any](b *Browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.tab, startLimit)
	defer cancel()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		b.t.Fatalf("driving the browser: %v", err)
	}
}

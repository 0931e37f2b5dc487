package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/steadyprobe/steadyprobe/app"
	"github.com/steadyprobe/steadyprobe/internal/testbed"
	"github.com/steadyprobe/steadyprobe/web"
)

// picturesVariable names the folder that the pictures of the pages of the
// documentation go to: "make pictures" sets it. Without it they are the test's
// own output, see go test -artifacts.
const picturesVariable = "STEADYPROBE_PICTURES"

// TestPage looks at the demo as a newcomer does, in a real browser.
func TestPage(t *testing.T) {
	checkLeaks(t)
	address := startDemo(t)
	pictures := os.Getenv(picturesVariable)
	if pictures == "" {
		pictures = t.ArtifactDir()
	} else {
		time.Sleep(100 * time.Second) // two minutes show more, and nobody asks meanwhile
	}
	client := &http.Client{Timeout: 30 * time.Second}
	t.Cleanup(client.CloseIdleConnections)
	d := &daemon{t: t, address: address, client: client}
	testbed.WaitFor(t, "a step down that has settled", 3*time.Minute, func() bool {
		m, err := d.scrape()
		return err == nil && m.sum("steadyprobe_churn_steps_total", "direction", "down") >= 1 &&
			m.sum("steadyprobe_churn_phase", "phase", "settled") == 1
	})
	b := testbed.Chromium(t)
	b.Show(1280, 900, false)
	base := "http://" + address + "/"
	b.Open(base)
	p := &openPage{t: t, browser: b, base: base, client: client}

	t.Run("figures", p.figures)
	t.Run("findings", p.findings)
	t.Run("plots", p.plots)
	t.Run("structure", p.structure)
	t.Run("refresh", p.refresh)
	t.Run("phone", p.phone)
	for name, of := range map[string]struct {
		width, height int
		dark          bool
	}{
		"page.png": {1280, 0, false}, "page-dark.png": {1280, 0, true}, "phone.png": {390, 0, false},
	} {
		b.Open(base)
		b.Screenshot(of.width, of.height, of.dark, filepath.Join(pictures, name))
	}
	t.Run("without scripts", p.withoutScripts)

	if errs := b.Errors(); len(errs) > 0 {
		t.Errorf("the browser complained:\n%s", strings.Join(errs, "\n"))
	}
	for _, r := range b.Requests() {
		if u, err := url.Parse(r); err != nil || u.Host != address {
			t.Errorf("the page asked for %s, want nothing from anywhere else", r)
		}
	}
}

// startDemo runs the demo until the test ends and returns where it listens.
func startDemo(t *testing.T) (address string) {
	t.Helper()
	addresses, none, off := []string{"127.0.0.1:0"}, "", false
	listening := make(chan string, 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	o := app.DemoOptions{Out: io.Discard, Options: app.Options{
		Web:     &toolkit.FlagConfig{WebListenAddresses: &addresses, WebSystemdSocket: &off, WebConfigFile: &none},
		Logger:  slog.New(slog.DiscardHandler),
		Version: "1.2.3",
		Listening: func(main []net.Addr, _ net.Addr) {
			listening <- main[0].String()
		},
	}}
	go func() { ended <- app.Demo(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the demo ended with %v", err)
		}
	})
	select {
	case address = <-listening:
	case err := <-ended:
		ended <- err
		t.Fatalf("the demo did not start: %v", err)
	}
	return address
}

// openPage is the page in a browser, and the API beside it.
type openPage struct {
	t       *testing.T
	browser *testbed.Browser
	base    string
	client  *http.Client
}

// data decodes what the API answers.
func (p *openPage) data(t *testing.T, path string, into any) {
	t.Helper()
	answer, err := p.client.Get(p.base + "api/v1/" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	envelope := struct{ Data any }{into}
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the API answered %s with status %d: %v", path, answer.StatusCode, err)
	}
}

// figuresOf returns the text of the cells of a target's rows by their label.
func (p *openPage) figuresOf(name string) map[string]string {
	var cells map[string]string
	p.browser.Evaluate(fmt.Sprintf(`(() => {
		const cells = {};
		for (const row of document.querySelectorAll("main tr")) {
			const head = row.querySelector("th[scope=row]");
			const name = head?.querySelector(".name") ?? head;
			if (name?.textContent.trim() !== %q) continue;
			for (const cell of row.querySelectorAll("td")) cells[cell.dataset.label] = cell.textContent.trim();
		}
		return cells;
	})()`, name), &cells)
	return cells
}

// figures asks the API before and after the page was made: what counts up lies
// between.
func (p *openPage) figures(t *testing.T) {
	var before, after []web.Target
	p.data(t, "targets", &before)
	// A page serves all who ask within a moment.
	testbed.WaitFor(t, "a page that is newer", 30*time.Second, func() bool {
		p.browser.Open(p.base)
		return number(p.figuresOf(before[len(before)-1].Name)["Scheduled"]) >= before[len(before)-1].Scheduled
	})
	p.data(t, "targets", &after)
	if len(before) != 3 || len(after) != 3 {
		t.Fatalf("the API has %d and %d targets, want 3", len(before), len(after))
	}
	for i, one := range before {
		cells := p.figuresOf(one.Name)
		for label, between := range map[string][2]uint64{
			"Scheduled":       {one.Scheduled, after[i].Scheduled},
			"Completed":       {one.Completed, after[i].Completed},
			"Failures, total": {one.Failed, after[i].Failed},
			"Opened":          {one.Connections.Opened, after[i].Connections.Opened},
		} {
			if got := number(cells[label]); got < between[0] || got > between[1] {
				t.Errorf("%s: %s is %q on the page, %d and then %d in the API", one.Name, label, cells[label], between[0], between[1])
			}
		}
		if got, want := cells["Requests/s set"], "200"; got != want {
			t.Errorf("%s: the rate is %q, want %s", one.Name, got, want)
		}
		if got := cells["Limit"]; got != fmt.Sprint(one.Connections.Limit) {
			t.Errorf("%s: the limit of connections is %q, want %d", one.Name, got, one.Connections.Limit)
		}
	}
}

// number reads a number as the page writes it, 0 where it is none.
func number(text string) uint64 {
	n, err := strconv.ParseUint(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// findings reads what a person on call reads first.
func (p *openPage) findings(t *testing.T) {
	text := p.browser.Text("section.out")
	if !strings.Contains(text, "reloading-http") || !strings.Contains(text, "failed while scaling down") {
		t.Errorf("what stands out does not say which door is bad and when:\n%s", text)
	}
	if verdict := p.browser.Text("#verdict"); !strings.Contains(verdict, "1 degraded, 2 up") {
		t.Errorf("the verdict is %q", verdict)
	}
}

func (p *openPage) plots(t *testing.T) {
	for _, dark := range []bool{false, true} {
		p.browser.Show(1280, 900, dark)
		p.browser.Open(p.base)
		var images []struct {
			Source string
			Alt    string
			Wide   int
		}
		p.browser.Evaluate(`(async () => {
			const images = [...document.querySelectorAll("main img")];
			await Promise.all(images.map((i) => { i.loading = "eager"; return i.decode(); }));
			return images.map((i) => ({Source: i.currentSrc, Alt: i.alt, Wide: i.naturalWidth}));
		})()`, &images)
		if len(images) != 3 {
			t.Fatalf("%d plots, want 3", len(images))
		}
		for _, i := range images {
			if i.Wide == 0 || i.Alt == "" || strings.Contains(i.Source, "theme=dark") != dark {
				t.Errorf("plot %+v, want one of the theme with a text in its place", i)
			}
		}
	}
	p.browser.Show(1280, 900, false)
}

// structure looks at what a screen reader goes by.
func (p *openPage) structure(t *testing.T) {
	var levels []int
	p.browser.Evaluate(`[...document.querySelectorAll("h1,h2,h3,h4")].map((h) => Number(h.tagName[1]))`, &levels)
	if len(levels) == 0 || levels[0] != 1 || slices.Index(levels[1:], 1) >= 0 {
		t.Errorf("headings of levels %v, want one of the first, which comes first", levels)
	}
	for i := 1; i < len(levels); i++ {
		if levels[i] > levels[i-1]+1 {
			t.Errorf("a heading of level %d follows one of level %d", levels[i], levels[i-1])
		}
	}
	for what, expression := range map[string]string{
		"tables without a caption":         `[...document.querySelectorAll("table")].filter((t) => !t.caption?.textContent.trim()).length`,
		"header cells without a scope":     `document.querySelectorAll("th:not([scope])").length`,
		"links without a text":             `[...document.querySelectorAll("a")].filter((a) => !a.textContent.trim()).length`,
		"identifiers that are there twice": `(() => { const ids = [...document.querySelectorAll("[id]")].map((e) => e.id); return ids.length - new Set(ids).size; })()`,
		"references to nothing":            `[...document.querySelectorAll("[aria-labelledby]")].filter((e) => !document.getElementById(e.getAttribute("aria-labelledby"))).length`,
	} {
		var n int
		p.browser.Evaluate(expression, &n)
		if n > 0 {
			t.Errorf("%d %s", n, what)
		}
	}
}

// refresh waits until the page has shown itself again.
func (p *openPage) refresh(t *testing.T) {
	const shown = `document.querySelector("main .headline time").dateTime`
	p.browser.Evaluate(`window.same = true`, new(bool))
	var before, now string
	p.browser.Evaluate(shown, &before)
	testbed.WaitFor(t, "the page to refresh itself", 30*time.Second, func() bool {
		p.browser.Evaluate(shown, &now)
		return now != before
	})
	var same bool
	p.browser.Evaluate(`window.same === true`, &same)
	if !same {
		t.Error("the page was loaded anew, want only its contents")
	}
}

func (p *openPage) phone(t *testing.T) {
	p.browser.Show(390, 844, false)
	p.browser.Open(p.base)
	var width, small int
	p.browser.Evaluate(`document.documentElement.scrollWidth`, &width)
	if width > 390 {
		t.Errorf("the page is %d pixels wide on a phone of 390", width)
	}
	p.browser.Evaluate(`[...document.querySelectorAll("main *")].filter((e) => e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) < 11).length`, &small)
	if small > 0 {
		t.Errorf("%d elements have text of less than 11 pixels", small)
	}
	p.browser.Show(1280, 900, false)
}

func (p *openPage) withoutScripts(t *testing.T) {
	p.browser.Scripts(false)
	p.browser.Open(p.base)
	if verdict := p.browser.Text("#verdict"); !strings.Contains(verdict, "3 targets") {
		t.Errorf("without scripts the verdict is %q", verdict)
	}
}

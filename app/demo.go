package app

import (
	"bufio"
	"cmp"
	"context"
	_ "embed" // what the demo says
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"
	"unicode/utf8"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"gopkg.in/yaml.v3"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/demo"
	"github.com/steadyprobe/steadyprobe/report"
	"github.com/steadyprobe/steadyprobe/web"
)

//go:embed demo.txt
var demoText string

// DemoOptions say how [Demo] runs.
type DemoOptions struct {
	Options
	Out io.Writer // told where to look and, at the end, what came of it
	// Live is told once a second how it goes, in one line of ASCII; nil: nobody
	// is.
	Live func(line string)
}

// Demo probes a world of its own, doors and backends in this process, until
// ctx is done. It says where to look once its endpoints are served, and tells
// at the end what each door felt like in each churn phase.
func Demo(ctx context.Context, o DemoOptions) error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("starting the demo: %w", err)
	}
	if o.Out == nil {
		return errors.New("starting the demo: there is nowhere to say where to look")
	}
	world, err := demo.Start(demo.Options{Logger: o.Logger})
	if err != nil {
		return fmt.Errorf("starting the demo: %w", err)
	}
	defer world.Close()
	loaded, _, err := config.Parse(world.Configuration(), "steadyprobe.yml")
	if err != nil {
		return fmt.Errorf("reading the demo's own configuration: %w", err)
	}
	d := &daemon{options: o.Options, config: loaded, embedded: world.Backends(), loaded: time.Now()}
	return d.demonstrate(ctx, &o)
}

// demonstrate runs the daemon, tells how it goes and what came of it.
func (d *daemon) demonstrate(ctx context.Context, o *DemoOptions) error {
	live, stop := context.WithCancel(ctx)
	defer stop()
	var telling sync.WaitGroup
	var last summary
	d.options.Listening = func(main []net.Addr, health net.Addr) {
		if len(main) > 0 {
			tellWhere(o.Out, schemeOf(*d.options.Web.WebConfigFile), main[0].String(), d.config)
		}
		if o.Listening != nil {
			o.Listening(main, health)
		}
		telling.Go(func() {
			if o.Live != nil {
				everySecond(live, func() { o.Live(liveLine(time.Since(d.loaded), d.churns.view(), d.viewTargets())) })
			}
			<-live.Done()
			// Before the end itself: what it cuts off is not the doors' fault.
			last = summary{d.viewTargets(), d.viewStatus().Trust, time.Since(d.loaded)}
		})
	}
	err := d.run(ctx)
	stop()
	telling.Wait()
	if err != nil {
		return err
	}
	return last.write(o.Out)
}

// summary is what came of a demo.
type summary struct {
	targets []web.Target
	trust   web.Trust
	took    time.Duration
}

// write writes what stands out, whether it is to be trusted, and the figures by
// churn phase.
func (s *summary) write(out io.Writer) error {
	text := bufio.NewWriter(out)
	fmt.Fprintf(text, "\nWhat came of it in %v:\n\n", s.took.Round(time.Second))
	for _, f := range web.Findings(s.targets) {
		fmt.Fprintf(text, "  %s:\n", f.Target)
		for _, sentence := range f.Sentences {
			writeWrapped(text, "    ", sentence)
		}
		fmt.Fprintln(text)
	}
	if !s.trust.Trustworthy {
		writeWrapped(text, "  ", "The latencies are not to be trusted, the counts are: "+strings.Join(s.trust.Reasons, " "))
		fmt.Fprintln(text)
	}
	if err := text.Flush(); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return report.WritePhases(out, phaseRows(s.targets))
}

// writeWrapped writes a text in lines of at most 80 columns.
func writeWrapped(out io.Writer, indent, text string) {
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch width := utf8.RuneCountInString(word); {
		case column == 0:
			column, _ = fmt.Fprint(out, indent)
			column += width
		case column+1+width > 80:
			fmt.Fprint(out, "\n", indent)
			column = len(indent) + width
		default:
			fmt.Fprint(out, " ")
			column += 1 + width
		}
		fmt.Fprint(out, word)
	}
	fmt.Fprintln(out)
}

// schemeOf returns the scheme of the endpoints' URLs by the toolkit's file, which
// is valid, or none.
func schemeOf(file string) string {
	var c struct {
		TLS toolkit.TLSConfig `yaml:"tls_server_config"`
	}
	text, err := os.ReadFile(file)
	if err == nil && yaml.Unmarshal(text, &c) == nil && c.TLS.IsEnabled() {
		return "https"
	}
	return "http"
}

// tellWhere says where to look.
func tellWhere(out io.Writer, scheme, address string, c *config.Config) {
	rate := 0.0
	for i := range c.Targets {
		rate += c.Targets[i].Rate.Float()
	}
	t := template.Must(template.New("demo").Parse(demoText)) // a literal of this program
	_ = t.Execute(out, map[string]any{"Scheme": scheme, "Address": reachable(address), "Rate": rate, "Targets": c.Targets})
}

// reachable returns an address that a browser here can open for one that is
// listened on.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// liveLine begins with the targets that fail most: a terminal of 80 columns has
// no room for all.
func liveLine(elapsed time.Duration, churns []web.Churn, targets []web.Target) string {
	line := fmt.Sprintf("%.0fs", elapsed.Seconds())
	for _, c := range churns {
		line += fmt.Sprintf(" backends %d %s", c.Ready, c.Phase)
	}
	slices.SortStableFunc(targets, func(a, b web.Target) int { return cmp.Compare(b.Failed, a.Failed) })
	for _, t := range targets {
		line += fmt.Sprintf(" | %s p99 %s fail %d", t.Name, report.Duration(quantile(t.Latency[0].Quantiles, 0.99)), t.Failed)
	}
	return line
}

func quantile(all web.Quantiles, q float64) float64 {
	for _, one := range all {
		if one.Q == q {
			return float64(one.Seconds)
		}
	}
	return 0
}

// phaseRows returns what was measured of each target in each churn phase.
func phaseRows(targets []web.Target) (rows []report.PhaseRow) {
	for _, t := range targets {
		for _, p := range t.Phases {
			r := report.PhaseRow{
				Target: t.Name, Phase: p.Phase, Completed: p.Completed, Failed: p.Failed,
				P50: quantile(p.Latency, 0.5), P99: quantile(p.Latency, 0.99), P999: quantile(p.Latency, 0.999),
			}
			if len(p.Failures) > 0 {
				r.TopFailure = p.Failures[0].Stage + "/" + p.Failures[0].Reason
			}
			rows = append(rows, r)
		}
	}
	return rows
}

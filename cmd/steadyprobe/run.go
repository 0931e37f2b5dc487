package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/steadyprobe/steadyprobe/app"
	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/report"
)

// runFlags are what the command line of run says.
type runFlags struct {
	urls        []string
	rate        rateValue
	pacing      choiceValue
	arrival     choiceValue
	connections countValue
	duration    durationValue
	warmUp      durationValue
	timeout     durationValue
	backlog     durationValue
	reuse       bool
	warm        bool
	headers     []string
	method      string
	body        string
	insecure    bool
	caFile      string
	connectTo   string
	format      choiceValue
	output      string
	latency     bool
}

// newRunFlags returns flags whose values know their names and limits.
func newRunFlags() *runFlags {
	const day = 24 * time.Hour // more is a typing error, as in a configuration
	return &runFlags{
		rate:        rateValue{flag: "--rate"},
		pacing:      choiceValue{flag: "--pacing", words: []string{"precise", "economy"}},
		arrival:     choiceValue{flag: "--arrival", words: []string{"uniform", "poisson"}},
		connections: countValue{flag: "--connections"},
		duration:    durationValue{flag: "--duration", least: time.Millisecond},
		warmUp:      durationValue{flag: "--warmup"},
		timeout:     durationValue{flag: "--timeout", least: time.Millisecond, most: day},
		backlog:     durationValue{flag: "--backlog", least: time.Millisecond, most: day},
		format:      choiceValue{flag: "--format", words: []string{"text", "json"}},
	}
}

// addRun adds the one-shot command.
func addRun(kp *kingpin.Application, stdout io.Writer, stderr *console) (string, command) {
	c := kp.Command("run", "Send constant-rate traffic to doors for a while, or as much as they answer, and report what came of it. Exits 0 when it ran, whatever the doors answered.").HelpLong(runHelp)
	f := newRunFlags()
	c.Arg("url", "URL of a door; several are probed at the same time, each at the rate.").Required().StringsVar(&f.urls)
	c.Flag("rate", "Requests per second, or max for a closed loop: each connection sends its next request when the one before is answered, and what is reported is the service time.").Short('R').Default("100").SetValue(&f.rate)
	c.Flag("pacing", "precise, or economy: wake up once a millisecond and send all that is due then, which costs less processor time at high rates and up to 1 ms of lateness.").Default("precise").SetValue(&f.pacing)
	c.Flag("arrival", "uniform: evenly spaced requests, or poisson: at random, as those of many independent users.").Default("uniform").SetValue(&f.arrival)
	c.Flag("connections", "Connections, at most one request at a time on each.").Short('c').Default("10").SetValue(&f.connections)
	c.Flag("duration", "How long to measure.").Short('d').Default("30s").SetValue(&f.duration)
	c.Flag("warmup", "How long to send traffic before measuring.").Default("0s").SetValue(&f.warmUp)
	c.Flag("timeout", "Time of a request from its begin, the opening of its connection included, to the last byte of the answer.").Default("5s").SetValue(&f.timeout)
	c.Flag("backlog", "How long a request that is due waits for a connection before it fails as schedule/expired.").Default("30s").SetValue(&f.backlog)
	c.Flag("reuse", "Send many requests over a connection; with --no-reuse a new one is opened for each.").Default("true").BoolVar(&f.reuse)
	c.Flag("warm", "Open all connections before the first request, and keep that number; with --no-warm requests open them. Off where they are not reused.").Default("true").BoolVar(&f.warm)
	c.Flag("header", "Header field of the request. Repeatable.").Short('H').PlaceHolder("\"NAME: VALUE\"").StringsVar(&f.headers)
	c.Flag("method", "Request method.").Short('X').Default("GET").StringVar(&f.method)
	c.Flag("body", "Request body, or @FILE for what a file holds.").PlaceHolder("TEXT").StringVar(&f.body)
	c.Flag("insecure", "Do not verify the door's certificate.").Short('k').BoolVar(&f.insecure)
	c.Flag("ca-file", "PEM file with the authorities that the door's certificate is verified against.").PlaceHolder("FILE").StringVar(&f.caFile)
	c.Flag("connect-to", "Connect to this instead of the URL's host; Host and certificate stay those of the URL.").PlaceHolder("HOST:PORT").StringVar(&f.connectTo)
	c.Flag("format", "Format of the report: text or json.").Default("text").SetValue(&f.format)
	c.Flag("latency", "Add the detailed percentile spectra to the text, some hundred lines for the HdrHistogram plotter.").Short('L').BoolVar(&f.latency)
	c.Flag("output", "File to write the report to, instead of standard output.").Short('o').PlaceHolder("FILE").StringVar(&f.output)
	// What the engine tells at the level info would stand between the report's
	// lines on a terminal.
	return c.FullCommand(), command{logLevel: "warn", do: func(ctx context.Context, logger *slog.Logger) error {
		return f.run(ctx, logger, stdout, stderr)
	}}
}

func (f *runFlags) run(ctx context.Context, logger *slog.Logger, stdout io.Writer, stderr *console) error {
	targets, err := f.targets(stderr)
	if err != nil {
		return err
	}
	// Before the run, because a report that cannot be written wastes it.
	out, err := openOutput(f.output, stdout)
	if err != nil {
		return err
	}
	defer out.Close()
	o := app.OnceOptions{
		Targets:  targets,
		Duration: f.duration.Duration,
		WarmUp:   f.warmUp.Duration,
		Logger:   logger,
		Version:  version.Version,
	}
	live := stderr.show()
	if live != nil {
		o.Progress = live.Update
	} else {
		o.Progress = f.tellWaiting(stderr)
	}
	results, err := app.Once(ctx, o)
	if live != nil {
		// A terminal that is gone does not spoil the report.
		_ = live.Close()
	}
	if err != nil {
		return err
	}
	if live != nil && f.output != "" {
		_ = report.WriteSummary(stderr, results)
	}
	return errors.Join(f.write(out, results), out.Close())
}

func (f *runFlags) write(out io.Writer, results []report.Result) error {
	if f.format.word == "json" {
		return report.WriteJSON(out, results)
	}
	return report.WriteText(out, results, report.TextOptions{Spectra: f.latency})
}

// tellWaiting returns what says once, where no terminal shows it, why a run has
// not ended with its window.
func (f *runFlags) tellWaiting(stderr io.Writer) func(report.Progress) {
	told := false
	return func(p report.Progress) {
		if told || !p.Waiting {
			return
		}
		told = true
		fmt.Fprintf(stderr, "steadyprobe: the window is over, waiting for requests without an outcome: %d (at most --backlog %v and --timeout %v)\n",
			p.Open(), f.backlog.Duration, f.timeout.Duration)
	}
}

// targets returns what the flags say, once for each URL.
func (f *runFlags) targets(stderr io.Writer) ([]config.Target, error) {
	headers, host, err := f.header()
	if err != nil {
		return nil, err
	}
	warned := map[string]bool{}
	var targets []config.Target
	for _, url := range f.urls {
		t, err := config.ForURL(url)
		if err != nil {
			return nil, fmt.Errorf("reading %w", withFlags(err))
		}
		t.Rate, t.Connections = f.rate.Rate, f.connections.n
		t.Timeout, t.Backlog = f.timeout.Duration, f.backlog.Duration
		t.Pacing, t.Arrival = f.pacing.word, f.arrival.word
		if t.URL.HTTP() {
			t.Connection.Reuse = f.reuse
			t.Connection.Warm = f.warm && f.reuse
		}
		// Of a target that is not HTTP what was asked for is refused, not left out.
		if t.URL.HTTP() || f.method != "GET" {
			t.HTTP.Method = f.method
		}
		if t.URL.HTTP() || len(f.headers) > 0 {
			t.HTTP.Headers, t.HTTP.Host = headers, host
		}
		if file, ok := strings.CutPrefix(f.body, "@"); ok {
			t.HTTP.BodyFile = file
		} else {
			t.HTTP.Body = config.NewSecret(f.body)
		}
		t.TLS.InsecureSkipVerify, t.TLS.CAFile = f.insecure, f.caFile
		t.ConnectTo = f.connectTo
		warnings, err := t.Validate()
		if err != nil {
			return nil, fmt.Errorf("probing %s: %w", t.URL, withFlags(err))
		}
		for _, w := range warnings {
			if text := inFlags(w.Field, w.Text); !warned[text] {
				warned[text] = true
				fmt.Fprintf(stderr, "steadyprobe: warning: %s\n", text)
			}
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// header returns the header fields and, where it is among them, the Host. Their
// values are not shown in errors.
func (f *runFlags) header() (headers config.Headers, host string, err error) {
	headers = config.Headers{}
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, "", errors.New(`reading --header: it has no colon; write "Name: value"`)
		}
		if strings.EqualFold(name, "Host") {
			host = strings.TrimSpace(value)
			continue
		}
		h := headers[name]
		h.Values = append(h.Values, config.NewSecret(strings.TrimSpace(value)))
		headers[name] = h
	}
	return headers, host, nil
}

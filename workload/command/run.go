package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/steadyprobe/steadyprobe/churn"
)

const (
	// mostOutput is what is kept of each of the two outputs of a program, in
	// bytes. The rest is read and thrown away.
	mostOutput = 64 << 10
	// mostShown is how much of it an error says.
	mostShown = 300
	// lingering is how long the outputs may stay open when the program has ended,
	// because something that it has started holds them.
	lingering = 100 * time.Millisecond
)

// The statuses that say more than that something went wrong, see sysexits(3).
const (
	statusTemporary = 75 // EX_TEMPFAIL
	statusForbidden = 77 // EX_NOPERM
)

// output keeps the beginning of what is written into it.
type output struct {
	text []byte
	cut  bool // there was more
}

// Write takes everything.
func (o *output) Write(p []byte) (int, error) {
	n := min(len(p), mostOutput-len(o.text))
	o.text = append(o.text, p[:n]...)
	o.cut = o.cut || n < len(p)
	return len(p), nil
}

// ending keeps the end of what is written into it.
type ending struct{ text []byte }

// Write takes everything.
func (e *ending) Write(p []byte) (int, error) {
	e.text = append(e.text, p...)
	if extra := len(e.text) - mostOutput; extra > 0 {
		e.text = e.text[:copy(e.text, e.text[extra:])]
	}
	return len(p), nil
}

// run runs a program to its end, and returns what it has printed.
func (w *Workload) run(ctx context.Context, argv []string) (output, error) {
	var out output
	var complaint ending
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = w.o.Folder, &out, &complaint, lingering
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return output{}, unstarted(ctx, argv[0], err)
	}
	err := cmd.Wait()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return out, nil
	}
	said := complaint.text
	if len(said) == 0 {
		said = out.text
	}
	return output{}, failed(ctx, argv, err, string(said))
}

// unstarted says why a program could not be started.
func unstarted(ctx context.Context, program string, err error) error {
	reason, remedy := churn.Other, ""
	switch {
	case ctx.Err() != nil:
		reason = churn.Unreachable
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, exec.ErrDot), errors.Is(err, fs.ErrNotExist):
		reason, remedy = churn.NotFound, "; write its whole path; a script needs the program of its first line too"
	case errors.Is(err, fs.ErrPermission):
		reason, remedy = churn.Forbidden, "; let the user of the daemon execute it"
	case errors.Is(err, syscall.ENOEXEC):
		reason, remedy = churn.NotFound, "; a script needs a first line such as #!/bin/sh"
	}
	return wrong(reason, fmt.Errorf("starting %q: %w%s", program, bare(err), remedy))
}

// bare returns an error without the program that it names once more.
func bare(err error) error {
	var path *fs.PathError
	var look *exec.Error
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &look):
		return look.Err
	}
	return err
}

// failed says how a program ended, and what it said.
func failed(ctx context.Context, argv []string, err error, said string) error {
	reason := churn.Other
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		reason, err = churn.Unreachable, fmt.Errorf("it did not end in time and was killed: %w", ctx.Err())
	case ctx.Err() != nil:
		reason, err = churn.Unreachable, fmt.Errorf("it was killed: %w", ctx.Err())
	case errors.As(err, &exit) && exit.ExitCode() == statusTemporary:
		reason = churn.Unreachable
	case errors.As(err, &exit) && exit.ExitCode() == statusForbidden:
		reason = churn.Forbidden
	}
	if said = shortened(masked(said, argv[1:])); said != "" {
		return wrong(reason, fmt.Errorf("running %q: %w; it said: %s", argv[0], err, said))
	}
	return wrong(reason, fmt.Errorf("running %q: %w", argv[0], err))
}

// masked returns text without the arguments that may be secret: those, and the
// values of flags, that are too long to be there by chance.
func masked(text string, arguments []string) string {
	const least = 8
	for _, argument := range arguments {
		_, value, _ := strings.Cut(argument, "=")
		for _, secret := range []string{argument, value} {
			if len(secret) >= least {
				text = strings.ReplaceAll(text, secret, "<secret>")
			}
		}
	}
	return text
}

// shortened returns the end of a text in one line.
func shortened(text string) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(text) <= mostShown {
		return text
	}
	from := len(text) - mostShown
	for !utf8.RuneStart(text[from]) {
		from++
	}
	return "… " + text[from:]
}

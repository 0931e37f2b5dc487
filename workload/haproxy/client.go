package haproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/steadyprobe/steadyprobe/churn"
)

const (
	// mostAnswer is more than HAProxy says of some ten thousand servers, in bytes.
	mostAnswer = 8 << 20
	// mostLine is how long a line of commands may become, in bytes. HAProxy takes
	// what goes into its buffer, 16 KiB unless tune.bufsize says less.
	mostLine = 4 << 10
)

// client talks to the runtime API of HAProxy (management guide, section 9.3),
// over a connection for each line of commands: after a reload a new connection
// reaches the new worker, and an old one would stay with the old worker.
type client struct {
	network, address string
}

// newClient returns the client for an absolute path or HOST:PORT.
func newClient(socket string) (client, error) {
	if filepath.IsAbs(socket) {
		return client{"unix", socket}, nil
	}
	if host, port, err := net.SplitHostPort(socket); err == nil && host != "" && port != "" {
		return client{"tcp", socket}, nil
	}
	return client{}, fmt.Errorf("socket %q: want an absolute path or HOST:PORT", socket)
}

// ask sends commands in one line, which one process carries out, and returns
// the answer to each without its last newline: an empty one where there is
// nothing to say.
func (c client) ask(ctx context.Context, commands ...string) ([]string, error) {
	text, err := c.exchange(ctx, strings.Join(commands, ";")+"\n")
	if err != nil {
		return nil, c.failed(err)
	}
	answers, ok := split(text)
	if !ok || len(answers) != len(commands) {
		return nil, c.failed(wrong(churn.Other, fmt.Errorf("want the answers of a stats socket of HAProxy to %d commands, got %q", len(commands), shortened(text))))
	}
	return answers, nil
}

// exchange sends a line and returns all that comes until the end.
func (c client) exchange(ctx context.Context, line string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, c.network, c.address)
	if err != nil {
		return "", unconnected(ctx, err)
	}
	defer func() { _ = conn.Close() }() // what counts was read
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, line); err != nil {
		return "", unanswered(ctx, err)
	}
	text, err := io.ReadAll(io.LimitReader(conn, mostAnswer+1))
	if err != nil {
		return "", unanswered(ctx, err)
	}
	if len(text) > mostAnswer {
		return "", wrong(churn.Other, fmt.Errorf("the answer has more than %d bytes", mostAnswer))
	}
	return string(text), nil
}

func (c client) failed(err error) error {
	return fmt.Errorf("asking HAProxy at %q: %w", c.address, err)
}

// unconnected says why there is no connection.
func unconnected(ctx context.Context, err error) error {
	reason, remedy := churn.Unreachable, ""
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, fs.ErrPermission):
		reason, remedy = churn.Forbidden, "; let the user of the daemon read and write the socket, by user, group and mode on its stats socket line"
	case errors.Is(err, fs.ErrNotExist):
		remedy = "; either HAProxy does not run, or it has no stats socket there"
	}
	return wrong(reason, fmt.Errorf("%w%s", err, remedy))
}

// unanswered says why an answer did not come.
func unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer: %w", ctx.Err())
	}
	return wrong(churn.Unreachable, err)
}

// wrong gives an error its reason.
func wrong(reason churn.Reason, err error) error { return &churn.Error{Reason: reason, Err: err} }

// split takes the answers to commands of one line apart: each ends with an
// empty line. It reports whether the last one was whole.
func split(text string) (answers []string, ok bool) {
	var answer strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			answer.WriteString(line)
			continue
		}
		answers = append(answers, strings.TrimSuffix(answer.String(), "\n"))
		answer.Reset()
	}
	return answers, answer.Len() == 0
}

// shortened returns the beginning of a text in one line.
func shortened(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + " …"
	}
	return text
}

package testbed

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// console is an open connection to the runtime socket of one HAProxy process.
type console struct {
	net.Conn
	in     *bufio.Reader
	prompt string // ends every answer
}

// The prompts of the interactive mode, of a worker and of the master. See the
// HAProxy Management Guide, sections 9.3 and 9.4.
const (
	workerPrompt = "\n> "
	masterPrompt = "master> "
)

// openConsole connects to the runtime socket at path, which prompts as told.
func openConsole(path, prompt string) (*console, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("connecting to the runtime socket of HAProxy: %w", err)
	}
	c := &console{Conn: conn, in: bufio.NewReader(conn), prompt: prompt}
	if _, err := c.ask("prompt"); err != nil {
		return nil, closing(conn, err)
	}
	return c, nil
}

// ask sends a command and returns the answer.
func (c *console) ask(command string) (string, error) {
	if err := c.SetDeadline(time.Now().Add(startLimit)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(c, command); err != nil {
		return "", fmt.Errorf("sending %q: %w", command, err)
	}
	var answer strings.Builder
	for !strings.HasSuffix(answer.String(), c.prompt) {
		b, err := c.in.ReadByte()
		if err != nil {
			return "", fmt.Errorf("reading the answer to %q after %q: %w", command, answer.String(), err)
		}
		answer.WriteByte(b)
	}
	return strings.TrimSuffix(answer.String(), c.prompt), nil
}

// info returns the fields of "show info".
func (c *console) info() (map[string]string, error) {
	answer, err := c.ask("show info")
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for line := range strings.Lines(answer) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			info[name] = strings.TrimSpace(value)
		}
	}
	return info, nil
}

// counters returns the account of the process and its open connections, the
// console itself included.
func (c *console) counters() (k HAProxyCounters, connections uint64, err error) {
	info, err := c.info()
	if err != nil {
		return k, 0, err
	}
	door, err := c.frontend()
	if err != nil {
		return k, 0, err
	}
	for _, number := range []struct {
		name, text string
		to         *uint64
	}{
		{"CurrConns", info["CurrConns"], &connections},
		{"CumSslConns", info["CumSslConns"], &k.TLS},
		{"req_tot", cmp.Or(door["req_tot"], "0"), &k.Requests}, // none where only connections are counted
		{"conn_tot", door["conn_tot"], &k.Connections},
		{"ssl_sess", door["ssl_sess"], &k.Full},
		{"ssl_reused_sess", door["ssl_reused_sess"], &k.Resumed},
	} {
		if *number.to, err = strconv.ParseUint(number.text, 10, 64); err != nil {
			return k, 0, fmt.Errorf("reading %s: %w", number.name, err)
		}
	}
	return k, connections, nil
}

// frontend returns the fields of "show stat" for the frontend "door".
// "show info" would count the console's questions too.
func (c *console) frontend() (map[string]string, error) {
	rows, err := c.stat("door 1 -1")
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("asking HAProxy for its frontend: %d answers, want one", len(rows))
	}
	return rows[0], nil
}

// stat returns the rows of "show stat" for what is asked.
func (c *console) stat(what string) (rows []map[string]string, err error) {
	answer, err := c.ask("show stat " + what)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(strings.TrimPrefix(answer, "# ")), "\n")
	names := strings.Split(lines[0], ",")
	for _, line := range lines[1:] {
		fields := map[string]string{}
		for i, value := range strings.Split(line, ",") {
			if i < len(names) {
				fields[names[i]] = value
			}
		}
		rows = append(rows, fields)
	}
	return rows, nil
}

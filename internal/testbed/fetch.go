package testbed

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// fetch requests url and returns the status and the body of the answer.
func fetch(c *http.Client, url string) (code int, body string, err error) {
	resp, err := c.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = closing(resp.Body, err) }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", fmt.Errorf("reading the answer of %q: %w", url, err)
	}
	return resp.StatusCode, string(text), nil
}

// questions returns a client for what the bed itself asks: a connection for
// each question, so that what it adds to a server's counters is known.
func questions() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: startLimit}
}

// closing closes c after something that ended with err.
func closing(c io.Closer, err error) error { return errors.Join(err, c.Close()) }

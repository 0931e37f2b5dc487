package web

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// responseStatus is the failure that has codes.
const responseStatus = "response/status"

// maxCodes is how many statuses are named beside a failure.
const maxCodes = 3

// meaning says what a name means, without a capital letter or a full stop, so
// that it may stand within a sentence.
type meaning struct{ name, text string }

// failureMeanings are those of all failures, STAGE/REASON.
var failureMeanings = [...]meaning{
	{"schedule/expired", "it waited for a connection longer than backlog allows: the door is slow, or connections are too few for the rate"},
	{"schedule/shutdown", "the probe was stopped before the request was done: the probe’s own doing, not the door’s"},
	{"resolve/not_found", "the door’s name has no address"},
	{"resolve/timeout", "the name server did not answer in time"},
	{"resolve/error", "the name server could not be asked, or answered with an error"},
	{"connect/refused", "nobody listens at the door’s address and port"},
	{"connect/timeout", "the door did not take the connection in time"},
	{"connect/unreachable", "no route leads to the door’s address"},
	{"connect/reset", "the door reset the connection while it was being opened"},
	{"connect/local_resource", "the probe had no port or no file descriptor left: the probe’s own doing, not the door’s"},
	{"connect/error", "the connection could not be opened for another reason, which the log has"},
	{"proxy/timeout", "the PROXY header could not be sent in time"},
	{"proxy/error", "the PROXY header could not be sent"},
	{"tls/timeout", "the TLS handshake did not end in time"},
	{"tls/certificate", "the door’s certificate is not trusted, expired or of another name"},
	{"tls/alert", "the door ended the TLS handshake with an alert, as one does that wants a client certificate or another version"},
	{"tls/protocol", "what the door sent is not TLS, or is against its rules"},
	{"tls/reset", "the door reset the connection during the TLS handshake"},
	{"tls/eof", "the door closed the connection during the TLS handshake, as a balancer without backends does"},
	{"tls/error", "the TLS handshake failed for another reason, which the log has"},
	{"write/timeout", "the door did not take the request in time"},
	{"write/reset", "the door reset the connection while the request was being sent"},
	{"write/stale", "the door was closing the idle connection that the request was sent on, as when a door reloads"},
	{"write/error", "the request could not be sent for another reason"},
	{"read/timeout", "the whole answer did not arrive in time"},
	{"read/reset", "the door had the request and reset the connection before it answered"},
	{"read/stale", "the request crossed the door’s close of an idle connection, as when a door reloads or closes idle connections sooner than its clients"},
	{"read/eof", "the door had the request and closed the connection before it answered"},
	{"read/truncated", "the door closed the connection in the middle of the answer"},
	{"read/error", "the answer could not be read for another reason"},
	{"response/status", "the door answered with a status that is not expected"},
	{"response/body", "the body of the answer is not the expected one"},
	{"response/size", "the body of the answer is longer than expect.max_body allows"},
	{"response/header", "a header of the answer is not the expected one"},
	{"response/protocol", "what the door sent is not valid HTTP"},
}

// statusMeanings are those of statuses that doors, more than backends, give.
var statusMeanings = [...]meaning{
	{"404", "nothing is found there; many doors say so where no route matches"},
	{"429", "there were too many requests for the door or for its backend"},
	{"502", "the door got no valid answer from its backend"},
	{"503", "the door has no backend to ask, or refuses for now"},
	{"504", "the door got no answer from its backend in time"},
}

// means returns the meaning of a name, empty where it has none.
func means(all []meaning, name string) string {
	if i := slices.IndexFunc(all, func(m meaning) bool { return m.name == name }); i >= 0 {
		return all[i].text
	}
	return ""
}

// sentence returns a clause with a capital letter and a full stop; nothing of
// nothing.
func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(clause)
	return string(unicode.ToUpper(first)) + clause[size:] + "."
}

// statusName returns a status with its name: 502 Bad Gateway.
func statusName(code string) string {
	n, err := strconv.Atoi(code)
	if err != nil {
		return code
	}
	return strings.TrimSpace(code + " " + http.StatusText(n))
}

// named returns STAGE/REASON, and which answers they were where it is the
// status that was not expected: response/status (HTTP 502 Bad Gateway).
func (t *Target) named(name string) string {
	codes := t.unexpected()
	switch {
	case name != responseStatus || len(codes) == 0:
		return name
	case len(codes) == 1:
		return name + " (HTTP " + statusName(codes[0]) + ")"
	case len(codes) > maxCodes:
		return name + " (HTTP " + strings.Join(codes[:maxCodes], ", ") + " and others)"
	}
	return name + " (HTTP " + strings.Join(codes, ", ") + ")"
}

// byCode returns statuses in their order, other ones last.
func byCode(responses map[string]uint64) []string {
	codes := make([]string, 0, len(responses))
	for code := range responses {
		codes = append(codes, code)
	}
	slices.SortFunc(codes, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return codes
}

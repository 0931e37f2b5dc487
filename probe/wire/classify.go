package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/steadyprobe/steadyprobe/probe"
)

// localResource reports whether the machine, not the door, lacks something.
func localResource(err error) bool {
	for _, e := range []error{syscall.EADDRNOTAVAIL, syscall.EADDRINUSE, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

// isReset reports whether the peer ended the connection abruptly.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED)
}

func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe)
}

// isAlert reports whether the peer sent a TLS alert. crypto/tls returns it as
// an operation called "remote error".
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// isViolation reports whether what the peer sent is not TLS, or not as it
// should be. crypto/tls returns the latter as an operation called "local error".
func isViolation(err error) bool {
	var op *net.OpError
	var header tls.RecordHeaderError
	return errors.As(err, &header) || errors.As(err, &op) && op.Op == "local error"
}

// connectOutcome classifies a failed connect.
func connectOutcome(err error) probe.Outcome {
	switch {
	case localResource(err):
		return probe.ConnectLocalResource
	case errors.Is(err, syscall.ECONNREFUSED):
		return probe.ConnectRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH),
		errors.Is(err, syscall.ENETDOWN), errors.Is(err, syscall.EHOSTDOWN):
		return probe.ConnectUnreachable
	case isReset(err):
		return probe.ConnectReset
	case isTimeout(err):
		return probe.ConnectTimeout
	}
	return probe.ConnectError
}

// tlsOutcome classifies a failed handshake.
func tlsOutcome(err error) probe.Outcome {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		invalid      x509.CertificateInvalidError
		hostname     x509.HostnameError
		op           *net.OpError
		errno        syscall.Errno
	)
	switch {
	case errors.As(err, &verification), errors.As(err, &authority), errors.As(err, &invalid), errors.As(err, &hostname):
		return probe.TLSCertificate
	case isTimeout(err):
		return probe.TLSTimeout
	case isAlert(err):
		return probe.TLSAlert
	case isEOF(err):
		return probe.TLSEOF
	case isReset(err):
		return probe.TLSReset
	case errors.As(err, &errno):
		return probe.TLSError
	case errors.As(err, &op) && op.Op != "local error":
		return probe.TLSError
	}
	// What crypto/tls says in words: the peer does not speak it, or not so that
	// both sides agree.
	return probe.TLSProtocol
}

// writeOutcome classifies a failed write.
func writeOutcome(err error) probe.Outcome {
	switch {
	case isReset(err) || isEOF(err):
		return probe.WriteReset
	case isTimeout(err):
		return probe.WriteTimeout
	}
	return probe.WriteError
}

// readOutcome classifies the end of a connection inside a request, but for
// stale. Started says that a byte of the answer came.
func readOutcome(err error, started bool) probe.Outcome {
	switch {
	case isAlert(err):
		// TLS 1.3 refuses client certificates only after the handshake.
		return probe.TLSAlert
	case isReset(err):
		return probe.ReadReset
	case isEOF(err) && started:
		return probe.ReadTruncated
	case isEOF(err):
		return probe.ReadEOF
	case isViolation(err):
		return probe.TLSProtocol
	case isTimeout(err): // the kernel's own
		return probe.ReadTimeout
	}
	return probe.ReadError
}

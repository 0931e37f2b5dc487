package record

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/steadyprobe/steadyprobe/probe"
)

// responses counts answers. It is searched in order, as nearly all answers of
// a door are of one status. There are at most as many as statuses known to
// net/http, and one for the others, times the protocols: about 570.
type responses []ResponseCount

func (r *responses) count(code uint16, p probe.Protocol) {
	if r.counted(code, p) {
		return
	}
	if http.StatusText(int(code)) == "" {
		code = 0
		if r.counted(code, p) {
			return
		}
	}
	*r = append(*r, ResponseCount{Code: code, Protocol: p, Count: 1})
}

// counted counts an answer whose kind is there already, and reports whether it
// is.
func (r responses) counted(code uint16, p probe.Protocol) bool {
	for i := range r {
		if r[i].Code == code && r[i].Protocol == p {
			r[i].Count++
			return true
		}
	}
	return false
}

// handshakes counts completed handshakes. There are at most as many as
// versions times cipher suites times groups known to crypto/tls, each with one
// for the unknown, times two: a door can only choose from what it is offered.
type handshakes []HandshakeCount

func (h *handshakes) count(hs *probe.Handshake) {
	kind := HandshakeCount{Version: hs.Version, Cipher: hs.Cipher, Group: hs.Group, Resumed: hs.Resumed}
	if h.counted(kind) {
		return
	}
	kind = known(kind)
	if h.counted(kind) {
		return
	}
	kind.Count = 1
	*h = append(*h, kind)
}

// counted counts a handshake whose kind is there already, and reports whether
// it is.
func (h handshakes) counted(kind HandshakeCount) bool {
	for i := range h {
		kind.Count = h[i].Count
		if h[i] == kind {
			h[i].Count++
			return true
		}
	}
	return false
}

// known returns kind with 0 for what crypto/tls has no name for.
func known(kind HandshakeCount) HandshakeCount {
	if kind.Version < tls.VersionTLS10 || kind.Version > tls.VersionTLS13 {
		kind.Version = 0
	}
	named := func(c *tls.CipherSuite) bool { return c.ID == kind.Cipher }
	if !slices.ContainsFunc(tls.CipherSuites(), named) && !slices.ContainsFunc(tls.InsecureCipherSuites(), named) {
		kind.Cipher = 0
	}
	switch tls.CurveID(kind.Group) {
	case tls.CurveP256, tls.CurveP384, tls.CurveP521, tls.X25519,
		tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024:
	default:
		kind.Group = 0
	}
	return kind
}

// chains holds the chain that each address of a door showed last, so that one
// which was replaced is gone with the next handshake there.
type chains []chain

const (
	// chainAge is for how long before the last handshake a chain counts: twice the
	// default max_age, so that each address that can be connected to has shown its
	// chain in it, and one that cannot is soon forgotten.
	chainAge = 10 * time.Minute
	// maxChains bounds what a door can make us hold: beyond, the address that was
	// seen longest ago makes room.
	maxChains = 100
)

type chain struct {
	at    netip.Addr
	shown Certificate
	seen  probe.Instant
}

func (c *chains) saw(at netip.Addr, hs *probe.Handshake, now probe.Instant) {
	seen := chain{at: at, seen: now, shown: Certificate{
		Seen: true, Verified: hs.Verified, Stapled: hs.Stapled, NotBefore: hs.NotBefore, NotAfter: hs.NotAfter,
	}}
	oldest := 0
	for i := range *c {
		if (*c)[i].at == at {
			switch {
			case now < (*c)[i].seen: // openings that overlap are recorded in any order
			case hs.Resumed: // it tells of the handshake that it resumes
				(*c)[i].seen = now
			default:
				(*c)[i] = seen
			}
			return
		}
		if (*c)[i].seen < (*c)[oldest].seen {
			oldest = i
		}
	}
	if len(*c) == maxChains {
		(*c)[oldest] = seen
		return
	}
	*c = append(*c, seen)
}

// keep forgets the chains of all other addresses.
func (c *chains) keep(kept []netip.Addr) {
	*c = slices.DeleteFunc(*c, func(one chain) bool { return !slices.Contains(kept, one.at) })
}

// certificate returns the worst of the chains that count: the latest start, the
// earliest end, verified and stapled only if all were.
func (c chains) certificate() Certificate {
	var newest probe.Instant
	for i := range c {
		newest = max(newest, c[i].seen)
	}
	var all Certificate
	for i := range c {
		one := c[i].shown
		switch {
		case newest.Sub(c[i].seen) > chainAge:
		case !all.Seen:
			all = one
		default:
			all.Verified = all.Verified && one.Verified
			all.Stapled = all.Stapled && one.Stapled
			all.NotBefore = max(all.NotBefore, one.NotBefore)
			all.NotAfter = min(all.NotAfter, one.NotAfter)
		}
	}
	return all
}

// Package dnsdoor is a name server for tests, whose records may change at any
// time and which misbehaves as it is told. It answers on real sockets of
// 127.0.0.1, over UDP and TCP at one port, as the servers of a cluster do:
// answers that are too large for the client's UDP are truncated.
package dnsdoor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Error is a response code (RFC 1035 section 4.1.1) that an answer has instead
// of records.
type Error int

// The errors that a Behaviour may have.
const (
	ServerFailure Error = dns.RcodeServerFailure
	NoSuchName    Error = dns.RcodeNameError
	Refused       Error = dns.RcodeRefused
)

// Behaviour says how questions are answered; the zero value answers from the
// records, in the order in which they were set.
type Behaviour struct {
	Only     string        // "A" or "AAAA": other questions are answered as by the zero value; empty: all alike
	Silent   bool          // there is no answer
	Delay    time.Duration // before an answer
	Error    Error         // instead of records; 0: none
	Truncate bool          // over UDP every answer is empty and says that it is truncated
	Rotate   bool          // each answer begins with the next record
}

// Counts is what a server has counted so far.
type Counts struct {
	UDP, TCP uint64 // questions by transport
	A, AAAA  uint64 // questions by type
	Answers  uint64 // that were written
}

// Server is a running name server. Its methods may be called concurrently.
type Server struct {
	address  netip.AddrPort
	udp, tcp *dns.Server
	done     chan struct{}
	stop     sync.Once
	serving  sync.WaitGroup

	mu        sync.Mutex
	records   map[string][]netip.Addr // by canonical name
	services  map[string][]Service    // by canonical name
	behaviour Behaviour
	turn      int // answers that were rotated
	counts    Counts
}

// Listen returns a server without records at a free port of 127.0.0.1. It is
// closed when the test ends.
func Listen(tb testing.TB) *Server {
	tb.Helper()
	return ListenOn(tb, netip.MustParseAddrPort("127.0.0.1:0"))
}

// ListenOn is Listen with the address to listen at, whose port is a free one
// where it is 0.
func ListenOn(tb testing.TB, at netip.AddrPort) *Server {
	tb.Helper()
	packets, listener, err := listen(at)
	if err != nil {
		tb.Fatalf("opening a name server for tests: %v", err)
	}
	s := &Server{
		address:  packets.LocalAddr().(*net.UDPAddr).AddrPort(),
		done:     make(chan struct{}),
		records:  map[string][]netip.Addr{},
		services: map[string][]Service{},
	}
	// The library's Shutdown fails on a server that has not quite started.
	var started sync.WaitGroup
	serve := func(library *dns.Server, tcp bool) *dns.Server {
		library.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) { s.answer(w, question, tcp) })
		library.NotifyStartedFunc = started.Done
		started.Add(1)
		s.serving.Go(func() {
			if err := library.ActivateAndServe(); err != nil {
				tb.Errorf("serving names for tests: %v", err)
			}
		})
		return library
	}
	s.udp = serve(&dns.Server{PacketConn: packets}, false)
	s.tcp = serve(&dns.Server{Listener: listener}, true)
	started.Wait()
	tb.Cleanup(s.Close)
	return s
}

// listen opens one port for both transports.
func listen(at netip.AddrPort) (packets net.PacketConn, listener net.Listener, err error) {
	// A port that is free for UDP may be taken for TCP.
	for range 10 {
		if packets, err = net.ListenPacket("udp", at.String()); err != nil {
			return nil, nil, err
		}
		if listener, err = net.Listen("tcp", packets.LocalAddr().String()); err == nil {
			return packets, listener, nil
		}
		packets.Close()
	}
	return nil, nil, fmt.Errorf("finding a port for UDP and TCP: %w", err)
}

// Addr returns the address of both transports.
func (s *Server) Addr() netip.AddrPort { return s.address }

// Set gives a name these addresses, from the next question on, in the place of
// those that it had. Without any the name exists and has none, so that answers
// are empty (NODATA). Upper and lower case are the same, and so is a dot at
// the end. It panics on what is no address.
func (s *Server) Set(name string, addresses ...string) {
	parsed := make([]netip.Addr, len(addresses))
	for i, a := range addresses {
		parsed[i] = netip.MustParseAddr(a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[dns.CanonicalName(name)] = parsed
}

// Remove makes a name one that does not exist (NXDOMAIN), as any is that was
// never set.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, dns.CanonicalName(name))
	delete(s.services, dns.CanonicalName(name))
}

// Service is one answer to the question where a service is (RFC 2782).
type Service struct {
	Host string // with a dot at the end or without
	Port uint16
}

// SetServices gives the name of a service these places, from the next question
// on. Without any the name exists and has none.
func (s *Server) SetServices(name string, services ...Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services[dns.CanonicalName(name)] = slices.Clone(services)
}

// Behave changes how questions are answered that come from now on.
func (s *Server) Behave(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaviour = b
}

// Counts returns a copy of what was counted.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Close closes the sockets and waits until nothing is answered any more. It may
// be called again.
func (s *Server) Close() {
	s.stop.Do(func() {
		close(s.done)
		for _, library := range []*dns.Server{s.udp, s.tcp} {
			_ = library.ShutdownContext(context.Background()) // its errors are those of closing a socket
		}
	})
	s.serving.Wait()
}

// answer is called by the library in a goroutine for each question.
func (s *Server) answer(w dns.ResponseWriter, question *dns.Msg, tcp bool) {
	answer, b := s.compose(question, tcp)
	if b.Silent {
		return
	}
	if b.Delay > 0 {
		select {
		case <-time.After(b.Delay):
		case <-s.done:
			return
		}
	}
	if w.WriteMsg(answer) != nil {
		return // who asked has gone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Answers++
}

// compose counts a question, and returns the answer and how to give it.
func (s *Server) compose(question *dns.Msg, tcp bool) (*dns.Msg, Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := question.Question[0] // the library refuses a message with another number of them
	if tcp {
		s.counts.TCP++
	} else {
		s.counts.UDP++
	}
	switch asked.Qtype {
	case dns.TypeA:
		s.counts.A++
	case dns.TypeAAAA:
		s.counts.AAAA++
	}
	b := s.behaviour
	if b.Only != "" && dns.StringToType[b.Only] != asked.Qtype {
		b = Behaviour{}
	}
	answer := new(dns.Msg).SetReply(question)
	addresses, isHost := s.records[dns.CanonicalName(asked.Name)]
	services, isService := s.services[dns.CanonicalName(asked.Name)]
	size := dns.MinMsgSize
	if extended := question.IsEdns0(); extended != nil {
		size = int(extended.UDPSize())
		answer.SetEdns0(dns.DefaultMsgSize, false)
	}
	switch {
	case b.Error != 0:
		answer.Rcode = int(b.Error)
	case !isHost && !isService:
		answer.Rcode = dns.RcodeNameError
	case b.Truncate && !tcp:
		answer.Truncated = true
	default:
		answer.Answer = append(records(asked, addresses), places(asked, services)...)
		if n := len(answer.Answer); b.Rotate && n > 0 {
			first := s.turn % n
			answer.Answer = slices.Concat(answer.Answer[first:], answer.Answer[:first])
			s.turn++
		}
	}
	if !tcp {
		answer.Truncate(size)
	}
	return answer, b
}

// records returns those of the addresses that are of the type that was asked
// for.
func records(asked dns.Question, addresses []netip.Addr) (found []dns.RR) {
	header := dns.RR_Header{Name: asked.Name, Rrtype: asked.Qtype, Class: dns.ClassINET}
	for _, a := range addresses {
		switch {
		case asked.Qtype == dns.TypeA && a.Is4():
			found = append(found, &dns.A{Hdr: header, A: a.AsSlice()})
		case asked.Qtype == dns.TypeAAAA && !a.Is4():
			found = append(found, &dns.AAAA{Hdr: header, AAAA: a.AsSlice()})
		}
	}
	return found
}

// places returns the services where those are what was asked for.
func places(asked dns.Question, services []Service) (found []dns.RR) {
	if asked.Qtype != dns.TypeSRV {
		return nil
	}
	header := dns.RR_Header{Name: asked.Name, Rrtype: asked.Qtype, Class: dns.ClassINET}
	for _, at := range services {
		found = append(found, &dns.SRV{Hdr: header, Port: at.Port, Target: dns.Fqdn(at.Host)})
	}
	return found
}

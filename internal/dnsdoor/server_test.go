package dnsdoor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask returns the answer to one question, over "udp" or "tcp".
func ask(t *testing.T, s *Server, network, name string, question uint16) (*dns.Msg, error) {
	t.Helper()
	client := dns.Client{Net: network, Timeout: 2 * time.Second}
	m := new(dns.Msg).SetQuestion(name, question)
	answer, _, err := client.Exchange(m, s.Addr().String())
	return answer, err
}

// addresses returns those of an answer, in its order.
func addresses(m *dns.Msg) (found []string) {
	for _, r := range m.Answer {
		switch r := r.(type) {
		case *dns.A:
			found = append(found, r.A.String())
		case *dns.AAAA:
			found = append(found, r.AAAA.String())
		}
	}
	return found
}

func TestAnswers(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.0.%d", i)
	}
	for _, tc := range []struct {
		name      string
		behaviour Behaviour
		network   string
		asked     string
		question  uint16
		code      int
		truncated bool
		want      []string
	}{
		{name: "A", asked: "door.test.", question: dns.TypeA, want: []string{"10.0.0.2", "10.0.0.1"}},
		{name: "AAAA", asked: "door.test.", question: dns.TypeAAAA, want: []string{"2001:db8::1"}},
		{name: "over TCP", network: "tcp", asked: "door.test.", question: dns.TypeA, want: []string{"10.0.0.2", "10.0.0.1"}},
		{name: "upper case", asked: "Door.TEST.", question: dns.TypeA, want: []string{"10.0.0.2", "10.0.0.1"}},
		{name: "no such name", asked: "other.test.", question: dns.TypeA, code: dns.RcodeNameError},
		{name: "removed", asked: "gone.test.", question: dns.TypeA, code: dns.RcodeNameError},
		{name: "no address", asked: "empty.test.", question: dns.TypeA},
		{name: "not an address", asked: "door.test.", question: dns.TypeMX},
		{name: "server failure", behaviour: Behaviour{Error: ServerFailure}, asked: "door.test.", question: dns.TypeA, code: dns.RcodeServerFailure},
		{name: "only AAAA fails, A", behaviour: Behaviour{Only: "AAAA", Error: Refused}, asked: "door.test.", question: dns.TypeA, want: []string{"10.0.0.2", "10.0.0.1"}},
		{name: "only AAAA fails, AAAA", behaviour: Behaviour{Only: "AAAA", Error: Refused}, asked: "door.test.", question: dns.TypeAAAA, code: dns.RcodeRefused},
		{name: "truncated", behaviour: Behaviour{Truncate: true}, asked: "door.test.", question: dns.TypeA, truncated: true},
		{name: "never truncated over TCP", behaviour: Behaviour{Truncate: true}, network: "tcp", asked: "door.test.", question: dns.TypeA, want: []string{"10.0.0.2", "10.0.0.1"}},
		// 12 bytes of header, 15 of question, and 16 for each record with a
		// pointer for its name: (512 - 27) / 16 = 30.3.
		{name: "too large", asked: "many.test.", question: dns.TypeA, truncated: true, want: many[:30]},
		{name: "large over TCP", network: "tcp", asked: "many.test.", question: dns.TypeA, want: many},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := Listen(t)
			s.Set("door.test", "10.0.0.2", "2001:db8::1", "10.0.0.1")
			s.Set("many.test.", many...)
			s.Set("empty.test.")
			s.Set("gone.test.", "10.0.0.1")
			s.Remove("GONE.test")
			s.Behave(tc.behaviour)
			m, err := ask(t, s, tc.network, tc.asked, tc.question)
			if err != nil {
				t.Fatal(err)
			}
			if m.Rcode != tc.code || m.Truncated != tc.truncated || !slices.Equal(addresses(m), tc.want) {
				t.Errorf("code %d, truncated: %v, %v, want %d, %v, %v", m.Rcode, m.Truncated, addresses(m), tc.code, tc.truncated, tc.want)
			}
			want := Counts{Answers: 1, UDP: 1}
			if tc.network == "tcp" {
				want.UDP, want.TCP = 0, 1
			}
			switch tc.question {
			case dns.TypeA:
				want.A = 1
			case dns.TypeAAAA:
				want.AAAA = 1
			}
			s.Close() // waits until the answer is counted
			if got := s.Counts(); got != want {
				t.Errorf("counted %+v, want %+v", got, want)
			}
		})
	}
}

func TestRotation(t *testing.T) {
	s := Listen(t)
	s.Set("door.test.", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	s.Behave(Behaviour{Rotate: true})
	for _, want := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.1"} {
		m, err := ask(t, s, "udp", "door.test.", dns.TypeA)
		if err != nil {
			t.Fatal(err)
		}
		if got := addresses(m); len(got) != 3 || got[0] != want {
			t.Errorf("answered %v, want all three, %s first", got, want)
		}
	}
	// A set of others is seen by the next question.
	s.Set("door.test.", "10.0.0.9")
	if m, err := ask(t, s, "udp", "door.test.", dns.TypeA); err != nil || !slices.Equal(addresses(m), []string{"10.0.0.9"}) {
		t.Errorf("answered %v, %v, want 10.0.0.9", m, err)
	}
}

func TestSilentAndSlow(t *testing.T) {
	for _, tc := range []struct {
		name      string
		behaviour Behaviour
	}{
		{"silent", Behaviour{Silent: true}},
		{"slow", Behaviour{Delay: time.Hour}},
	} {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(tc.name+" over "+network, func(t *testing.T) {
				s := Listen(t)
				s.Set("door.test.", "10.0.0.1")
				s.Behave(tc.behaviour)
				conn, err := net.Dial(network, s.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				asker := dns.Conn{Conn: conn}
				if err := asker.WriteMsg(new(dns.Msg).SetQuestion("door.test.", dns.TypeA)); err != nil {
					t.Fatal(err)
				}
				conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				if m, err := asker.ReadMsg(); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("read %v, %v, want no answer in time", m, err)
				}
				// Close waits for no answer that is still to come.
				s.Close()
				if got := s.Counts(); got.UDP+got.TCP != 1 || got.Answers != 0 {
					t.Errorf("counted %+v, want a question without an answer", got)
				}
			})
		}
	}
}

func TestDelay(t *testing.T) {
	s := Listen(t)
	s.Set("door.test.", "10.0.0.1")
	s.Behave(Behaviour{Delay: 5 * time.Millisecond})
	began := time.Now()
	if _, err := ask(t, s, "udp", "door.test.", dns.TypeA); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 5*time.Millisecond {
		t.Errorf("answered after %v, want at least 5 ms", took)
	}
}

func TestSetRefusesWhatIsNoAddress(t *testing.T) {
	s := Listen(t)
	defer func() {
		if recover() == nil {
			t.Error("a name was given an address that is none")
		}
	}()
	s.Set("door.test.", "10.0.0")
}

func TestPortIsOfThisHost(t *testing.T) {
	if a := Listen(t).Addr(); a.Addr() != netip.MustParseAddr("127.0.0.1") || a.Port() == 0 {
		t.Errorf("listens at %v", a)
	}
}

func TestServices(t *testing.T) {
	s := ListenOn(t, netip.MustParseAddrPort("127.0.0.1:0"))
	s.SetServices("_http._tcp.test", Service{"a.test", 8080}, Service{"b.test.", 80})
	answer, err := ask(t, s, "udp", "_http._tcp.test.", dns.TypeSRV)
	if err != nil || len(answer.Answer) != 2 {
		t.Fatalf("got %v, %v; want two services", answer, err)
	}
	for i, want := range []string{"a.test.:8080", "b.test.:80"} {
		if at := answer.Answer[i].(*dns.SRV); fmt.Sprintf("%s:%d", at.Target, at.Port) != want {
			t.Errorf("got %v, want %s", at, want)
		}
	}
	if answer, err := ask(t, s, "udp", "_http._tcp.test.", dns.TypeA); err != nil || answer.Rcode != dns.RcodeSuccess || len(answer.Answer) > 0 {
		t.Errorf("addresses of a service: %v, %v; want none", answer, err)
	}
	s.SetServices("_http._tcp.test")
	if answer, err := ask(t, s, "udp", "_http._tcp.test.", dns.TypeSRV); err != nil || answer.Rcode != dns.RcodeSuccess || len(answer.Answer) > 0 {
		t.Errorf("got %v, %v; want an empty answer", answer, err)
	}
	s.Remove("_http._tcp.test")
	if answer, err := ask(t, s, "udp", "_http._tcp.test.", dns.TypeSRV); err != nil || answer.Rcode != dns.RcodeNameError {
		t.Errorf("got %v, %v; want no such name", answer, err)
	}
}

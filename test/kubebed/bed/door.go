package bed

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// DoorKind is how a door learns of other endpoints.
type DoorKind uint8

// The kinds of doors.
const (
	// HAProxyReloading is a HAProxy that is given a new configuration and is
	// reloaded, as the routers of OpenShift 3 and 4 do.
	HAProxyReloading DoorKind = iota
	// HAProxyRuntime is a HAProxy whose servers are changed over its runtime
	// socket, as newer ingress controllers do. It is never reloaded.
	HAProxyRuntime
	// NGINXReloading is an nginx that is given a new configuration and is reloaded.
	NGINXReloading
	// NGINXFixed is an nginx that passes requests to the address of the Service,
	// which never changes: kube-proxy spreads its connections over the pods. So
	// it needs no change.
	NGINXFixed
)

// String returns the name of the kind.
func (k DoorKind) String() string {
	return [...]string{"haproxy-reloading", "haproxy-runtime", "nginx-reloading", "nginx-fixed"}[k]
}

// Door is a real door in front of a Service.
type Door struct {
	Kind   DoorKind
	HTTP   string // "127.0.0.1:port"
	HTTPS  string // "127.0.0.1:port", whose certificate names localhost
	CAFile string // what it is to be verified with

	reloads atomic.Int64
}

// slots is how many endpoints a HAProxyRuntime can have.
const slots = 16

// manyRequests is how many requests a connection to an nginx may carry, so that
// only a reload closes any.
const manyRequests = 1_000_000

// haproxyBackend is what routers tell HAProxy: a server that refuses a
// connection is no reason to fail, another one is asked at once.
const haproxyBackend = "\tbalance roundrobin\n\toption redispatch 1\n\tretries 3\n"

// Door starts a door in front of a Service, which has the endpoints that are
// ready now, and follows it. It ends with the test.
func (b *Bed) Door(kind DoorKind, namespace, service string) *Door {
	b.t.Helper()
	addresses, err := b.endpoints(namespace, service)
	if err != nil {
		b.t.Fatalf("reading the endpoints of %q: %v", service, err)
	}
	d := &Door{Kind: kind}
	switch kind {
	case HAProxyReloading:
		h := testbed.HAProxy(b.t, testbed.HAProxyOptions{Backends: orNone(addresses), Backend: haproxyBackend, Urgent: true})
		d.HTTP, d.HTTPS, d.CAFile = h.HTTP, h.HTTPS, h.CAFile
		b.feed(namespace, service, addresses, func(addresses []string) {
			h.SetBackends(orNone(addresses))
			h.Reload()
			d.reloads.Add(1)
		})
	case HAProxyRuntime:
		h := testbed.HAProxy(b.t, testbed.HAProxyOptions{Slots: slots, Backend: haproxyBackend, Urgent: true})
		d.HTTP, d.HTTPS, d.CAFile = h.HTTP, h.HTTPS, h.CAFile
		s := &slotted{b: b, h: h, in: map[string]int{}}
		s.fill(addresses)
		b.feed(namespace, service, addresses, s.fill)
	case NGINXReloading:
		n := testbed.NGINX(b.t, testbed.NGINXOptions{Backends: orNone(addresses), KeepaliveRequests: manyRequests, Urgent: true})
		d.HTTP, d.HTTPS, d.CAFile = n.HTTP, n.HTTPS, n.CAFile
		b.feed(namespace, service, addresses, func(addresses []string) {
			n.SetBackends(orNone(addresses))
			n.Reload()
			d.reloads.Add(1)
		})
	case NGINXFixed:
		n := testbed.NGINX(b.t, testbed.NGINXOptions{
			// A connection is of one pod, and the one that was used last is used
			// next: one that lasts would bear all the load.
			Backends: []string{b.serviceAddress(namespace, service)}, Upstream: "keepalive_requests 20;",
			KeepaliveRequests: manyRequests, Urgent: true,
		})
		d.HTTP, d.HTTPS, d.CAFile = n.HTTP, n.HTTPS, n.CAFile
	}
	return d
}

// Reloads returns how often the door was reloaded. It may be called from any
// goroutine.
func (d *Door) Reloads() int { return int(d.reloads.Load()) }

// orNone returns the addresses, or one where nobody answers: a door cannot be
// without any.
func orNone(addresses []string) []string {
	if len(addresses) == 0 {
		return []string{"127.0.0.1:1"}
	}
	return addresses
}

// ready returns the addresses of the ready endpoints of all slices of a
// Service, in order.
func ready(all []*discovery.EndpointSlice) []string {
	var addresses []string
	for _, slice := range all {
		port := strconv.Itoa(podPort)
		for _, p := range slice.Ports {
			if p.Port != nil {
				port = strconv.Itoa(int(*p.Port))
			}
		}
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready && len(e.Addresses) > 0 {
				addresses = append(addresses, net.JoinHostPort(e.Addresses[0], port))
			}
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// feed calls change with the ready endpoints of a Service whenever they are not
// those of before, one call at a time. What changes during a call is one
// change. It ends with the test.
func (b *Bed) feed(namespace, service string, before []string, change func([]string)) {
	b.t.Helper()
	b.follow(cache.NewFilteredListWatchFromClient(b.Client.DiscoveryV1().RESTClient(), "endpointslices", namespace,
		func(o *meta.ListOptions) { o.LabelSelector = discovery.LabelServiceName + "=" + service }),
		&discovery.EndpointSlice{}, func(all []any) {
			list := make([]*discovery.EndpointSlice, len(all))
			for i := range all {
				list[i] = all[i].(*discovery.EndpointSlice)
			}
			if now := ready(list); !slices.Equal(now, before) {
				before = now
				change(now)
			}
		})
}

// slotted fills the slots of a HAProxy.
type slotted struct {
	b  *Bed
	h  *testbed.HAProxyServer
	in map[string]int // slot of each address
}

// fill makes the addresses those that the slots have. A server that goes takes
// no new request, and those that it has end.
func (s *slotted) fill(addresses []string) {
	for address, slot := range s.in {
		if !slices.Contains(addresses, address) {
			s.tell("set server servers/slot%d state maint", slot)
			delete(s.in, address)
		}
	}
	for _, address := range addresses {
		if _, there := s.in[address]; there {
			continue
		}
		slot := s.free()
		if slot == 0 {
			s.b.t.Errorf("giving %q a slot of HAProxy: all %d are taken", address, slots)
			return
		}
		ip, port, _ := net.SplitHostPort(address)
		s.tell("set server servers/slot%d addr %s port %s", slot, ip, port)
		s.tell("set server servers/slot%d state ready", slot)
		s.in[address] = slot
	}
}

// free returns a slot that nobody has, 0 if there is none.
func (s *slotted) free() int {
	taken := map[int]bool{}
	for _, slot := range s.in {
		taken[slot] = true
	}
	for slot := 1; slot <= slots; slot++ {
		if !taken[slot] {
			return slot
		}
	}
	return 0
}

// tell gives HAProxy a command. What it answers is a complaint, but for what
// it says of a new address.
func (s *slotted) tell(format string, args ...any) {
	command := fmt.Sprintf(format, args...)
	answer, err := s.h.Ask(command)
	if err != nil {
		s.b.t.Error(err)
		return
	}
	if answer = strings.Trim(answer, "> \n"); answer != "" && !strings.Contains(command, " addr ") {
		s.b.t.Errorf("HAProxy answered %q with %q", command, answer)
	}
}

// serviceAddress returns the address of a Service, at which kube-proxy is there
// for it on return.
func (b *Bed) serviceAddress(namespace, service string) string {
	b.t.Helper()
	b.startProxy()
	ctx, cancel := b.context()
	defer cancel()
	s, err := b.Client.CoreV1().Services(namespace).Get(ctx, service, meta.GetOptions{})
	if err != nil {
		b.t.Fatalf("reading the Service %q: %v", service, err)
	}
	address := net.JoinHostPort(s.Spec.ClusterIP, strconv.Itoa(servicePort))
	testbed.WaitFor(b.t, "kube-proxy to serve "+address, startLimit, func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		return err == nil && c.Close() == nil
	})
	return address
}

// startProxy starts kube-proxy, unless it runs.
func (b *Bed) startProxy() {
	b.t.Helper()
	const name = "kube-proxy"
	b.mutex.Lock()
	runs := b.parts[name] != nil
	b.mutex.Unlock()
	if runs {
		return
	}
	b.launch(name,
		"--kubeconfig="+b.kubeconfig(name, b.server, b.authority, b.tokens["system:"+name], "default"),
		"--hostname-override="+node, "--proxy-mode=iptables", "--iptables-min-sync-period=10ms",
		"--healthz-bind-address="+testbed.FreeAddress(b.t), "--metrics-bind-address="+testbed.FreeAddress(b.t),
		// What it would change is of the whole machine.
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		"--iptables-localhost-nodeports=false",
	)
}

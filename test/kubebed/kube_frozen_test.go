package kubebed

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/steadyprobe/steadyprobe/kube"
)

// icebox is a relay in front of the API server whose connections can be frozen:
// nothing passes them any more, and they stay open, as with a firewall that has
// forgotten them.
type icebox struct {
	t       *testing.T
	address string
	server  string

	mu   sync.Mutex
	ice  chan struct{} // closed when those that are open are frozen
	open []net.Conn
	lost int
}

func newIcebox(t *testing.T, server string) *icebox {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &icebox{t: t, address: l.Addr().String(), server: server, ice: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { i.relay(from, &serving) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		i.mu.Lock()
		for _, c := range i.open {
			c.Close()
		}
		i.mu.Unlock()
		serving.Wait()
	})
	return i
}

func (i *icebox) relay(from net.Conn, serving *sync.WaitGroup) {
	to, err := net.Dial("tcp", i.server)
	if err != nil {
		from.Close()
		return
	}
	i.mu.Lock()
	i.open = append(i.open, from, to)
	ice := i.ice
	i.mu.Unlock()
	pass := func(to, from net.Conn) {
		buffer := make([]byte, 1<<15)
		for {
			n, err := from.Read(buffer)
			select {
			case <-ice: // what comes is thrown away
				if err == nil {
					i.mu.Lock()
					i.lost++
					i.mu.Unlock()
					continue
				}
			default:
				if n > 0 {
					_, err = to.Write(buffer[:n])
				}
			}
			if err != nil {
				to.Close()
				return
			}
		}
	}
	serving.Go(func() { pass(from, to) })
	pass(to, from)
}

// freeze freezes the connections that are open; new ones pass.
func (i *icebox) freeze() {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.ice)
	i.ice = make(chan struct{})
	i.lost = 0
}

// thrownAway returns how often something came on a frozen connection.
func (i *icebox) thrownAway() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.lost
}

// kubeFrozen proves that connections that die in silence, the watch's too, are
// noticed.
func kubeFrozen(t *testing.T, r *rig) {
	config := r.Rest()
	box := newIcebox(t, strings.TrimPrefix(config.Host, "https://"))
	c, err := clientcmd.LoadFromFile(r.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range c.Clusters {
		one.Server = "https://" + box.address
	}
	file := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	o := r.options()
	o.LeaseDuration = 6 * time.Second // a renewal that hangs ends after 1.3 s, of the 4 s that there are
	w := r.open(r.cluster(kube.ClusterOptions{Kubeconfig: file}), o)
	r.await(w, all(2))
	e := r.campaign(w)
	r.elected(e)
	box.freeze()
	began := time.Now()
	r.Kubectl("-n", r.shop, "scale", "deployment/web", "--replicas=4")
	r.await(w, all(4))
	took := time.Since(began)
	t.Logf("4 endpoints are seen %v after all connections froze", took.Round(time.Millisecond))
	t.Logf("%d times something came on a frozen connection", box.thrownAway())
	if box.thrownAway() == 0 {
		t.Error("nothing came on a frozen connection: this has proved nothing")
	}
	if took > 25*time.Second {
		t.Errorf("4 endpoints are seen %v after all connections froze, want it before the watch ends by itself", took)
	}
	if spans := e.spans(); len(spans) != 1 || !e.leads() {
		t.Errorf("it has led %d times, want once and on: one connection of several is no reason to lose the lease", len(spans))
	}
	// The endpoints are followed again, without being asked for. (Not back to 2,
	// which is what the frozen watch had seen.)
	r.Kubectl("-n", r.shop, "scale", "deployment/web", "--replicas=3")
	began = time.Now()
	r.await(w, all(3))
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the next change is seen after %v, as if the server had to be asked again", took)
	}
}

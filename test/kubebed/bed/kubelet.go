package bed

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// node is the name of the only node.
const node = "bed"

// kubelet is the stand-in for a kubelet: it runs the pods that are bound to its
// node as processes of this machine, each at an address of its own.
type kubelet struct {
	b *Bed

	mutex   sync.Mutex
	pods    map[types.UID]*pod // that run, or are about to
	address netip.Addr         // that was given last
}

// startKubelet makes the node and begins to run pods. It ends with the bed.
func (b *Bed) startKubelet() {
	b.t.Helper()
	k := &kubelet{b: b, pods: map[types.UID]*pod{}, address: b.claimAddresses()}
	ctx, cancel := b.context()
	defer cancel()
	if _, err := b.Client.CoreV1().Nodes().Create(ctx, theNode(), meta.CreateOptions{}); err != nil {
		b.t.Fatalf("making the node: %v", err)
	}
	b.follow(cache.NewListWatchFromClient(b.Client.CoreV1().RESTClient(), "pods", meta.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", node)), &core.Pod{}, k.seen)
}

// claimAddresses returns an address after which 4,000 are this bed's until it
// ends. Beds that run at the same time share the network: who listens at the
// first one has the others.
func (b *Bed) claimAddresses() netip.Addr {
	b.t.Helper()
	const claims = 16
	network := podNetwork.Addr().As4()
	for i := range claims {
		network[2] = byte(i * 256 / claims)
		first := netip.AddrFrom4(network).Next()
		claim, err := net.Listen("tcp", netip.AddrPortFrom(first, 1).String())
		if err != nil {
			continue
		}
		b.t.Cleanup(func() { _ = claim.Close() })
		return first
	}
	b.t.Fatalf("finding addresses for pods: %d beds run already", claims)
	return netip.Addr{}
}

func theNode() *core.Node {
	room := core.ResourceList{
		core.ResourceCPU: resource.MustParse("64"), core.ResourceMemory: resource.MustParse("64Gi"), core.ResourcePods: resource.MustParse("1000"),
	}
	return &core.Node{
		ObjectMeta: meta.ObjectMeta{Name: node, Labels: map[string]string{core.LabelHostname: node}},
		Status: core.NodeStatus{
			Capacity: room, Allocatable: room,
			Addresses:  []core.NodeAddress{{Type: core.NodeInternalIP, Address: podNetwork.Addr().Next().String()}},
			Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
}

// seen deals with all pods of the node as they are now.
func (k *kubelet) seen(all []any) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	there := map[types.UID]bool{}
	for _, o := range all {
		o := o.(*core.Pod)
		there[o.UID] = true
		p := k.pods[o.UID]
		if p == nil {
			if o.Status.Phase == core.PodFailed || o.Status.Phase == core.PodSucceeded {
				continue
			}
			p = k.begin(o)
		}
		if o.DeletionTimestamp != nil {
			grace := time.Duration(0)
			if seconds := o.DeletionGracePeriodSeconds; seconds != nil {
				grace = time.Duration(*seconds) * time.Second
			}
			p.end(grace)
		}
	}
	for id, p := range k.pods {
		if !there[id] { // it was taken away at once
			p.end(0)
		}
	}
}

// begin runs a pod. The caller holds the mutex.
func (k *kubelet) begin(o *core.Pod) *pod {
	k.address = k.address.Next()
	p := &pod{k: k, object: o.DeepCopy(), address: k.address, ending: make(chan struct{})}
	k.pods[o.UID] = p
	k.b.others.Go(func() {
		if err := p.run(k.b.ctx); err != nil && k.b.ctx.Err() == nil {
			k.b.t.Errorf("running the pod %q: %v", p.object.Name, err)
		}
		k.mutex.Lock()
		defer k.mutex.Unlock()
		delete(k.pods, p.object.UID)
	})
	return p
}

// insist calls do again and again until it has no complaint, or ctx ends: the
// API server may be away. A pod that is gone is no complaint.
func insist(ctx context.Context, what string, do func(context.Context) error) error {
	const pause = 100 * time.Millisecond
	for {
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := do(call)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(pause):
		}
	}
}

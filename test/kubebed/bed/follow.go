package bed

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// followed is a store that says when it changes.
type followed struct {
	cache.Store
	news   chan struct{} // holds one where there are some
	first  chan struct{} // closed when all that there was is in the store
	synced sync.Once
}

// tell passes the error of a change on.
func (f *followed) tell(err error) error {
	select {
	case f.news <- struct{}{}:
	default: // there are some already
	}
	return err
}

func (f *followed) Add(o any) error    { return f.tell(f.Store.Add(o)) }
func (f *followed) Update(o any) error { return f.tell(f.Store.Update(o)) }
func (f *followed) Delete(o any) error { return f.tell(f.Store.Delete(o)) }

func (f *followed) Replace(all []any, version string) error {
	err := f.Store.Replace(all, version)
	f.synced.Do(func() { close(f.first) })
	return f.tell(err)
}

// follow calls changed with all objects that there are whenever they are not
// what they were, one call at a time: what changes during a call is one change.
// It returns when the first call is about to be made, and ends with the test.
//
// It does not wait as long as client-go's informers do until it asks an API
// server that was away again, up to a minute after two outages in a row: tests
// would have to wait for that too.
func (b *Bed) follow(objects cache.ListerWatcher, kind runtime.Object, changed func([]any)) {
	b.t.Helper()
	f := &followed{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), news: make(chan struct{}, 1), first: make(chan struct{})}
	reflector := cache.NewReflectorWithOptions(objects, kind, f, cache.ReflectorOptions{
		Name: "bed", Backoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 10, Cap: time.Second},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { reflector.RunWithContext(ctx) })
	over.Go(func() {
		for {
			select {
			case <-f.news:
				changed(f.List())
			case <-ctx.Done():
				return
			}
		}
	})
	b.t.Cleanup(func() { cancel(); over.Wait() })
	testbed.WaitFor(b.t, "the first answer to a watch", callLimit, func() bool {
		select {
		case <-f.first:
			return true
		default:
			return false
		}
	})
}

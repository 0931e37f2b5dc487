package demo

import (
	"context"
	"net/http"
)

// reloader is the door "reloading": a proxy with a fault that is well known.
// It hears late of a change of the endpoints, and until then routes to backends
// that are gone. Then it starts anew to follow it: the old worker stands still
// while the configuration is loaded, is ended with all its connections, and the
// new one takes its time to come.
type reloader struct {
	entrance *entrance
	proxy    *proxy
	backends *Backends
	timing   timing
}

// run serves until ctx is done.
func (r *reloader) run(ctx context.Context) {
	for {
		endpoints, changed := r.backends.watch()
		frozen := make(chan struct{})
		listener := r.entrance.listener()
		worker := serve(listener, freezable(frozen, r.proxy.handler(func() []string { return endpoints })), r.proxy.log)
		select {
		case <-ctx.Done():
		case <-changed:
			sleep(ctx, r.timing.learn)
			r.proxy.logger.Debug("the door reloads, because its backends changed")
			close(frozen)
			_ = listener.Close()
			sleep(ctx, r.timing.load)
		}
		worker.close()
		r.proxy.transport.CloseIdleConnections() // the old worker's
		if !sleep(ctx, r.timing.reload) {
			return
		}
	}
}

// freezable answers no request that comes when frozen is closed. They hang
// until their connection is closed.
func freezable(frozen <-chan struct{}, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		select {
		case <-frozen:
			<-request.Context().Done()
			panic(http.ErrAbortHandler)
		default:
			handler.ServeHTTP(w, request)
		}
	})
}

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/steadyprobe/steadyprobe/web"
)

// listeners are the sockets of the endpoints. Main is empty where the toolkit
// must open them itself.
type listeners struct {
	main   []net.Listener
	health net.Listener
}

func (l *listeners) close() {
	for _, m := range l.main {
		_ = m.Close()
	}
	if l.health != nil {
		_ = l.health.Close()
	}
}

func (l *listeners) addresses() (main []net.Addr, health net.Addr) {
	for _, m := range l.main {
		main = append(main, m.Addr())
	}
	if l.health != nil {
		health = l.health.Addr()
	}
	return main, health
}

// listen opens the sockets before anything else runs, so that a port in use is
// an error at once. Sockets of systemd and vsock are the toolkit's business.
func (d *daemon) listen() (*listeners, error) {
	l := &listeners{}
	flags := d.options.Web
	if *flags.WebConfigFile != "" {
		if err := toolkit.Validate(*flags.WebConfigFile); err != nil {
			return nil, fmt.Errorf("reading --web.config.file %q: %w", *flags.WebConfigFile, err)
		}
	}
	if !*flags.WebSystemdSocket {
		for _, address := range *flags.WebListenAddresses {
			if strings.HasPrefix(address, "vsock://") {
				l.close()
				l.main = nil
				break
			}
			m, err := listenOn("--web.listen-address", address)
			if err != nil {
				l.close()
				return nil, err
			}
			l.main = append(l.main, m)
		}
	}
	if address := d.options.HealthAddress; address != "" {
		h, err := listenOn("--web.health.listen-address", address)
		if err != nil {
			l.close()
			return nil, err
		}
		l.health = h
	}
	return l, nil
}

// listenOn opens the socket that a flag asks for.
func listenOn(flag, address string) (net.Listener, error) {
	remedy := "write HOST:PORT with an address of this machine, such as :10115 or 127.0.0.1:10115"
	if address == "" {
		// To the net package this is any port of all addresses, to a user a
		// variable that is not set.
		return nil, fmt.Errorf("listening on %s: the address is empty; %s", flag, remedy)
	}
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		remedy = "choose another address, or stop who uses it"
	}
	var operation *net.OpError
	if errors.As(err, &operation) {
		err = operation.Err // the rest repeats the address
	}
	return nil, fmt.Errorf("listening on %s %q: %w; %s", flag, address, err, remedy)
}

// endpoints are the servers of a daemon.
type endpoints struct {
	logger  *slog.Logger
	servers []*http.Server
	running sync.WaitGroup
	failed  chan error // gets the first error of a server that fails
}

// serve begins to answer. Each socket has a server of its own, because the
// toolkit sets a server up again for each socket, and would report that one
// has failed only when all have.
func (d *daemon) serve(l *listeners) (*endpoints, error) {
	logger := d.options.Logger
	health := web.Health{
		SinceWake: func() time.Duration { return d.engine.clock.Now().Sub(d.engine.pacing.woke()) },
		Ready:     d.ready.Load,
	}
	var reload func(context.Context) (string, error)
	if d.options.Lifecycle {
		reload = d.reloader.ask
	}
	handler, err := web.New(web.Options{
		Reload:       reload,
		Logger:       logger,
		Gatherer:     d.exporter,
		Health:       health,
		Profiles:     d.options.Profiles,
		Config:       func() ([]byte, error) { return d.state.Load().config.Masked(), nil },
		Status:       d.viewStatus,
		Targets:      d.viewTargets,
		Target:       d.viewTargetNamed,
		Churns:       d.churns.view,
		Lifecycle:    d.options.Lifecycle,
		ControlChurn: d.churns.control,
		Discovery:    d.viewSources,
		Distribution: d.viewDistribution,
		Timeline:     d.viewTimeline,
	})
	if err != nil {
		return nil, err
	}
	plain, err := web.NewHealth(health)
	if err != nil {
		return nil, err
	}
	e := &endpoints{logger: logger, failed: make(chan error, 1)}
	for _, m := range l.main {
		e.start(handler, func(s *http.Server) error { return toolkit.Serve(m, s, d.options.Web, logger) })
	}
	if len(l.main) == 0 {
		e.start(handler, func(s *http.Server) error { return toolkit.ListenAndServe(s, d.options.Web, logger) })
	}
	if l.health != nil {
		logger.Info("Listening on", "address", l.health.Addr().String(), "serves", "health only")
		e.start(plain, func(s *http.Server) error { return s.Serve(l.health) })
	}
	if d.options.Listening != nil {
		d.options.Listening(l.addresses())
	}
	return e, nil
}

func (e *endpoints) start(h http.Handler, serve func(*http.Server) error) {
	s := web.Server(h, e.logger)
	e.servers = append(e.servers, s)
	e.running.Go(func() {
		err := serve(s)
		if err == nil || errors.Is(err, http.ErrServerClosed) {
			return
		}
		select {
		case e.failed <- fmt.Errorf("serving: %w", err):
		default:
		}
	})
}

// close lets requests that are being answered end until ctx is done, cuts off
// the others, and waits for the servers.
func (e *endpoints) close(ctx context.Context) {
	for _, s := range e.servers {
		e.running.Go(func() {
			if err := s.Shutdown(ctx); err != nil {
				e.logger.Warn("Some requests to the endpoint were cut off", "err", err)
				_ = s.Close()
			}
		})
	}
	e.running.Wait()
}

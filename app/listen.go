package app

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
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
		m.Close()
	}
	if l.health != nil {
		l.health.Close()
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
			return nil, fmt.Errorf("reading %q: %w", *flags.WebConfigFile, err)
		}
	}
	if !*flags.WebSystemdSocket {
		for _, address := range *flags.WebListenAddresses {
			if strings.HasPrefix(address, "vsock://") {
				l.close()
				l.main = nil
				break
			}
			m, err := net.Listen("tcp", address)
			if err != nil {
				l.close()
				return nil, fmt.Errorf("listening on --web.listen-address %q: %w; choose another address, or stop who uses it", address, err)
			}
			l.main = append(l.main, m)
		}
	}
	if address := d.options.HealthAddress; address != "" {
		h, err := net.Listen("tcp", address)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("listening on --web.health.listen-address %q: %w; choose another address, or stop who uses it", address, err)
		}
		l.health = h
	}
	return l, nil
}

// serve begins to answer. The channel gets the error of an endpoint that fails.
func (d *daemon) serve(l *listeners) <-chan error {
	failed := make(chan error, 2)
	logger := d.options.Logger
	health := web.Health{
		SinceWake: func() time.Duration { return d.engine.clock.Now().Sub(d.engine.pacer.Woke()) },
		Ready:     d.ready.Load,
	}
	handler, err := web.New(web.Options{
		Logger:   logger,
		Gatherer: d.exporter,
		Health:   health,
		Version:  d.options.Version,
		Config:   func() ([]byte, error) { return d.config.Masked(), nil },
		Targets:  d.page,
	})
	if err != nil {
		failed <- err
		return failed
	}
	report := func(err error) {
		if err != nil && !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serving: %w", err)
		}
	}
	d.server = web.Server(handler, logger)
	go func() {
		if len(l.main) == 0 {
			report(toolkit.ListenAndServe(d.server, d.options.Web, logger))
			return
		}
		report(toolkit.ServeMultiple(l.main, d.server, d.options.Web, logger))
	}()
	if l.health != nil {
		plain, err := web.NewHealth(health)
		if err != nil {
			failed <- err
			return failed
		}
		d.health = web.Server(plain, logger)
		go func() { report(d.health.Serve(l.health)) }()
	}
	if d.options.Listening != nil {
		d.options.Listening(l.addresses())
	}
	return failed
}

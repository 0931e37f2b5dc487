package discovery

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/dns"
	"github.com/prometheus/prometheus/discovery/file"
	"github.com/prometheus/prometheus/discovery/http"
	prometheuskubernetes "github.com/prometheus/prometheus/discovery/kubernetes"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/discovery/kubernetes"
)

// Bounds of what Prometheus does not check: a ticker of 0 would panic.
const (
	leastRefresh = time.Second
	mostRefresh  = 24 * time.Hour
)

// mechanism is one entry of a list such as file_sd_configs.
type mechanism struct {
	name     string // file, http, dns or kubernetes
	identity string // the same for two that find the same
	config   sd.Config
}

// parseMechanisms returns what finds the targets of a source.
func parseMechanisms(d *config.Discovery) (all []mechanism, problems []error) {
	parsers := map[string]func(item) (sd.Config, []error){
		"file_sd_configs":       parseFile,
		"http_sd_configs":       parseHTTP,
		"dns_sd_configs":        parseDNS,
		"kubernetes_sd_configs": parseKubernetes,
	}
	names, settings := d.Mechanisms()
	for i, name := range names {
		for _, entry := range items(settings[i]) {
			c, wrong := parsers[name](entry)
			problems = append(problems, wrong...)
			if len(wrong) > 0 {
				continue
			}
			if files, ok := c.(promconfig.DirectorySetter); ok {
				files.SetDirectory(entry.settings.Folder())
			}
			all = append(all, mechanism{name: c.Name(), identity: name + entry.identity(), config: c})
		}
	}
	return all, problems
}

func parseFile(i item) (sd.Config, []error) {
	c := new(file.SDConfig)
	if problems := i.decode(c); len(problems) > 0 {
		return nil, problems
	}
	return c, i.refresh(c.RefreshInterval)
}

func parseHTTP(i item) (sd.Config, []error) {
	c := new(http.SDConfig)
	if problems := i.decode(c); len(problems) > 0 {
		return nil, problems
	}
	return c, i.refresh(c.RefreshInterval)
}

func parseDNS(i item) (sd.Config, []error) {
	c := new(dns.SDConfig)
	problems := i.decode(c)
	if len(problems) > 0 {
		return nil, problems
	}
	if c.Port < 0 || c.Port > 65535 {
		line, path := i.at("port")
		problems = append(problems, i.problem(line, path, "%d does not exist; write a port from 1 to 65535", c.Port))
	}
	return c, append(problems, i.refresh(c.RefreshInterval)...)
}

// parseKubernetes returns Prometheus's own mechanism, or ours for the roles
// that it does not have.
func parseKubernetes(i item) (sd.Config, []error) {
	if role := child(i.node, "role"); role != nil && kubernetes.IsRole(role.Value) {
		c := new(kubernetes.Config)
		return c, i.decode(c)
	}
	c := new(prometheuskubernetes.SDConfig)
	return c, i.decode(c)
}

// refresh checks how often a source is asked.
func (i item) refresh(interval model.Duration) []error {
	if d := time.Duration(interval); d < leastRefresh || d > mostRefresh {
		line, path := i.at("refresh_interval")
		return []error{i.problem(line, path, "%s is out of range; write a duration from 1s to 1d", interval)}
	}
	return nil
}

// running is a mechanism that finds targets.
type running struct {
	mechanism
	discoverer sd.Discoverer
	metrics    *prometheus.Registry // of this mechanism alone
}

// build makes what finds targets, and starts nothing. The files that the
// settings name are read.
func (m mechanism) build(source string, o *Options, logger *slog.Logger) (*running, error) {
	r := &running{mechanism: m, metrics: prometheus.NewRegistry()}
	refresh := sd.NewRefreshMetrics(prometheus.NewRegistry())
	own := m.config.NewDiscovererMetrics(r.metrics, refresh)
	if err := own.Register(); err != nil {
		return nil, fmt.Errorf("discovering from %q by %s: %w", source, m.name, err)
	}
	var err error
	r.discoverer, err = m.config.NewDiscoverer(sd.DiscovererOptions{
		Logger:            logger,
		Metrics:           own,
		SetName:           source,
		HTTPClientOptions: clientOptions(o),
	})
	if c, ok := m.config.(*prometheuskubernetes.SDConfig); ok && err == nil {
		reach := &kubernetes.Config{APIServer: c.APIServer, KubeConfig: c.KubeConfig, HTTPClientConfig: c.HTTPClientConfig}
		r.discoverer, err = kubernetes.Guard(reach, r.discoverer, r.metrics, logger)
	}
	if err != nil {
		return nil, fmt.Errorf("discovering from %q by %s: %s; look at its settings and at the files that they name", source, m.name, withoutSecrets(err.Error()))
	}
	return r, nil
}

// failureCounters are what the mechanisms count their failures in.
func failureCounters() []string {
	return []string{
		"prometheus_sd_file_read_errors_total",
		"prometheus_sd_file_watcher_errors_total",
		"prometheus_sd_http_failures_total",
		"prometheus_sd_dns_lookup_failures_total",
		"prometheus_sd_kubernetes_failures_total",
		kubernetes.FailuresTotal,
	}
}

// failures returns how often the mechanism has failed.
func (r *running) failures() (n uint64) {
	families, err := r.metrics.Gather()
	if err != nil {
		return 0 // its own metrics are consistent
	}
	for _, f := range families {
		for _, name := range failureCounters() {
			if f.GetName() == name {
				n += uint64(f.GetMetric()[0].GetCounter().GetValue())
			}
		}
	}
	return n
}

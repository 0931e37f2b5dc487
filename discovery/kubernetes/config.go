package kubernetes

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/common/config"
	sd "github.com/prometheus/prometheus/discovery"
	prometheuskubernetes "github.com/prometheus/prometheus/discovery/kubernetes"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// The roles: what is found.
const (
	RoleGateway   = "gateway"   // listeners of Gateways
	RoleHTTPRoute = "httproute" // hosts and paths of HTTPRoutes
	RoleRoute     = "route"     // Routes of OpenShift
)

// IsRole reports whether a role is one of this package.
func IsRole(role string) bool {
	return slices.Contains([]string{RoleGateway, RoleHTTPRoute, RoleRoute}, role)
}

// Config has the settings of Prometheus's kubernetes_sd_configs, as far as they
// make sense for the roles of this package. The zero Config finds nothing.
type Config struct {
	APIServer        promconfig.URL                          `yaml:"api_server,omitempty"`
	Role             string                                  `yaml:"role"`
	KubeConfig       string                                  `yaml:"kubeconfig_file"`
	HTTPClientConfig promconfig.HTTPClientConfig             `yaml:",inline"`
	Namespaces       prometheuskubernetes.NamespaceDiscovery `yaml:"namespaces,omitempty"`
	Selectors        []Selector                              `yaml:"selectors,omitempty"`
}

// Selector limits what is watched to objects of a role that have certain labels
// and fields.
type Selector struct {
	Role  string `yaml:"role,omitempty"`
	Label string `yaml:"label,omitempty"`
	Field string `yaml:"field,omitempty"`
}

var _ sd.Config = (*Config)(nil)

// Name returns the name of the mechanism.
func (*Config) Name() string { return "kubernetes" }

// UnmarshalYAML fills in defaults, and checks what is written as Prometheus
// does.
func (c *Config) UnmarshalYAML(unmarshal func(any) error) error {
	*c = Config{HTTPClientConfig: promconfig.DefaultHTTPClientConfig}
	type plain Config
	if err := unmarshal((*plain)(c)); err != nil {
		return err
	}
	if err := c.HTTPClientConfig.Validate(); err != nil {
		return err
	}
	client := !reflect.DeepEqual(c.HTTPClientConfig, promconfig.DefaultHTTPClientConfig)
	switch server := c.APIServer.URL != nil; {
	case server && c.KubeConfig != "":
		return errors.New("cannot use 'kubeconfig_file' and 'api_server' simultaneously")
	case client && c.KubeConfig != "":
		return errors.New("cannot use a custom HTTP client configuration together with 'kubeconfig_file'")
	case client && !server:
		return errors.New("to use custom HTTP client configuration please provide the 'api_server' URL explicitly")
	case c.Namespaces.IncludeOwnNamespace && (server || c.KubeConfig != ""):
		return errors.New("cannot use 'namespaces.own_namespace' together with 'api_server' or 'kubeconfig_file'")
	}
	return c.checkSelectors()
}

func (c *Config) checkSelectors() error {
	allowed := []string{c.Role}
	if c.Role == RoleHTTPRoute {
		allowed = append(allowed, RoleGateway)
	}
	found := map[string]bool{}
	for _, s := range c.Selectors {
		if found[s.Role] {
			return fmt.Errorf("duplicated selector role: %s", s.Role)
		}
		found[s.Role] = true
		if !slices.Contains(allowed, s.Role) {
			return fmt.Errorf("%s role supports only %s selectors", c.Role, strings.Join(allowed, ", "))
		}
		if _, err := fields.ParseSelector(s.Field); err != nil {
			return err
		}
		if _, err := labels.Parse(s.Label); err != nil {
			return err
		}
	}
	return nil
}

// SetDirectory has relative paths start at dir.
func (c *Config) SetDirectory(dir string) {
	c.HTTPClientConfig.SetDirectory(dir)
	c.KubeConfig = promconfig.JoinDir(dir, c.KubeConfig)
}

// FailuresTotal is the name of the counter of requests to the API that failed.
const FailuresTotal = "sd_kubernetes_resources_failures_total"

// metrics are those of one mechanism.
type metrics struct {
	registerer prometheus.Registerer
	failures   prometheus.Counter
}

// NewDiscovererMetrics returns the metrics of a mechanism.
func (*Config) NewDiscovererMetrics(r prometheus.Registerer, _ sd.RefreshMetricsInstantiator) sd.DiscovererMetrics {
	return newMetrics(r)
}

func newMetrics(r prometheus.Registerer) *metrics {
	return &metrics{registerer: r, failures: prometheus.NewCounter(prometheus.CounterOpts{
		Name: FailuresTotal,
		Help: "Requests to the API that failed.",
	})}
}

// Register implements [sd.DiscovererMetrics].
func (m *metrics) Register() error { return m.registerer.Register(m.failures) }

// Unregister implements [sd.DiscovererMetrics].
func (m *metrics) Unregister() { m.registerer.Unregister(m.failures) }

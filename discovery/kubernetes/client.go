package kubernetes

import (
	"fmt"
	"os"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ownNamespaceFile is where a pod is told the namespace that it runs in.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// client speaks to an API.
type client struct {
	objects dynamic.Interface
	api     discovery.DiscoveryInterface
}

// newClient reads the files that the settings name, and connects to nothing.
func (c *Config) newClient(agent string) (*client, error) {
	config, err := c.rest()
	if err != nil {
		return nil, err
	}
	config.UserAgent = agent
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &client{objects: objects, api: api}, nil
}

// rest says how to reach the API, in the ways that Prometheus has.
func (c *Config) rest() (*rest.Config, error) {
	switch {
	case c.KubeConfig != "":
		return clientcmd.BuildConfigFromFlags("", c.KubeConfig)
	case c.APIServer.URL == nil:
		return rest.InClusterConfig()
	}
	transport, err := promconfig.NewRoundTripperFromConfig(c.HTTPClientConfig, "kubernetes_sd")
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: c.APIServer.String(), Transport: transport}, nil
}

// namespaces returns those that are watched; an empty one is all.
func (c *Config) namespaces() ([]string, error) {
	names := append([]string(nil), c.Namespaces.Names...)
	if c.Namespaces.IncludeOwnNamespace {
		own, err := os.ReadFile(ownNamespaceFile)
		name := strings.TrimSpace(string(own))
		if err == nil && name == "" {
			err = fmt.Errorf("%q is empty", ownNamespaceFile)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the pod's namespace: %w", err)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		names = []string{""}
	}
	return names, nil
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"gopkg.in/yaml.v3"
)

// The fields of Grafana's provisioning files that are used.
type (
	provisionedDashboards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Folder, Type    string
			UpdateIntervalSeconds int `yaml:"updateIntervalSeconds"`
			Options               struct{ Path string }
		}
	}
	provisionedSources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, Type, Access, URL string
			JSONData                struct {
				HTTPMethod   string `yaml:"httpMethod"`
				TimeInterval string `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		}
	}
)

func TestProvisionedDashboards(t *testing.T) {
	var f provisionedDashboards
	provisioned(t, "dashboards/steadyprobe.yml", &f)
	if f.APIVersion != 1 || len(f.Providers) != 1 {
		t.Fatalf("%+v", f)
	}
	if p := f.Providers[0]; p.Name == "" || p.Type != "file" || !filepath.IsAbs(p.Options.Path) {
		t.Errorf("%+v", p)
	}
}

func TestProvisionedSources(t *testing.T) {
	var f provisionedSources
	provisioned(t, "datasources/prometheus.yml", &f)
	if f.APIVersion != 1 || len(f.Datasources) != 1 {
		t.Fatalf("%+v", f)
	}
	if s := f.Datasources[0]; s.Name == "" || s.Type != "prometheus" || s.URL == "" || s.JSONData.TimeInterval == "" {
		t.Errorf("%+v", s)
	}
}

func provisioned(t *testing.T, file string, to any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("provisioning", file))
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(to); err != nil {
		t.Fatalf("reading %q: %v", file, err)
	}
}

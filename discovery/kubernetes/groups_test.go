package kubernetes

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// objectsOf returns the objects of a file.
func objectsOf(t *testing.T, name string) (all []*unstructured.Unstructured) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(data), "\n---\n") {
		o := new(unstructured.Unstructured)
		if err := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096).Decode(&o.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// text returns groups as lines: the source, the common labels, and those of each
// target.
func text(groups map[string]*targetgroup.Group) string {
	var b strings.Builder
	line := func(indent string, set model.LabelSet) {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			if set[name] != "" {
				fmt.Fprintf(&b, "%s%s=%s\n", indent, strings.TrimPrefix(string(name), prefix), set[name])
				indent = strings.Repeat(" ", len(indent))
			}
		}
	}
	for _, source := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintln(&b, source)
		line("    ", groups[source].Labels)
		for _, target := range groups[source].Targets {
			line("  - ", target)
		}
	}
	return b.String()
}

// TestGroups compares the labels of all targets with testdata/ROLE.golden.
func TestGroups(t *testing.T) {
	t.Parallel()
	gateways, httpRoutes, routes := objectsOf(t, "gateways.yml"), objectsOf(t, "httproutes.yml"), objectsOf(t, "routes.yml")
	for _, row := range []struct {
		role    string
		objects [][]*unstructured.Unstructured
	}{
		{RoleGateway, [][]*unstructured.Unstructured{gateways}},
		{RoleHTTPRoute, [][]*unstructured.Unstructured{httpRoutes, gateways}},
		{RoleRoute, [][]*unstructured.Unstructured{routes}},
	} {
		t.Run(row.role, func(t *testing.T) {
			t.Parallel()
			if len(resources(row.role)) != len(row.objects) {
				t.Fatalf("%d resources are watched, want %d", len(resources(row.role)), len(row.objects))
			}
			got := text(groupsOf(row.role, row.objects))
			golden := "testdata/" + row.role + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, route, listener, want string }{
		{"none of both", "", "", ""},
		{"none of the route", "", "a.test", "a.test"},
		{"none of the listener", "a.test b.test", "", "a.test b.test"},
		{"the same", "a.test", "a.test", "a.test"},
		{"others", "a.test", "b.test", ""},
		{"below the listener's", "a.test x.a.test y.x.a.test a.test.evil", "*.a.test", "x.a.test y.x.a.test"},
		{"below the route's", "*.a.test", "x.a.test", "x.a.test"},
		{"two wildcards", "*.x.a.test *.a.test", "*.a.test", "*.x.a.test *.a.test"},
	} {
		got := strings.TrimSpace(strings.Join(hosts(strings.Fields(row.route), row.listener), " "))
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	g := func(source, address string) *targetgroup.Group {
		return &targetgroup.Group{Source: source, Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(address)}}}
	}
	before := map[string]*targetgroup.Group{"a": g("a", "1"), "b": g("b", "2"), "c": g("c", "3")}
	after := map[string]*targetgroup.Group{"a": g("a", "1"), "b": g("b", "9"), "d": g("d", "4")}
	want := []*targetgroup.Group{g("b", "9"), g("d", "4"), {Source: "c"}}
	if diff := cmp.Diff(want, changes(before, after)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := changes(after, after); len(got) != 0 {
		t.Errorf("changes of nothing: %v", got)
	}
}

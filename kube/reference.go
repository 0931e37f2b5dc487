package kube

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reference is a workload as a user names it.
type reference struct {
	kind  string // lower case: a kind, a resource or a short name
	group string // empty where it is not said
	name  string
}

// parseReference reads KIND/NAME, where KIND may be followed by its group.
func parseReference(s string) (reference, error) {
	kind, name, ok := strings.Cut(s, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return reference{}, fmt.Errorf("workload %q: want KIND/NAME, such as deployment/web or deploymentconfig.apps.openshift.io/web", s)
	}
	r := reference{name: name}
	r.kind, r.group, _ = strings.Cut(strings.ToLower(kind), ".")
	if r.kind == "" || strings.HasSuffix(kind, ".") {
		return reference{}, fmt.Errorf("workload %q: want a kind before its group", s)
	}
	if wrong := validation.NameIsDNSSubdomain(name, false); len(wrong) > 0 {
		return reference{}, fmt.Errorf("workload %q: name %q: %s", s, name, wrong[0])
	}
	return r, nil
}

// String returns the reference as it is written.
func (r reference) String() string {
	return schema.GroupResource{Group: r.group, Resource: r.kind}.String() + "/" + r.name
}

// partial returns what the mapper is asked for.
func (r reference) partial() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.group, Resource: r.kind}
}

// object is a workload as the server knows it.
type object struct {
	resource  schema.GroupVersionResource
	kind      string // Deployment
	namespace string
	name      string
}

// String returns the object as a user would name it, with its namespace.
func (o object) String() string {
	return fmt.Sprintf("%s/%s in %q", o.resource.GroupResource(), o.name, o.namespace)
}

// path returns the path of the object, or of its subresource, on the server.
func (o object) path(subresource ...string) []string {
	return append(groupPath(o.resource.GroupVersion(), o.namespace, o.resource.Resource), append([]string{o.name}, subresource...)...)
}

// groupPath returns the path of a resource in a namespace.
func groupPath(gv schema.GroupVersion, namespace, resource string) []string {
	if gv.Group == "" {
		return []string{"api", gv.Version, "namespaces", namespace, resource}
	}
	return []string{"apis", gv.Group, gv.Version, "namespaces", namespace, resource}
}

// encode returns the object as the Lease keeps it, for whoever sweeps.
func (o object) encode() string {
	return strings.Join([]string{o.namespace, o.resource.Group, o.resource.Version, o.resource.Resource, o.kind, o.name}, "/")
}

// decodeObject reads what encode wrote.
func decodeObject(s string) (object, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 6 || slices.Contains(slices.Delete(slices.Clone(parts), 1, 2), "") { // the group may be empty
		return object{}, fmt.Errorf("workload %q: want NAMESPACE/GROUP/VERSION/RESOURCE/KIND/NAME", s)
	}
	for _, p := range parts {
		if p == "." || p == ".." || strings.ContainsAny(p, "%?#\\") {
			return object{}, fmt.Errorf("workload %q: %q is no name", s, p)
		}
	}
	return object{
		resource:  schema.GroupVersionResource{Group: parts[1], Version: parts[2], Resource: parts[3]},
		kind:      parts[4],
		namespace: parts[0],
		name:      parts[5],
	}, nil
}

// generated is what the server appends to the name of a pod's owner: five
// letters that make no words.
const generated = "[bcdfghjklmnpqrstvwxz2456789]"

// longestBase is where the server cuts a name before it appends five letters.
const longestBase = 58

var podSuffix = regexp.MustCompile(`^-(` +
	generated + `{5}|` + // of a ReplicaSet, and most others
	`[0-9]+(-` + generated + `{5})?|` + // of a StatefulSet; of a DeploymentConfig
	generated + `{1,10}-` + generated + `{5})$`) // of a Deployment

// ownsPod reports whether a pod of that name could belong to a workload of that
// name, whatever its kind. The right to look the pod's owner up is not wanted
// for this alone, and to refuse too much does less harm than to scale oneself.
func ownsPod(workload, pod string) bool {
	if len(pod) == longestBase+5 {
		base := pod[:longestBase]
		return strings.HasPrefix(workload+"-", base) || strings.HasPrefix(base, workload+"-")
	}
	rest, ok := strings.CutPrefix(pod, workload)
	return ok && podSuffix.MatchString(rest)
}

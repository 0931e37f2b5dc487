package bed

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// gatewayModule is the module that has the definitions of the Gateway API, of the
// version that test/kubebed/gatewayapi names.
const gatewayModule = "sigs.k8s.io/gateway-api"

// definitions are the files of the Gateway API that the bed installs.
func definitions() []string {
	return []string{"gateway.networking.k8s.io_gateways.yaml", "gateway.networking.k8s.io_httproutes.yaml"}
}

// fetchDefinitions puts the definitions into a folder, before the namespace is
// entered, where no module could be downloaded.
func fetchDefinitions(h *testbed.Holder, to string) {
	download := exec.Command("go", "mod", "download", "-json", gatewayModule)
	download.Dir = filepath.Join(testbed.Root(h), "test", "kubebed", "gatewayapi")
	out, err := download.Output()
	var module struct{ Dir, Error string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil || module.Dir == "" {
		h.Fatalf("downloading %s: %v %s", gatewayModule, err, module.Error)
	}
	for _, name := range definitions() {
		text, err := os.ReadFile(filepath.Join(module.Dir, "config", "crd", "standard", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if err != nil {
			h.Fatalf("reading the definitions of %s: %v", gatewayModule, err)
		}
	}
}

// GatewayAPI installs Gateways and HTTPRoutes of the Gateway API. Nobody makes
// anything of them.
func (b *Bed) GatewayAPI() {
	b.t.Helper()
	for _, name := range definitions() {
		b.Kubectl("apply", "--server-side", "-f", built(name))
	}
	for _, resource := range []string{"gateways", "httproutes"} {
		b.Established(fmt.Sprintf("%s.gateway.networking.k8s.io", resource))
	}
}

// Established waits until the API server serves what a definition of a resource
// says.
func (b *Bed) Established(definition string) {
	b.t.Helper()
	b.Kubectl("wait", "--for=condition=Established", "--timeout=30s", "customresourcedefinition/"+definition)
}

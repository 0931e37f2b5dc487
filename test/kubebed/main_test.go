package kubebed

import (
	"errors"
	"os"
	"testing"

	"github.com/steadyprobe/steadyprobe/kube"
	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

func TestMain(m *testing.M) {
	// client-go's logger is one for the process, and set by the first call: before
	// the bed, which has informers of its own, makes use of it.
	if _, err := kube.Connect(kube.ClusterOptions{Kubeconfig: "/no/such"}); !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	bed.Main(m)
}

package kubebed

import (
	"testing"

	"github.com/steadyprobe/steadyprobe/test/kubebed/bed"
)

func TestMain(m *testing.M) { bed.Main(m) }

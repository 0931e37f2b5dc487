package app

import (
	"fmt"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/steadyprobe/steadyprobe/config"
)

// providerName returns the word of the configuration for what a churn scales
// with.
func providerName(c *config.Churn) string {
	switch {
	case c.Kubernetes != nil:
		return "kubernetes"
	case c.HAProxy != nil:
		return "haproxy"
	case c.Command != nil:
		return "command"
	}
	return "embedded"
}

// workloadName says what a churn scales.
func workloadName(c *config.Churn) string {
	switch {
	case c.Kubernetes != nil:
		return fmt.Sprintf("%s in namespace %s", c.Kubernetes.Workload, c.Kubernetes.Namespace)
	case c.HAProxy != nil:
		return fmt.Sprintf("servers of backend %s of the HAProxy at %s", c.HAProxy.Backend, c.HAProxy.Socket)
	case c.Command != nil:
		return "what " + c.Command.Scale.Program() + " scales"
	}
	return "the backends of the demo"
}

// Describe returns a sentence for each churn that says what the daemon would do
// with it. It connects to nothing.
func Describe(c *config.Config) []string {
	all := make([]string, len(c.Churns))
	for i := range c.Churns {
		all[i] = describe(&c.Churns[i])
	}
	return all
}

func describe(c *config.Churn) string {
	var b strings.Builder
	does := "scales"
	if c.DryRun {
		does = "dry run, would scale"
	}
	fmt.Fprintf(&b, "churn %q: %s %s: %s", c.Name, does, workloadName(c), strings.Join(stepTexts(c.Steps), ", "))
	if c.Jitter > 0 {
		fmt.Fprintf(&b, ", each up to %s longer", model.Duration(c.Jitter))
	}
	switch {
	case c.MaxCycles == 1:
		b.WriteString(", once")
	case c.MaxCycles > 0:
		fmt.Fprintf(&b, ", %d times", c.MaxCycles)
	default:
		b.WriteString(", again and again")
	}
	if h := c.ActiveHours; h != nil {
		fmt.Fprintf(&b, ", from %s to %s %s", h.From, h.To, h.TimeZone)
		for i, d := range h.Days {
			between := ", "
			if i == 0 {
				between = " on "
			}
			b.WriteString(between + d.String())
		}
	}
	fmt.Fprintf(&b, "; within %s and %s replicas", bound(c.Floor, "half the baseline"), bound(c.Ceiling, "twice the baseline"))
	if share := c.AbortWhen.Failures; share.Ratio() < 1 {
		fmt.Fprintf(&b, "; given up when more than %s fail within %s", share, model.Duration(c.AbortWhen.Window))
	}
	switch {
	case c.Kubernetes != nil:
		own := c.Kubernetes.Lease.Namespace
		if own == "" {
			own = "NAMESPACE"
		}
		fmt.Fprintf(&b, "; the workload has to have the annotation steadyprobe.io/churn: %s/%s", own, c.Name)
	case needsStorage(c):
		b.WriteString("; wants --storage.path")
	}
	return b.String()
}

// stepTexts says what each step does.
func stepTexts(steps []config.ChurnStep) []string {
	all := make([]string, len(steps))
	for i, s := range steps {
		if s.Replicas != nil {
			all[i] = fmt.Sprintf("to %d for %s", *s.Replicas, model.Duration(s.Hold))
		} else {
			all[i] = fmt.Sprintf("kills %d for %s", s.Kill, model.Duration(s.Hold))
		}
	}
	return all
}

func bound(written *int, standard string) string {
	if written == nil {
		return standard
	}
	return fmt.Sprint(*written)
}

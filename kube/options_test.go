package kube

import (
	"strings"
	"testing"
	"time"
)

func goodOptions() WorkloadOptions {
	return WorkloadOptions{Churn: "shop", Namespace: "shop", Workload: "deployment/web", Service: "web", AllowedNamespaces: []string{"shop"}}
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*WorkloadOptions)
		want   []string // how the lines of the error begin; none: it is good
	}{
		{"good", func(*WorkloadOptions) {}, nil},
		{"by labels", func(o *WorkloadOptions) { o.Service, o.Selector = "", "app=web,tier in (a,b)" }, nil},
		{"a Service that begins with a digit", func(o *WorkloadOptions) { o.Service = "1web" }, nil},
		{"a long lease", func(o *WorkloadOptions) { o.LeaseDuration = 10 * time.Minute }, nil},
		{"a short lease", func(o *WorkloadOptions) { o.LeaseDuration = time.Second }, nil},
		{"nothing", func(o *WorkloadOptions) { *o = WorkloadOptions{} }, []string{
			"name: want that of the churn", "namespace: want that of the workload", `workload "": want KIND/NAME`, "service: want one, or a selector",
		}},
		{"another namespace", func(o *WorkloadOptions) { o.Namespace = "other" }, []string{`namespace "other": it is not among the allowed namespaces`}},
		{"the platform", func(o *WorkloadOptions) { o.Namespace, o.AllowedNamespaces = "kube-system", []string{"kube-system"} },
			[]string{`namespace "kube-system": it belongs to the platform, nothing is scaled there`}},
		{"both ways", func(o *WorkloadOptions) { o.Selector = "a=b" }, []string{"service: want one, or a selector of EndpointSlices"}},
		{"no name of a Service", func(o *WorkloadOptions) { o.Service = "We b" }, []string{`service "We b": `}},
		{"no selector", func(o *WorkloadOptions) { o.Service, o.Selector = "", "a=(" }, []string{`selector "a=(": `}},
		{"all slices", func(o *WorkloadOptions) { o.Service, o.Selector = "", "," }, []string{`selector ",": `}},
		{"half a second", func(o *WorkloadOptions) { o.LeaseDuration = 1500 * time.Millisecond }, []string{"lease duration 1.5s: want whole seconds, at least 1s"}},
		{"no second", func(o *WorkloadOptions) { o.LeaseDuration = -time.Second }, []string{"lease duration -1s: want whole seconds"}},
		{"a deadline after the lease", func(o *WorkloadOptions) { o.RenewDeadline = 15 * time.Second }, []string{"renew deadline 15s: want more than 0s and less than the lease duration 15s"}},
		{"too slow", func(o *WorkloadOptions) { o.RetryPeriod = 9 * time.Second }, []string{"retry period 9s: want more than 0s and less than five sixths of the renew deadline 10s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := goodOptions()
			tc.change(&o)
			err := o.Validate()
			if err == nil {
				if tc.want != nil {
					t.Fatalf("no error, want %q", tc.want)
				}
				return
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tc.want) {
				t.Fatalf("errors %q, want %q", lines, tc.want)
			}
			for i := range lines {
				if !strings.HasPrefix(lines[i], tc.want[i]) {
					t.Errorf("error %q, want %q", lines[i], tc.want[i])
				}
			}
		})
	}
}

func TestTimesOfTheLease(t *testing.T) {
	for _, tc := range []struct{ lease, deadline, retry time.Duration }{
		{0, 10 * time.Second, 2 * time.Second},                      // 15 s, of which two thirds; a fifth of that
		{6 * time.Second, 4 * time.Second, 800 * time.Millisecond},  // 6 × 2/3; 4 / 5
		{10 * time.Minute, 400 * time.Second, 2 * time.Second},      // 600 × 2/3; not 80 s
		{3 * time.Second, 2 * time.Second, 400 * time.Millisecond},  // 3 × 2/3; 2 / 5
		{time.Second, time.Second * 2 / 3, time.Second * 2 / 3 / 5}, // rounded to a nanosecond
	} {
		o := goodOptions()
		o.LeaseDuration = tc.lease
		if err := o.complete(); err != nil {
			t.Errorf("lease %v: %v", tc.lease, err)
		}
		if o.RenewDeadline != tc.deadline || o.RetryPeriod != tc.retry {
			t.Errorf("lease %v: deadline %v and period %v, want %v and %v", tc.lease, o.RenewDeadline, o.RetryPeriod, tc.deadline, tc.retry)
		}
	}
}

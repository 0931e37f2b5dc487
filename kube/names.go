package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// leasePrefix begins the name of every Lease of a churn.
const leasePrefix = "steadyprobe-churn-"

// longestLeaseName leaves room for the prefix and a digest in a label's length.
const longestLeaseName = 40

// leaseLabel marks the Leases of churns, for whoever sweeps and for people.
const leaseLabel = "steadyprobe.io/churn"

func leaseLabels() map[string]string {
	return map[string]string{leaseLabel: "true", "app.kubernetes.io/managed-by": "steadyprobe"}
}

// leaseName returns the name of a churn's Lease. Names of churns that are no
// names of objects get a digest, so that two churns never share a Lease.
func leaseName(churnName string) string {
	if len(churnName) <= longestLeaseName && len(validation.IsDNS1123Label(churnName)) == 0 {
		return leasePrefix + churnName
	}
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		default:
			return '-'
		}
	}, strings.ToLower(churnName))
	digest := sha256.Sum256([]byte(churnName))
	return leasePrefix + strings.Trim(readable[:min(len(readable), longestLeaseName-9)], "-") + "-" + hex.EncodeToString(digest[:4])
}

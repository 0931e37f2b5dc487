package config

import (
	"slices"
	"strconv"
)

// Bounds of the exporter's settings.
const (
	mostSchema   = 5  // of the histograms that are kept
	leastNative  = 10 // more than any duration needs at schema 0
	mostNative   = 1000
	mostBounds   = 100
	mostBoundary = 86400 // seconds
)

func (c *checker) limits(l *Limits) {
	if l.MaxConnections < 1 {
		c.fail("limits.max_connections", "%d is out of range; write 1 or more", l.MaxConnections)
	}
	c.churnNamespaces(l)
}

func (c *checker) metrics(m *Metrics) {
	if !m.Classic && !m.Native {
		c.fail("metrics", "leaves histograms without buckets; write classic: true or native: true")
	}
	if m.NativeSchema < 0 || m.NativeSchema > mostSchema {
		c.fail("metrics.native_schema", "%d is out of range; write 0 to %d", m.NativeSchema, mostSchema)
	}
	if m.NativeMaxBuckets < leastNative || m.NativeMaxBuckets > mostNative {
		c.fail("metrics.native_max_buckets", "%d is out of range; write %d to %d", m.NativeMaxBuckets, leastNative, mostNative)
	}
	b := &m.Buckets
	c.bounds("latency", &b.Latency)
	c.bounds("service_time", &b.ServiceTime)
	c.bounds("handshake", &b.Handshake)
	c.bounds("phase", &b.Phase)
	c.bounds("lateness", &b.Lateness)
	c.bounds("convergence", &b.Convergence)
}

// bounds checks the boundaries that are added to a family, and sorts them.
func (c *checker) bounds(family string, bounds *[]float64) {
	path := "metrics.buckets." + family
	if len(*bounds) > mostBounds {
		c.fail(path, "adds more than %d boundaries; write fewer", mostBounds)
	}
	for i, b := range *bounds {
		at := path + "[" + strconv.Itoa(i) + "]"
		if c.good(at) && !(b > 0 && b <= mostBoundary) {
			c.fail(at, "%v is out of range; write seconds above 0, up to %d", b, mostBoundary)
		}
	}
	sorted := slices.Clone(*bounds)
	slices.Sort(sorted)
	*bounds = slices.Compact(sorted)
}

package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/steadyprobe/steadyprobe/config"
	"github.com/steadyprobe/steadyprobe/internal/faultdoor"
	"github.com/steadyprobe/steadyprobe/probe/record"
)

// BenchmarkReload reloads 1,000 targets of which one has changed: its rate, or
// its door. Another target of 1,000 requests/s goes on beside them; what its
// lateness was at p99 without reloads, and with two a second, is reported too.
func BenchmarkReload(b *testing.B) {
	door := faultdoor.Listen(b, good())
	var rest strings.Builder
	for i := range 999 {
		rest.WriteString(targetOf(fmt.Sprintf("t%d", i), door.URL("http"), "rate: 0.2, connections: 1"))
	}
	for _, row := range []struct{ name, first, second string }{
		{"rate", "rate: 1", "rate: 2"},
		{"door", "rate: 1", "rate: 1, timeout: 4s"},
	} {
		b.Run(row.name, func(b *testing.B) {
			text := func(settings string) []byte {
				return []byte("targets:\n" + targetOf("steady", door.URL("http"), "rate: 1000, connections: 50, connection: {warm: true}") +
					targetOf("changed", door.URL("http"), "connections: 10, "+settings) + rest.String())
			}
			parse := func(settings string) *config.Config {
				c, _, err := config.Parse(text(settings), "bench.yml")
				if err != nil {
					b.Fatal(err)
				}
				return c
			}
			d := &daemon{options: options(""), config: parse(row.first), loaded: time.Now()}
			if err := d.build(); err != nil {
				b.Fatal(err)
			}
			defer d.engine.close()
			defer d.closeDiscovery()
			ctx, cancel := contextFor(b)
			d.start(ctx)
			defer d.stop()
			defer cancel()
			time.Sleep(500 * time.Millisecond)
			var lateness record.Recent
			steady := []*record.Recorder{d.named("steady").recorder}
			lateness.Lateness(0.99, steady)
			time.Sleep(2 * time.Second)
			quiet := lateness.Lateness(0.99, steady)
			i := 0
			for b.Loop() {
				i++
				settings := row.first
				if i%2 == 1 {
					settings = row.second
				}
				if _, err := d.replace(ctx, parse(settings)); err != nil {
					b.Fatal(err)
				}
			}
			lateness.Lateness(0.99, steady)
			for range 4 {
				i++
				settings := row.first
				if i%2 == 1 {
					settings = row.second
				}
				if _, err := d.replace(ctx, parse(settings)); err != nil {
					b.Fatal(err)
				}
				time.Sleep(500 * time.Millisecond)
			}
			b.ReportMetric(float64(quiet.Microseconds()), "us-p99-without")
			b.ReportMetric(float64(lateness.Lateness(0.99, steady).Microseconds()), "us-p99-with")
		})
	}
}

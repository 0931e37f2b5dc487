package probe

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

var (
	addressA = netip.MustParseAddr("10.0.0.1")
	addressB = netip.MustParseAddr("2001:db8::2")
)

// TestRemovedAddressIsDrained takes one of two addresses away from four
// connections, of which all, some or none carry a request at that time.
func TestRemovedAddressIsDrained(t *testing.T) {
	for _, row := range []struct {
		name    string
		busy    int           // requests in flight when the address goes
		traffic int           // requests after that, 10 ms apart
		service time.Duration // of each
	}{
		{"all are idle and nothing more comes", 0, 0, time.Millisecond},
		{"all are idle", 0, 20, time.Millisecond},
		{"two carry a request", 2, 20, 25 * time.Millisecond},
		{"all carry a request", 4, 20, 25 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Target{Rate: 100, Connections: 4, Reuse: true})
				b.door.set(func(d *fakeDoor) {
					d.addresses, d.service, d.open = []netip.Addr{addressA, addressB}, row.service, time.Millisecond
				})
				b.prober.SetAddresses([]netip.Addr{addressA, addressB})
				b.pace(4, 100*time.Millisecond)
				for range row.busy {
					b.tick()
				}
				b.door.set(func(d *fakeDoor) { d.addresses = d.addresses[1:] })
				b.prober.SetAddresses([]netip.Addr{addressB})
				b.pace(row.traffic, 10*time.Millisecond)
				b.sleep(time.Second)
				l := b.prober.Ledger()
				if l.Opened != 6 || l.Closed[CloseAddressRemoved] != 2 || l.Connections != 4 {
					t.Errorf("opened %d, closed %v, %d are open; want 6, 2 of a removed address, 4", l.Opened, l.Closed, l.Connections)
				}
				for link := range b.prober.links {
					if link.address != addressB {
						t.Errorf("a connection to %v is left", link.address)
					}
				}
				if l = b.close(); l.Failed() != 0 {
					t.Errorf("%d requests failed, want none", l.Failed())
				}
			})
		})
	}
}

// An address that comes back before the replacement is there does not save its
// connection: the replacement was opened for it.
func TestAddressThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 1, Connections: 1, Reuse: true})
		b.door.set(func(d *fakeDoor) { d.addresses, d.open = []netip.Addr{addressA}, 50*time.Millisecond })
		b.pace(1, time.Second)
		b.prober.SetAddresses([]netip.Addr{addressB})
		b.sleep(10 * time.Millisecond)
		b.prober.SetAddresses([]netip.Addr{addressA})
		b.sleep(time.Second)
		if l := b.prober.Ledger(); l.Opened != 2 || l.Closed[CloseAddressRemoved] != 1 {
			t.Errorf("opened %d, closed %v; want 2, 1 of a removed address", l.Opened, l.Closed)
		}
		b.close()
	})
}

// While nothing can be opened at the addresses that are left, the old
// connection serves, and is replaced as soon as that is possible.
func TestRemovedAddressIsKeptWhileThereIsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Target{Rate: 10, Connections: 1, Reuse: true})
		b.door.set(func(d *fakeDoor) { d.addresses = []netip.Addr{addressA} })
		b.pace(1, time.Second)
		b.door.set(func(d *fakeDoor) { d.addresses, d.fail = []netip.Addr{addressB}, ConnectRefused })
		b.prober.SetAddresses([]netip.Addr{addressB})
		b.pace(20, 100*time.Millisecond)
		if l := b.prober.Ledger(); l.Opened != 1 || l.OpeningFailures[ConnectRefused] == 0 || l.Failed() != 0 {
			t.Errorf("opened %d, %d openings failed, %d requests failed; want 1, some, none", l.Opened, l.OpeningFailures[ConnectRefused], l.Failed())
		}
		b.door.set(func(d *fakeDoor) { d.fail = Success })
		b.pace(100, 100*time.Millisecond)
		if l := b.close(); l.Closed[CloseAddressRemoved] != 1 || l.Failed() != 0 {
			t.Errorf("closed %v, %d requests failed; want 1 of a removed address, none", l.Closed, l.Failed())
		}
	})
}

// TestNewAddressEndsTheWait moves a door whose openings have failed for so long
// that the next one is seconds away. What carries no request is replaced, and
// what is missing opened, at once all the same; not so where no address is new.
func TestNewAddressEndsTheWait(t *testing.T) {
	for _, row := range []struct {
		name   string
		target Target
		from   []netip.Addr
		opened uint64 // within 10 ms of the move to B
	}{
		{"kept open", Target{Rate: 1, Connections: 4, Reuse: true, Warm: true}, []netip.Addr{addressA}, 4},
		{"opened when needed", Target{Rate: 1, Connections: 4, Reuse: true}, []netip.Addr{addressA}, 1},
		{"no new address", Target{Rate: 1, Connections: 4, Reuse: true, Warm: true}, []netip.Addr{addressA, addressB}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, row.target)
				b.door.set(func(d *fakeDoor) { d.addresses = []netip.Addr{addressA} })
				b.prober.SetAddresses([]netip.Addr{addressA})
				b.pace(1, time.Second)
				b.prober.WarmUp(t.Context())
				b.door.set(func(d *fakeDoor) { d.fail = ConnectRefused })
				b.prober.SetAddresses([]netip.Addr{addressB})
				b.prober.SetAddresses(row.from)
				b.sleep(10 * time.Millisecond)
				before := b.prober.Ledger()
				if before.OpeningFailures[ConnectRefused] == 0 {
					t.Fatal("no opening has failed")
				}
				b.door.set(func(d *fakeDoor) { d.fail, d.addresses = Success, []netip.Addr{addressB} })
				b.prober.SetAddresses([]netip.Addr{addressB})
				b.sleep(10 * time.Millisecond)
				if l := b.prober.Ledger(); l.Opened-before.Opened != row.opened {
					t.Errorf("%d openings succeeded at once, want %d", l.Opened-before.Opened, row.opened)
				}
				b.close()
			})
		})
	}
}

// TestDeadAddressBesideOneThatLives replaces connections where every second
// opening fails. A dead address must not keep the others from being used, nor
// connections alive that are due, for as long as a dead door would be waited for.
func TestDeadAddressBesideOneThatLives(t *testing.T) {
	for _, row := range []struct {
		name   string
		maxAge time.Duration
		reason CloseReason
	}{
		{"removed address", 0, CloseAddressRemoved},
		{"max_age", 2 * time.Second, CloseMaxAge},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Target{Rate: 1000, Connections: 20, Reuse: true, MaxAge: row.maxAge})
				b.door.set(func(d *fakeDoor) { d.addresses = []netip.Addr{addressA} })
				b.prober.SetAddresses([]netip.Addr{addressA})
				b.pace(20, 0)
				b.door.set(func(d *fakeDoor) { d.refuse = 1 })
				if row.maxAge == 0 {
					b.door.set(func(d *fakeDoor) { d.addresses = []netip.Addr{addressB} })
					b.prober.SetAddresses([]netip.Addr{addressB})
				}
				// At least one is replaced in each wait of 100 ms, and one fails: 2 s for
				// 20 connections. With waits of up to 5 s it would be a minute.
				b.pace(4500, time.Millisecond)
				if l := b.prober.Ledger(); l.Closed[row.reason] < 20 || l.OpeningFailures[ConnectRefused] == 0 {
					t.Errorf("closed %v, %d openings failed, want all 20 connections replaced", l.Closed, l.OpeningFailures[ConnectRefused])
				}
				b.close()
			})
		})
	}
}

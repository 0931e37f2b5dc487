package bed

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayEnter says why there can be no network namespace, nil if there can.
func mayEnter() error {
	if os.Geteuid() != 0 {
		return errors.New("a network namespace of its own needs root")
	}
	return nil
}

// inNamespace starts a program in a network namespace, and ends it with this
// one.
func inNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
}

// furnish brings the loopback interface of the namespace up, with every address
// that a pod or a service may have: an address of the interface makes all of
// its network local.
func furnish() (err error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(socket)) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, lo); err != nil {
		return fmt.Errorf("reading the flags of lo: %w", err)
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bringing lo up: %w", err)
	}
	for name, network := range map[string]netip.Prefix{"lo:1": podNetwork, "lo:2": serviceNetwork} {
		if err := addNetwork(socket, name, network); err != nil {
			return fmt.Errorf("adding %v to lo: %w", network, err)
		}
	}
	return nil
}

// addNetwork gives an alias of an interface the first address of a network of
// 16 bits.
func addNetwork(socket int, name string, network netip.Prefix) error {
	alias, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := alias.SetInet4Addr(network.Addr().AsSlice()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFADDR, alias); err != nil {
		return err
	}
	mask, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := mask.SetInet4Addr([]byte{255, 255, 0, 0}); err != nil {
		return err
	}
	return unix.IoctlIfreq(socket, unix.SIOCSIFNETMASK, mask)
}

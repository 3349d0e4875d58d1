// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/capacitorset/liqo-broker/test/lab/process"
)

// Interface is the interface to the WAN that the caller of Start gives the node.
const Interface = "eth0"

// configureNetwork names the node and sets up its interfaces and kernel settings.
func configureNetwork(spec Spec) error {
	if err := unix.Sethostname([]byte(spec.Name)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find loopback: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	if spec.Address.IsValid() {
		if err := configureWAN(spec); err != nil {
			return err
		}
	}
	for name, value := range spec.Sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return nil
}

func configureWAN(spec Spec) error {
	link, err := netlink.LinkByName(Interface)
	if err != nil {
		return fmt.Errorf("find %s: %w", Interface, err)
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: spec.Address.Addr().AsSlice(), Mask: net.CIDRMask(spec.Address.Bits(), 32)}}
	if err := netlink.AddrAdd(link, address); err != nil {
		return fmt.Errorf("add address %s to %s: %w", spec.Address, Interface, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", Interface, err)
	}
	if !spec.Gateway.IsValid() {
		return nil
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: spec.Gateway.AsSlice()}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("add default route via %s: %w", spec.Gateway, err)
	}
	return nil
}

// Listening returns the TCP ports on which something listens for others than itself in the network namespace of a process, in order.
func Listening(id process.ID) ([]int, error) {
	ports := map[int]bool{}
	err := InNetwork(id, func() error {
		for _, table := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
			if err := readListening(table, ports); err != nil {
				return err
			}
		}
		return nil
	})
	return slices.Sorted(maps.Keys(ports)), err
}

// readListening adds the ports of a table of sockets (proc_pid_net(5)): the second field is the local address, the fourth the state.
func readListening(table string, ports map[int]bool) error {
	const listen, loopback, loopback6 = "0A", "0100007F", "00000000000000000000000001000000"
	file, err := os.Open(table)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != listen {
			continue
		}
		address, text, _ := strings.Cut(fields[1], ":")
		port, err := strconv.ParseUint(text, 16, 16)
		if err != nil {
			return fmt.Errorf("read %s: %w", table, err)
		}
		if address != loopback && address != loopback6 {
			ports[int(port)] = true
		}
	}
	return lines.Err()
}

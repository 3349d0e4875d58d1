// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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

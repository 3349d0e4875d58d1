// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wan makes the network that connects the nodes of a lab: a bridge in a
// network namespace of its own, and a pair of virtual interfaces for each node. It
// knows nothing of clusters.
package wan

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"

	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/process"
)

const bridge = "wan0"

// WAN is the network whose namespace is that of a process.
type WAN struct{ holder process.ID }

// Of returns the WAN that the process holds.
func Of(holder process.ID) WAN { return WAN{holder: holder} }

// Configure makes the bridge. The gateway's address is on it, and the namespace
// forwards but has no route to anywhere else: what leaves the lab is answered with
// "network unreachable" and does not have to time out.
func (w WAN) Configure(gateway netip.Prefix) error {
	return node.InNetwork(w.holder, func() error {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
			return fmt.Errorf("forward on the WAN: %w", err)
		}
		link := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}
		if err := netlink.LinkAdd(link); err != nil {
			return fmt.Errorf("add bridge %s: %w", bridge, err)
		}
		address := &netlink.Addr{IPNet: &net.IPNet{IP: gateway.Addr().AsSlice(), Mask: net.CIDRMask(gateway.Bits(), 32)}}
		if err := netlink.AddrAdd(link, address); err != nil {
			return fmt.Errorf("add address %s to %s: %w", gateway, bridge, err)
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("set %s up: %w", bridge, err)
		}
		return nil
	})
}

// Connect gives the network namespace of a process the interface eth0, without an address.
func (w WAN) Connect(name string, peer process.ID) error {
	return node.InNetwork(w.holder, func() error {
		master, err := netlink.LinkByName(bridge)
		if err != nil {
			return fmt.Errorf("find bridge %s: %w", bridge, err)
		}
		link := &netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: name, MasterIndex: master.Attrs().Index},
			PeerName:  node.Interface, PeerNamespace: netlink.NsPid(peer.PID),
		}
		if err := netlink.LinkAdd(link); err != nil {
			return fmt.Errorf("add link %s: %w", name, err)
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("set link %s up: %w", name, err)
		}
		return nil
	})
}

// SetLink cuts the link of a node, or mends it.
func (w WAN) SetLink(name string, up bool) error {
	return node.InNetwork(w.holder, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find link %s: %w", name, err)
		}
		set := netlink.LinkSetDown
		if up {
			set = netlink.LinkSetUp
		}
		if err := set(link); err != nil {
			return fmt.Errorf("set link %s: %w", name, err)
		}
		return nil
	})
}

// LinkUp reports whether the link of a node is whole.
func (w WAN) LinkUp(name string) (up bool, err error) {
	err = node.InNetwork(w.holder, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find link %s: %w", name, err)
		}
		up = link.Attrs().Flags&net.FlagUp != 0
		return nil
	})
	return up, err
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/process"
)

// hostBinds is where a host has the folder that it was given.
const hostBinds = "/opt/host"

// Host is a machine on the WAN outside of all clusters, on which nothing runs by itself. Its files below /var/lib stay while it lives.
type Host struct {
	Name string
	dir  string
}

// AddHost makes a host with an address on the WAN. It sees a folder of the machine as /opt/host. The caller is a program that calls
// node.Init, as the command lab does.
func (l *Lab) AddHost(ctx context.Context, name string, address netip.Addr, folder string) error {
	h := l.Host(name)
	w, err := l.wan()
	if err != nil {
		return err
	}
	if !l.state.Topology.WAN.Contains(address) {
		return fmt.Errorf("add host %s: %s is not in the WAN %s", name, address, l.state.Topology.WAN)
	}
	spec := node.Spec{
		Name: name, Dir: h.dir, Address: netip.PrefixFrom(address, l.state.Topology.WAN.Bits()), Gateway: l.state.Topology.Gateway,
		Binds: map[string]string{hostBinds: folder},
	}
	return node.Start(ctx, spec, nil, remember(h.dir), func(id process.ID) error { return w.Connect(name, id) })
}

// Host returns a host that was added.
func (l *Lab) Host(name string) *Host { return &Host{Name: name, dir: l.folder.path("hosts", name)} }

// Exec runs a program on the host, until it ends or the context does: then it is killed.
func (h *Host) Exec(ctx context.Context, command node.Command) error {
	init, err := loadProcess(h.dir)
	if err != nil {
		return err
	}
	command.Path = append(command.Path, hostBinds)
	return node.Exec(ctx, init, command)
}

// Dial connects from the host. It can be used concurrently, as net.Dialer's DialContext.
func (h *Host) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	init, err := loadProcess(h.dir)
	if err != nil {
		return nil, err
	}
	err = node.InNetwork(init, func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens on the host.
func (h *Host) Listen(ctx context.Context, network, address string) (listener net.Listener, err error) {
	init, err := loadProcess(h.dir)
	if err != nil {
		return nil, err
	}
	err = node.InNetwork(init, func() error {
		listener, err = new(net.ListenConfig).Listen(ctx, network, address)
		return err
	})
	return listener, err
}

// Listening returns the TCP ports on which the host listens for others than itself, in order.
func (h *Host) Listening() ([]int, error) {
	init, err := loadProcess(h.dir)
	if err != nil {
		return nil, err
	}
	return node.Listening(init)
}

// Exists reports whether the host was added.
func (h *Host) Exists() bool {
	_, err := loadProcess(h.dir)
	return err == nil
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package source says for whom a caller counts, also as long as it has not said who it is,
// so that nobody holds more of a server than its share by calling from many addresses.
//
// It does not know which peers there are; see package peernet.
package source

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Source is for whom a caller counts: itself, a peer, a network or an address. It is
// comparable. The zero value is that of callers without an address.
type Source struct {
	caller, peer string
	network      netip.Prefix
}

// Func returns for whom an address counts. It is called for each connection, also
// concurrently, and must not block.
type Func func(netip.Addr) Source

// The networks for which strangers count: a /24 is the smallest that is routed on the
// Internet, and what a node has for its pods in most clusters; one host may have a whole /64.
const networkIPv4, networkIPv6 = 24, 64

// Caller is somebody who has proved to have a name, from wherever it calls.
func Caller(name string) Source { return Source{caller: name} }

// IsCaller reports whether it has proved to have a name.
func (s Source) IsCaller() bool { return s.caller != "" }

// Peer is a peer with all its addresses.
func Peer(name string) Source { return Source{peer: name} }

// IsPeer reports whether it is a peer.
func (s Source) IsPeer() bool { return s.peer != "" }

// Network is the network of an address of which nothing else is known.
func Network(a netip.Addr) Source {
	a = plain(a)
	bits := networkIPv6
	if a.Is4() {
		bits = networkIPv4
	}
	network, err := a.Prefix(bits)
	if err != nil {
		return Source{} // No address.
	}
	return Source{network: network}
}

// Address is one host, for where peers do not call: an address of IPv4, or a /64 of IPv6, of
// which one host may have all addresses.
func Address(a netip.Addr) Source {
	a = plain(a)
	if a.Is6() {
		return Network(a)
	}
	return Source{network: netip.PrefixFrom(a, a.BitLen())}
}

// AddressOf returns the address at the other end of a connection; one that is not valid if
// it has none.
func AddressOf(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return plain(tcp.AddrPort().Addr())
	}
	return netip.Addr{}
}

// AddressOfRequest returns the address from which a server got a request; one that is not
// valid if there is none.
func AddressOfRequest(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return plain(from.Addr())
}

// plain returns the one form in which addresses are compared.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// Limit bounds how much is held at the same time, in all and by each source. It may be used
// concurrently.
type Limit struct {
	all, each int

	mu   sync.Mutex
	held int
	by   map[Source]int
}

// NewLimit returns a Limit of which nothing is held.
func NewLimit(all, each int) *Limit { return &Limit{all: all, each: each, by: map[Source]int{}} }

// Enter counts one more of a source; false if it is one too many. Who has entered must call
// leave; all calls but the first do nothing.
func (l *Limit) Enter(s Source) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held >= l.all || l.by[s] >= l.each {
		return nil, false
	}
	l.held++
	l.by[s]++
	return sync.OnceFunc(func() { l.leave(s) }), true
}

func (l *Limit) leave(s Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held--
	if l.by[s]--; l.by[s] == 0 {
		delete(l.by, s)
	}
}

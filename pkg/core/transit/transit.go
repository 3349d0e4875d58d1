// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transit decides what peers reach through a broker: which packets its gateways drop, and which endpoints of a consumer it opens to
// its providers.
//
// It decides on values alone: it neither reads nor writes, and does not know how packets are dropped.
package transit

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"slices"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// ErrNoExternal means that it is not known yet where answers to what this cluster forwards arrive, so that nothing can be decided.
var ErrNoExternal = errors.New("this cluster has no external network of IPv4 yet")

// ends are the addresses of both ends of a tunnel, by which gateways measure it
// (ServerInterfaceIP and ClientInterfaceIP in liqo/pkg/gateway/tunnel/netlink.go@v1.2.0).
func ends() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{169, 254, 18, 0}), 30) }

// Networks are those of this cluster. All are of IPv4; others are passed over.
type Networks struct {
	// External is the network in which this cluster opens addresses to peers. Its first address stands for whoever has no address that a
	// peer knows: answers to what is forwarded arrive there.
	External netip.Prefix
	// Proxy are addresses in it at which the API server is reached in the network of a peering.
	Proxy []netip.Addr
	// Pods are those of this cluster's own pods.
	Pods []netip.Prefix
	// Allowed is what people let all peers reach besides, also of Pods.
	Allowed []netip.Prefix
}

// Check returns ErrNoExternal as long as nothing can be decided with these networks.
func (n *Networks) Check() error {
	if !isIPv4(n.External) {
		return ErrNoExternal
	}
	return nil
}

// Peer is a cluster with a tunnel to this one.
type Peer struct {
	ID                 cluster.ID
	Consumes, Provides bool
	// Pods are the prefixes under which this cluster sees those of the peer, and External those under which it sees what comes by the
	// peer from elsewhere.
	Pods, External []netip.Prefix
	// Granted are the prefixes that a consumer was told. What is in none of them it does not reach.
	Granted []netip.Prefix
}

// Rules are the destinations and sources of packets that are dropped when they come out of a tunnel, in order and without overlaps. Since
// nothing is let through, they mean the same in any order, and beside those of others.
type Rules struct {
	// Arriving are the destinations that the sender wrote.
	Arriving []Range
	// Forwarded are those to which packets go after they were translated.
	Forwarded []Range
	// Leaving are the sources from which they come, as this cluster sees them: after they were translated.
	Leaving []Range
}

// Range is all addresses from one to another, both included.
type Range struct{ From, To netip.Addr }

// String returns a range as "FROM-TO", or the address if it is a single one.
func (r Range) String() string {
	if r.From == r.To {
		return r.From.String()
	}
	return r.From.String() + "-" + r.To.String()
}

// Everywhere returns what is dropped of the packets of any peer, also of one that nobody knows yet: all but the pods of peers, and what
// this cluster opens. Nothing of a peer reaches its nodes, its Services or its own pods, also not by an address that was opened. Peers are
// those that have rules of their own: what comes from anywhere else goes nowhere.
func Everywhere(n Networks, peers []Peer) (Rules, error) {
	if err := n.Check(); err != nil {
		return Rules{}, err
	}
	open := []span{spanOf(ends()), spanOf(n.External)}
	var sources []span
	for i := range peers {
		open, sources = append(open, spans(peers[i].Pods)...), append(sources, peers[i].sources()...)
	}
	allowed, pods := spans(n.Allowed), spans(n.Pods)
	return Rules{
		Arriving:  ranges(complement(append(without(open, pods), allowed...))),
		Forwarded: ranges(without(pods, allowed)),
		Leaving:   ranges(complement(without(sources, pods))),
	}, nil
}

// sources are the addresses from which packets of a peer may come.
func (p *Peer) sources() []span { return append(spans(p.Pods), spans(p.External)...) }

// Of returns what is dropped of the packets of one peer. A consumer reaches the pods of those providers that it was granted, and where
// answers arrive; a provider whatever this cluster opens, and no pods of others by their own addresses; a peer that is neither gets
// answers. Nobody sends from an address that is another one's.
func Of(n Networks, peer *Peer, peers []Peer) (Rules, error) {
	if err := n.Check(); err != nil {
		return Rules{}, err
	}
	first := n.External.Masked().Addr()
	open := []span{spanOf(ends()), spanOf(netip.PrefixFrom(first, first.BitLen()))}
	if peer.Provides {
		open = append(open, spanOf(n.External))
	}
	if peer.Consumes {
		for _, address := range n.Proxy {
			open = append(open, spans([]netip.Prefix{netip.PrefixFrom(address, address.BitLen())})...)
		}
		for i := range peers {
			if peers[i].ID != peer.ID && peers[i].Provides {
				open = append(open, spans(granted(peers[i].Pods, peer.Granted))...)
			}
		}
	}
	return Rules{
		Arriving: ranges(complement(append(without(open, spans(n.Pods)), spans(n.Allowed)...))),
		Leaving:  ranges(complement(without(peer.sources(), spans(n.Pods)))),
	}, nil
}

// granted returns those prefixes that are in one of others.
func granted(prefixes, in []netip.Prefix) []netip.Prefix {
	var inside []netip.Prefix
	for _, p := range prefixes {
		if slices.ContainsFunc(in, func(wide netip.Prefix) bool { return wide.Bits() <= p.Bits() && wide.Contains(p.Addr()) }) {
			inside = append(inside, p)
		}
	}
	return inside
}

func isIPv4(p netip.Prefix) bool { return p.IsValid() && p.Addr().Is4() }

// span is a range of IPv4 as numbers, both ends included.
type span struct{ from, to uint32 }

// spanOf returns the addresses of a prefix of IPv4.
func spanOf(p netip.Prefix) span {
	from := binary.BigEndian.Uint32(p.Masked().Addr().AsSlice())
	return span{from, from | uint32(1<<(32-p.Bits())-1)}
}

// spans returns those of prefixes of IPv4.
func spans(prefixes []netip.Prefix) []span {
	var s []span
	for _, p := range prefixes {
		if isIPv4(p) {
			s = append(s, spanOf(p))
		}
	}
	return s
}

// without returns what is in one list of spans and not in another, in order and without overlaps.
func without(whole, others []span) []span { return complement(append(complement(whole), others...)) }

// complement returns what is in no span, in order and without overlaps.
func complement(s []span) []span {
	var rest []span
	next := uint64(0) // The first address that is not decided yet.
	for _, s := range slices.SortedFunc(slices.Values(s), func(a, b span) int { return cmp.Compare(a.from, b.from) }) {
		if uint64(s.from) > next {
			rest = append(rest, span{uint32(next), s.from - 1})
		}
		next = max(next, uint64(s.to)+1)
	}
	if next <= math.MaxUint32 {
		rest = append(rest, span{uint32(next), math.MaxUint32})
	}
	return rest
}

func ranges(s []span) []Range {
	r := make([]Range, len(s))
	for i := range s {
		r[i] = Range{address(s[i].from), address(s[i].to)}
	}
	return r
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

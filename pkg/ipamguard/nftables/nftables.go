// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nftables closes a TCP port of the network namespace that it runs in
// to everybody but some sources, with nftables.
//
// It has a table of its own and leaves the others alone. It knows neither what
// listens on the port nor who the sources are.
package nftables

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

const (
	tableName = "liqo-broker"
	chainName = "input"
	setName   = "sources"

	// batch bounds the elements of one message: netlink counts the bytes of an
	// attribute in 16 bits, and an element takes about 30.
	batch = 1000
)

// Rule says who reaches a port.
type Rule struct {
	Port uint16
	// Sources are the IPv4 prefixes from which the port is reached, besides the
	// loopback interface. They may overlap. Nothing else reaches the port, over
	// IPv6 nothing at all.
	Sources []netip.Prefix
	// Lifetime is how long the sources reach the port, unless the rule is installed again;
	// zero is for ever. The port stays closed to others afterwards.
	Lifetime time.Duration
}

// Install makes a rule the only one in force. It replaces the rule before it in
// one transaction, so that there is no moment without any: a connection of a
// source that both allow goes on, one of a source that is no longer allowed
// stops.
func Install(rule Rule) error {
	if i := slices.IndexFunc(rule.Sources, func(p netip.Prefix) bool { return !p.IsValid() || !p.Addr().Is4() }); i >= 0 {
		return fmt.Errorf("source %s of port %d is not an IPv4 prefix", rule.Sources[i], rule.Port)
	}
	connection, err := nftables.New()
	if err != nil {
		return wrap(rule, err)
	}
	// To delete a table that is not there would fail: add it first.
	table := &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}
	connection.AddTable(table)
	connection.DelTable(table)
	connection.AddTable(table)

	sources := &nftables.Set{Table: table, Name: setName, KeyType: nftables.TypeIPAddr, Interval: true,
		HasTimeout: rule.Lifetime > 0, Timeout: rule.Lifetime}
	err = connection.AddSet(sources, nil)
	for elements := range slices.Chunk(intervals(rule.Sources), batch) {
		err = errors.Join(err, connection.SetAddElements(sources, elements))
	}
	if err != nil {
		return wrap(rule, err)
	}
	accept := nftables.ChainPolicyAccept
	chain := connection.AddChain(&nftables.Chain{
		Name: chainName, Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter, Policy: &accept,
	})
	for _, expressions := range [][]expr.Any{
		{load(expr.MetaKeyL4PROTO), differs(unix.IPPROTO_TCP), verdict(expr.VerdictAccept)},
		{destinationPort(), differs(binaryutil.BigEndian.PutUint16(rule.Port)...), verdict(expr.VerdictAccept)},
		{load(expr.MetaKeyIIFNAME), equals(interfaceName("lo")...), verdict(expr.VerdictAccept)},
		{
			load(expr.MetaKeyNFPROTO), equals(unix.NFPROTO_IPV4), sourceAddress(),
			&expr.Lookup{SourceRegister: 1, SetName: setName, SetID: sources.ID}, verdict(expr.VerdictAccept),
		},
		{&expr.Counter{}, verdict(expr.VerdictDrop)},
	} {
		connection.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: expressions})
	}
	if err := connection.Flush(); err != nil {
		return wrap(rule, err)
	}
	return nil
}

func wrap(rule Rule, err error) error {
	return fmt.Errorf("close TCP port %d with nftables, which takes the capability NET_ADMIN and a kernel with CONFIG_NF_TABLES_INET: %w",
		rule.Port, err)
}

// intervals returns the elements of a set that holds the prefixes. Two prefixes
// are apart or one holds the other, so that of those that overlap the widest is
// enough.
func intervals(prefixes []netip.Prefix) []nftables.SetElement {
	sorted := make([]netip.Prefix, 0, len(prefixes))
	for _, prefix := range prefixes {
		sorted = append(sorted, prefix.Masked())
	}
	slices.SortFunc(sorted, netip.Prefix.Compare)

	var elements []nftables.SetElement
	var widest netip.Prefix
	for _, prefix := range sorted {
		if widest.Overlaps(prefix) {
			continue
		}
		widest = prefix
		elements = append(elements, nftables.SetElement{Key: prefix.Addr().AsSlice()})
		// The last address of all has none after it, and its interval no end.
		if next := last(prefix).Next(); next.IsValid() {
			elements = append(elements, nftables.SetElement{Key: next.AsSlice(), IntervalEnd: true})
		}
	}
	return elements
}

// last returns the highest address of an IPv4 prefix.
func last(prefix netip.Prefix) netip.Addr {
	address := prefix.Addr().As4()
	for bit := prefix.Bits(); bit < 32; bit++ {
		address[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(address)
}

func load(key expr.MetaKey) expr.Any { return &expr.Meta{Key: key, Register: 1} }

func destinationPort() expr.Any {
	return &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}
}

func sourceAddress() expr.Any {
	return &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4}
}

func equals(data ...byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

func differs(data ...byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: data} }

func verdict(kind expr.VerdictKind) expr.Any { return &expr.Verdict{Kind: kind} }

// interfaceName returns a name as the kernel compares it.
func interfaceName(name string) []byte {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return padded
}

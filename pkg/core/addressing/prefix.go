// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package addressing answers, on a consumer, under which address a pod is
// reached that a broker runs on one of its providers.
//
// Every cluster X sees the pods of a peer Y under a prefix of its own choice,
// here called a view: Y's own pod CIDR, or a remap of it when that one is taken
// at X. A remap keeps the host bits, so a translation is arithmetic on
// prefixes, and a chain of views can be walked forth and back.
//
// The package is values in, values out. It does not know how prefixes are
// learned, who may learn them, or how packets travel.
package addressing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
)

// ErrOutside means that an address is not inside the prefix that it was said
// to be in.
var ErrOutside = errors.New("address outside the prefix")

// View is how one cluster sees a range of addresses of another cluster. Own is
// the range as its owner knows it, Seen the range under which the observer
// reaches it; they are equal where nothing is remapped. Both have the same
// length.
type View struct {
	Own, Seen netip.Prefix
}

// NewView parses a view from the two strings that Liqo keeps of it. An empty
// seen, or "None" as Liqo writes it (liqo/pkg/consts/networking.go@v0.9.4),
// means that nothing is remapped.
func NewView(own, seen string) (View, error) {
	o, err := netip.ParsePrefix(own)
	if err != nil {
		return View{}, fmt.Errorf("parse prefix %q: %w", own, err)
	}
	o = o.Masked()
	if seen == "" || seen == notRemapped {
		return View{Own: o, Seen: o}, nil
	}
	s, err := netip.ParsePrefix(seen)
	if err != nil {
		return View{}, fmt.Errorf("parse remapped prefix %q: %w", seen, err)
	}
	s = s.Masked()
	if s.Bits() != o.Bits() || s.Addr().Is4() != o.Addr().Is4() {
		return View{}, fmt.Errorf("prefix %s cannot be a remap of %s: the lengths differ", s, o)
	}
	return View{Own: o, Seen: s}, nil
}

const notRemapped = "None"

// IsValid reports whether the view was made by [NewView].
func (v View) IsValid() bool { return v.Own.IsValid() && v.Seen.IsValid() }

// ToObserver translates an address as its owner knows it into the address that
// the observer uses. The error is [ErrOutside].
func (v View) ToObserver(own netip.Addr) (netip.Addr, error) { return translate(own, v.Own, v.Seen) }

// ToOwner translates an address as the observer uses it into the address that
// the owner knows. The error is [ErrOutside].
func (v View) ToOwner(seen netip.Addr) (netip.Addr, error) { return translate(seen, v.Seen, v.Own) }

func translate(a netip.Addr, from, to netip.Prefix) (netip.Addr, error) {
	if !from.Contains(a) {
		return netip.Addr{}, fmt.Errorf("translate %s from %s to %s: %w", a, from, to, ErrOutside)
	}
	return rebase(a, to), nil
}

// rebase gives an address the network bits of a prefix of the same family and
// keeps its host bits.
func rebase(a netip.Addr, to netip.Prefix) netip.Addr {
	if a.Is4() {
		host, network := a.As4(), to.Addr().As4()
		mask := uint32(math.MaxUint32) >> to.Bits()
		var moved [4]byte
		binary.BigEndian.PutUint32(moved[:], binary.BigEndian.Uint32(host[:])&mask|binary.BigEndian.Uint32(network[:])&^mask)
		return netip.AddrFrom4(moved)
	}
	moved, network := a.As16(), to.Addr().As16()
	for i := range moved {
		// How many bits of this byte belong to the network.
		mask := byte(math.MaxUint8 >> min(max(to.Bits()-8*i, 0), 8))
		moved[i] = moved[i]&mask | network[i]&^mask
	}
	return netip.AddrFrom16(moved)
}

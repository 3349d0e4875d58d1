// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package addressing_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

func anyAddr(r *rand.Rand, v6 bool) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], r.Uint64())
	if !v6 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	b[0] = 0xfd // One that is no IPv4 address.
	return netip.AddrFrom16(b)
}

func prefixOf(t *testing.T, a netip.Addr, bits int) netip.Prefix {
	t.Helper()
	p, err := a.Prefix(bits)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func viewOf(t *testing.T, own, seen string) addressing.View {
	t.Helper()
	view, err := addressing.NewView(own, seen)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// bit returns a bit of an address, with its first bit as number 0.
func bit(a netip.Addr, i int) byte { return a.AsSlice()[i/8] >> (7 - i%8) & 1 }

// within returns the address in a prefix that has the last bits of another one.
func within(p netip.Prefix, a netip.Addr) netip.Addr {
	b := a.AsSlice()
	for i := range p.Bits() {
		b[i/8] = b[i/8]&^(1<<(7-i%8)) | bit(p.Addr(), i)<<(7-i%8)
	}
	a, _ = netip.AddrFromSlice(b)
	return a
}

// anyView checks bit by bit what a view makes of an address, and of one that is not in it.
func anyView(t *testing.T, r *rand.Rand) {
	v6 := r.IntN(2) == 0
	all := anyAddr(r, v6).BitLen()
	bits := r.IntN(all + 1)
	own, seen := prefixOf(t, anyAddr(r, v6), bits), prefixOf(t, anyAddr(r, v6), bits)
	view := viewOf(t, own.String(), seen.String())
	a := within(own, anyAddr(r, v6))
	there, err := view.ToObserver(a)
	if want := within(seen, a); err != nil || there != want {
		t.Errorf("%s from %s to %s is %s (%v), want %s", a, own, seen, there, err, want)
	}
	if back, err := view.ToOwner(there); err != nil || back != a {
		t.Errorf("%s from %s to %s comes back as %s (%v)", a, own, seen, back, err)
	}
	if outside := anyAddr(r, v6); !own.Contains(outside) {
		if to, err := view.ToObserver(outside); err == nil {
			t.Errorf("%s is not in %s, and becomes %s", outside, own, to)
		}
	}
}

// nearPrefix returns a prefix that is often inside, beside or equal to others.
func nearPrefix(t *testing.T, r *rand.Rand) netip.Prefix {
	t.Helper()
	if r.IntN(4) > 0 {
		bits := []int{8, 9, 12, 16, 24, 31, 32}
		return prefixOf(t, netip.AddrFrom4([4]byte{10, byte(r.IntN(4)), byte(r.IntN(2)), byte(r.IntN(4))}), bits[r.IntN(len(bits))])
	}
	bits := []int{8, 16, 24, 64, 126, 127, 128}
	return prefixOf(t, netip.AddrFrom16([16]byte{0xfd, byte(r.IntN(2)), byte(r.IntN(2)), 15: byte(r.IntN(4))}), bits[r.IntN(len(bits))])
}

// anyTable makes a table of any routes: it is refused if two of its prefixes overlap, and only then, and finds what a
// search in all routes finds.
func anyTable(t *testing.T, r *rand.Rand) {
	broker := viewOf(t, nearPrefix(t, r).String(), "None")
	taken, overlap := []netip.Prefix{broker.Own}, false
	var routes []addressing.Route
	peers := map[cluster.ID]addressing.Peer{}
	for i := range r.IntN(5) {
		seen := nearPrefix(t, r)
		v6 := seen.Addr().Is6()
		own := prefixOf(t, anyAddr(r, v6), seen.Bits())
		id := cluster.ID(rune('a' + i))
		routes = append(routes, addressing.Route{Provider: id, Pods: viewOf(t, own.String(), seen.String())})
		if r.IntN(2) == 0 {
			here := prefixOf(t, anyAddr(r, v6), seen.Bits())
			peers[id] = addressing.Peer{Pods: viewOf(t, own.String(), here.String()), Connected: r.IntN(3) > 0}
		}
		for _, other := range taken {
			overlap = overlap || seen.Overlaps(other)
		}
		taken = append(taken, seen)
	}
	table, err := addressing.NewTable(broker, routes, peers)
	if overlap != (err != nil) {
		t.Fatalf("the prefixes %v overlap: %t, error %v", taken, overlap, err)
	}
	if err != nil {
		return
	}
	for range 6 {
		a := nearPrefix(t, r).Addr()
		wantPath, want := addressing.PathRelay, netip.Addr{}
		if broker.Own.Contains(a) {
			wantPath, want = addressing.PathBroker, a
		}
		for _, route := range routes {
			peer := peers[route.Provider]
			if owner, err := route.Pods.ToOwner(a); err == nil && peer.Connected {
				if want, err = peer.Pods.ToObserver(owner); err != nil {
					t.Fatal(err)
				}
				wantPath = addressing.PathDirect
			}
		}
		if path, got := table.Resolve(a); path != wantPath || got != want {
			t.Errorf("%s is %s by path %v, want %s by %v: routes %+v, peers %+v", a, got, path, want, wantPath, routes, peers)
		}
	}
}

// TestAnyView translates between random prefixes.
func TestAnyView(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) { anyView(t, rand.New(rand.NewPCG(seed, 1))) })
}

// TestAnyTable looks up addresses in random tables.
func TestAnyTable(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) { anyTable(t, rand.New(rand.NewPCG(seed, 1))) })
}

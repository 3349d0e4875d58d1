// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package addressing_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// observer is a cluster that gives out prefixes to its peers as Liqo does: the
// peer's own where it is free, and another one where it is not
// (liqo/pkg/liqonet/ipam/ipam.go@v0.9.4, GetSubnetsPerCluster).
type observer struct{ used []netip.Prefix }

func (o *observer) reserve(p netip.Prefix) { o.used = append(o.used, p) }

func (o *observer) see(own netip.Prefix) addressing.View {
	view := addressing.View{Own: own, Seen: own}
	for next := uint32(10 << 24); !o.isFree(view.Seen); next += 1 << (32 - own.Bits()) {
		view.Seen = netip.PrefixFrom(ipv4(next), own.Bits())
	}
	o.reserve(view.Seen)
	return view
}

func (o *observer) isFree(p netip.Prefix) bool {
	for _, used := range o.used {
		if used.Overlaps(p) {
			return false
		}
	}
	return true
}

// podCIDRs are chosen so that they are often equal, or inside of one another.
func podCIDR(random *rand.Rand) netip.Prefix {
	return netip.PrefixFrom(ipv4(10<<24|random.Uint32N(4)<<16|random.Uint32N(256)<<8), 14+random.IntN(11)).Masked()
}

// FuzzFederation makes a federation of clusters with any pod CIDRs, peered with
// one another in any way, and checks that no two pods share an address at the
// consumer, and that each direct address leads back to its pod.
func FuzzFederation(f *testing.F) {
	f.Add(uint64(1), uint8(3))
	f.Add(uint64(2), uint8(20))
	f.Add(uint64(0xffffffff), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, providers uint8) {
		random := rand.New(rand.NewPCG(seed, 0))
		var consumer, broker observer
		consumerPods, brokerPods := podCIDR(random), podCIDR(random)
		consumer.reserve(consumerPods)
		broker.reserve(brokerPods)

		seen := consumer.see(brokerPods)
		var routes []addressing.Route
		peers := map[cluster.ID]addressing.Peer{}
		owned := map[cluster.ID]netip.Prefix{}
		for i := range int(providers%32) + 1 {
			id, own := cluster.ID(fmt.Sprint(i)), podCIDR(random)
			owned[id] = own
			routes = append(routes, addressing.Route{Provider: id, Pods: broker.see(own)})
			if random.IntN(2) == 0 {
				peers[id] = addressing.Peer{Pods: consumer.see(own), Connected: random.IntN(4) > 0}
			}
		}
		table := newTable(t, seen, routes, peers)

		shown := map[netip.Addr]string{}
		show := func(pod string, address netip.Addr) {
			t.Helper()
			if other, ok := shown[address]; ok && other != pod {
				t.Fatalf("%s and %s are both shown at %s", pod, other, address)
			}
			shown[address] = pod
		}
		for range 50 {
			own := host(random, consumerPods)
			show("consumer's "+own.String(), own)
			at := host(random, brokerPods)
			path, address := table.Resolve(at)
			if path != addressing.PathBroker {
				t.Fatalf("the broker's own pod at %s is reached by path %s", at, path)
			}
			show("broker's "+at.String(), address)
			for _, route := range routes {
				pod := host(random, owned[route.Provider])
				reported, err := route.Pods.ToObserver(pod)
				if err != nil {
					t.Fatal(err)
				}
				path, address := table.Resolve(reported)
				peer, peered := peers[route.Provider]
				if want := peered && peer.Connected; want != (path == addressing.PathDirect) {
					t.Fatalf("pod %s of provider %s: path %s, with a connected tunnel: %t", pod, route.Provider, path, want)
				}
				if path != addressing.PathDirect {
					continue // Liqo's IPAM gives out a relay address for each.
				}
				show("provider "+string(route.Provider)+"'s "+pod.String(), address)
				if back, err := peer.Pods.ToOwner(address); err != nil || back != pod {
					t.Fatalf("%s leads to %s (%v), not to %s", address, back, err, pod)
				}
			}
		}
	})
}

// host returns an address inside a prefix.
func host(random *rand.Rand, p netip.Prefix) netip.Addr {
	return ipv4(binary.BigEndian.Uint32(p.Addr().AsSlice()) | random.Uint32()&uint32(uint64(1)<<(32-p.Bits())-1))
}

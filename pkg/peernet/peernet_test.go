// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package peernet

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// tunnel returns the network towards a peer whose pods and external CIDR have the given prefixes, and others here.
func tunnel(name, pods, podsHere, external, externalHere string) *v09.TunnelEndpoint {
	t := liqotest.Tunnel(cluster.Identity{ID: cluster.ID("id-" + name), Name: name}, "1ms", time.Now())
	t.Spec.RemotePodCIDR, t.Spec.RemoteNATPodCIDR = pods, podsHere
	t.Spec.RemoteExternalCIDR, t.Spec.RemoteNATExternalCIDR = external, externalHere
	return t
}

func TestExcludes(t *testing.T) {
	a := tunnel("a", "10.200.0.0/16", "10.60.0.0/16", "10.201.0.0/16", "None")
	b := tunnel("b", "10.70.0.0/16", "None", "10.201.0.0/16", "10.61.0.0/16")
	cases := map[string]struct {
		reason  string
		unknown bool
		events  func(p *Peers)
		from    string
		want    bool
	}{
		"Remapped":     {reason: "A pod of a peer comes from where the peer is seen.", from: "10.60.1.2"},
		"AsItIs":       {reason: "So where nothing is remapped.", from: "10.70.1.2"},
		"External":     {reason: "What a peer relays comes from its external CIDR.", from: "10.201.0.9"},
		"ExternalHere": {reason: "Which is remapped as well.", from: "10.61.0.9"},
		"Own":          {reason: "An own pod may have an address that a peer's pod has at home.", from: "10.200.1.2", want: true},
		"Node":         {reason: "A node is no peer.", from: "192.0.2.1", want: true},
		"Unknown":      {reason: "As long as the peers are not known, it may be one.", unknown: true, from: "192.0.2.1"},
		"Gone": {
			reason: "The prefix of a peer that has left is free again.", events: func(p *Peers) { p.remove(a) }, from: "10.60.1.2", want: true,
		},
		"GoneUnseen": {
			reason: "So if nobody saw it leave.", events: func(p *Peers) { p.remove(toolscache.DeletedFinalStateUnknown{Obj: a}) },
			from: "10.60.1.2", want: true,
		},
		"OtherStays": {reason: "The others' stay.", events: func(p *Peers) { p.remove(a) }, from: "10.70.1.2"},
		"Moved": {
			reason: "A peer may get another prefix.", events: func(p *Peers) { p.set(tunnel("a", "10.200.0.0/16", "10.62.0.0/16", "", "")) },
			from: "10.62.1.2",
		},
		"Undecided": {
			reason: "What a peer asks for is not yet what it has: it may be our own.",
			events: func(p *Peers) { p.set(tunnel("c", "192.0.2.0/24", "", "", "")) }, from: "192.0.2.1", want: true,
		},
		"Unreadable": {
			reason: "What cannot be read hides nothing else.", events: func(p *Peers) { p.set(tunnel("c", "all", "None", "10.63.0.0/16", "None")) },
			from: "10.63.0.1",
		},
		"OtherLength": {
			reason: "A peer is routed where it is seen, whatever it says of itself later.",
			events: func(p *Peers) { p.set(tunnel("a", "10.99.0.0/24", "10.60.0.0/16", "", "")) }, from: "10.60.1.2",
		},
		"SomethingElse": {reason: "Other objects say nothing.", events: func(p *Peers) { p.set("x"); p.remove("x") }, from: "10.60.1.2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Peers{line: v09.Line{}, complete: func() bool { return !tc.unknown }}
			p.set(a)
			p.set(b)
			if tc.events != nil {
				tc.events(p)
			}
			from := netip.MustParseAddr(tc.from)
			if got := p.Excludes(from); got != tc.want {
				t.Errorf("%s\nExcludes(%s) = %t, want %t", tc.reason, tc.from, got, tc.want)
			}
			if got := p.Includes(from); got == (tc.want || tc.unknown) {
				t.Errorf("%s\nIncludes(%s) = %t", tc.reason, tc.from, got)
			}
		})
	}
}

// lists returns networks of Liqo 1.x in one tenant namespace, by name, with how many prefixes each has.
func lists(namespace string, from netip.Addr, sizes map[string]int) []*api.Configuration {
	var all []*api.Configuration
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		c := &api.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		c.Status.Remote = &api.ClusterNetworks{}
		for range sizes[name] {
			c.Status.Remote.CIDR.Pod = append(c.Status.Remote.CIDR.Pod, netip.PrefixFrom(from, from.BitLen()).String())
			from = from.Next()
		}
		all = append(all, c)
	}
	return all
}

// TestManyPrefixes has a peer with very many prefixes: it is known by all of them, and who is none of its own notices nothing.
func TestManyPrefixes(t *testing.T) {
	first, stranger := netip.MustParseAddr("10.64.0.0"), netip.MustParseAddr("192.0.2.1")
	other := lists("tenant-b", netip.MustParseAddr("10.70.0.0"), map[string]int{"b": 1})[0]
	cases := map[string]struct {
		reason string
		sizes  map[string]int
		last   string
	}{
		"One":     {"It is an honest peer.", map[string]int{"a": 1}, "10.64.0.0"},
		"Many":    {"A broker may have a thousand providers.", map[string]int{"a": 1000}, "10.64.3.231"},
		"More":    {"None is left out.", map[string]int{"a": 70000}, "10.65.17.111"},
		"Records": {"All records in a tenant namespace are of one peer.", map[string]int{"a": 5000, "b": 5000, "c": 1}, "10.64.39.16"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Peers{line: v1.Line{}, complete: func() bool { return true }}
			records := lists("tenant-a", first, tc.sizes)
			p.set(other)
			for range 2 {
				for _, record := range records {
					p.set(record)
				}
			}
			last := netip.MustParseAddr(tc.last)
			for _, a := range []netip.Addr{first, last} {
				if p.Excludes(a) || p.Source(a) != source.Peer("tenant-a") {
					t.Errorf("%s\nExcludes(%s) = %t, Source() = %v", tc.reason, a, p.Excludes(a), p.Source(a))
				}
			}
			for _, a := range []netip.Addr{stranger, last.Next()} {
				if !p.Excludes(a) || p.Source(a) != source.Network(a) {
					t.Errorf("%s\nExcludes(%s) = %t, Source() = %v", tc.reason, a, p.Excludes(a), p.Source(a))
				}
			}

			// With fewer, the rest is free; with none, nothing is remembered.
			for _, record := range records[1:] {
				p.remove(record)
			}
			p.set(lists("tenant-a", first, map[string]int{"a": 1})[0])
			if p.Excludes(first) || !p.Excludes(first.Next()) || !p.Excludes(stranger) {
				t.Errorf("%s\nwith one prefix left, Excludes() = %t, %t, %t", tc.reason, p.Excludes(first), p.Excludes(first.Next()),
					p.Excludes(stranger))
			}
			p.remove(records[0])
			if a := netip.MustParseAddr("10.70.0.0"); p.Source(a) != source.Peer("tenant-b") {
				t.Errorf("%s\nSource(%s) = %v", tc.reason, a, p.Source(a))
			}
			p.remove(other)
			if len(p.networks)+len(p.tenants) > 0 {
				t.Errorf("%s\nof peers that are gone %d networks and %d prefixes are remembered", tc.reason, len(p.networks), len(p.tenants))
			}
		})
	}
}

// TestOverlapping has networks with the same addresses, which Liqo makes for no peer.
func TestOverlapping(t *testing.T) {
	record := func(namespace, name string, prefixes ...string) *api.Configuration {
		c := &api.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		c.Status.Remote = &api.ClusterNetworks{CIDR: api.CIDRs{Pod: prefixes}}
		return c
	}
	a := netip.MustParseAddr("10.64.1.1")
	wide, narrow := record("tenant-a", "a", "10.64.0.0/16"), record("tenant-b", "b", "10.64.1.0/24")
	cases := map[string]struct {
		reason  string
		records []*api.Configuration
		gone    []*api.Configuration
		want    string
	}{
		"Longest":    {reason: "It is routed to the longest prefix.", records: []*api.Configuration{narrow, wide}, want: "tenant-b"},
		"LongerGone": {"Then the other one counts.", []*api.Configuration{narrow, wide}, []*api.Configuration{narrow}, "tenant-a"},
		"Same": {
			reason: "It is always the same one.", records: []*api.Configuration{record("tenant-b", "b", "10.64.1.0/24"),
				record("tenant-a", "a", "10.64.1.0/24")}, want: "tenant-a",
		},
		"SameGone": {
			"One is left.", []*api.Configuration{narrow, record("tenant-a", "a", "10.64.1.0/24")},
			[]*api.Configuration{record("tenant-a", "a")}, "tenant-b",
		},
		"Twice": {
			"The peer has it still.", []*api.Configuration{narrow, record("tenant-b", "c", "10.64.1.0/24")}, []*api.Configuration{narrow},
			"tenant-b",
		},
		"TwiceInOne": {
			"It is gone with its record.", []*api.Configuration{wide, record("tenant-b", "b", "10.64.1.0/24", "10.64.1.0/24")},
			[]*api.Configuration{narrow}, "tenant-a",
		},
		"Unmasked": {reason: "It is the same prefix.", records: []*api.Configuration{record("tenant-b", "b", "10.64.1.9/24")}, want: "tenant-b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Peers{line: v1.Line{}}
			for _, record := range tc.records {
				p.set(record)
			}
			for _, record := range tc.gone {
				p.remove(record)
			}
			if got := p.Source(a); got != source.Peer(tc.want) {
				t.Errorf("%s\nSource(%s) = %v, want that of %s", tc.reason, a, got, tc.want)
			}
		})
	}
}

func TestNothingWatched(t *testing.T) {
	if (&Peers{}).Excludes(netip.MustParseAddr("192.0.2.1")) {
		t.Error("without a watch, an address is excluded from peers that nobody knows")
	}
}

// TestSource compares for whom two addresses count.
func TestSource(t *testing.T) {
	p := &Peers{line: v09.Line{}}
	p.set(tunnel("a", "10.200.0.0/16", "10.60.0.0/16", "10.201.0.0/16", "None"))
	p.set(tunnel("b", "10.70.0.0/16", "None", "10.201.0.0/16", "10.61.0.0/16"))
	cases := map[string]struct {
		reason string
		a, b   string
		same   bool
	}{
		"Peer":     {reason: "All pods of a peer count for it.", a: "10.60.1.2", b: "10.60.250.9", same: true},
		"External": {reason: "So does what it relays.", a: "10.60.1.2", b: "10.201.0.9", same: true},
		"Peers":    {reason: "Another peer counts for itself.", a: "10.60.1.2", b: "10.70.1.2"},
		"Network":  {reason: "Of others nothing is known but their network.", a: "192.0.2.1", b: "192.0.2.2", same: true},
		"Networks": {reason: "Which is one of many.", a: "192.0.2.1", b: "198.51.100.1"},
		"AtHome":   {reason: "What a peer is called at home is not whose it is here.", a: "10.60.1.2", b: "10.200.1.2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := p.Source(netip.MustParseAddr(tc.a)), p.Source(netip.MustParseAddr(tc.b))
			if (a == b) != tc.same {
				t.Errorf("%s\nSource(%s) = %+v, Source(%s) = %+v, want the same: %t", tc.reason, tc.a, a, tc.b, b, tc.same)
			}
		})
	}
}

// BenchmarkPrefixes measures what a peer costs by the number of its prefixes: to take its record with others, twice, and with the same,
// and to look for an address. 128 are as many as the policies for Liqo 1.x let it have, and 100,000 as many as fit into an object.
func BenchmarkPrefixes(b *testing.B) {
	for _, n := range []int{2, 128, 100_000} {
		p := &Peers{line: v1.Line{}, complete: func() bool { return true }}
		record := lists("tenant-a", netip.MustParseAddr("10.64.0.0"), map[string]int{"a": n})[0]
		other := lists("tenant-a", netip.MustParseAddr("10.65.0.0"), map[string]int{"a": n})[0]
		b.Run(fmt.Sprintf("change/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.set(other)
				p.set(record)
			}
		})
		b.Run(fmt.Sprintf("again/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.set(record)
			}
		})
		b.Run(fmt.Sprintf("find/%d", n), func(b *testing.B) {
			stranger := netip.MustParseAddr("2001:db8::1")
			b.ReportAllocs()
			for b.Loop() {
				if p.Includes(stranger) {
					b.Fatal("a stranger is taken for a peer")
				}
			}
		})
	}
	b.Run("find/of a thousand peers with the same prefix", func(b *testing.B) {
		p := &Peers{line: v1.Line{}, complete: func() bool { return true }}
		shared := netip.MustParseAddr("10.64.0.0")
		for i := range 1000 {
			p.set(lists(fmt.Sprintf("tenant-%d", i), shared, map[string]int{"a": 1})[0])
		}
		b.ReportAllocs()
		for b.Loop() {
			p.Includes(shared)
		}
	})
}

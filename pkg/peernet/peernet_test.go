// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package peernet

import (
	"net/netip"
	"testing"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
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

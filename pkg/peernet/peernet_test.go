// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package peernet

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
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
func lists(namespace string, sizes map[string]int) []*api.Configuration {
	var all []*api.Configuration
	next := netip.MustParseAddr("10.64.0.0")
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		c := &api.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		c.Status.Remote = &api.ClusterNetworks{}
		for range sizes[name] {
			c.Status.Remote.CIDR.Pod = append(c.Status.Remote.CIDR.Pod, netip.PrefixFrom(next, next.BitLen()).String())
			next = next.Next()
		}
		all = append(all, c)
	}
	return all
}

// TestTooManyPrefixes has a peer that writes more than is taken of it. It opens nothing to itself by that, and the log tells who it is.
func TestTooManyPrefixes(t *testing.T) {
	cases := map[string]struct {
		reason string
		sizes  map[string]int
		over   bool
	}{
		"Many":    {"A broker may have a thousand providers.", map[string]int{"a": 1000}, false},
		"All":     {"So many are taken.", map[string]int{"a": maxPrefixes}, false},
		"More":    {"The last one is not.", map[string]int{"a": maxPrefixes + 1}, true},
		"Two":     {"All records in a tenant namespace are of one peer.", map[string]int{"a": maxPrefixes - 1, "b": 2}, true},
		"TwoFit":  {"They may be several.", map[string]int{"a": maxPrefixes - 2, "b": 2}, false},
		"Unread":  {"What is not read may say anything.", map[string]int{"a": maxPrefixes, "b": 1}, true},
		"Nothing": {"It has decided on nothing yet.", map[string]int{"a": 0}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var logged []string
			log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
			p := &Peers{line: v1.Line{}, log: log, complete: func() bool { return true }}
			records := lists("tenant-a", tc.sizes)
			for range 2 {
				for _, record := range records {
					p.set(record)
				}
			}
			if n := len(p.tenants["tenant-a"].prefixes); n > maxPrefixes {
				t.Errorf("%s\n%d prefixes are taken", tc.reason, n)
			}
			stranger, first, last := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("10.64.0.0"), netip.MustParseAddr("10.64.8.0")
			if got := p.Excludes(stranger); got == tc.over {
				t.Errorf("%s\nExcludes(%s) = %t", tc.reason, stranger, got)
			}
			if !p.ExcludesKnown(stranger) {
				t.Errorf("%s\nwho is no peer waits", tc.reason)
			}
			if tc.over && (p.Excludes(last) || p.Source(last) != source.Network(last)) {
				t.Errorf("%s\nExcludes(%s) = %t, Source() = %v", tc.reason, last, p.Excludes(last), p.Source(last))
			}
			if has := tc.sizes["a"] > 0; p.Includes(first) != has || (p.Source(first) == source.Peer("tenant-a")) != has {
				t.Errorf("%s\nIncludes(%s) = %t, Source() = %v", tc.reason, first, p.Includes(first), p.Source(first))
			}
			want := 0
			if tc.over {
				want = 1
			}
			if len(logged) != want || want == 1 && !strings.Contains(logged[0], `"tenantNamespace"="tenant-a"`) {
				t.Errorf("%s\nthe log has %q", tc.reason, logged)
			}

			// With fewer, all is as before.
			for _, record := range records[1:] {
				p.remove(record)
			}
			p.set(lists("tenant-a", map[string]int{"a": 1})[0])
			if !p.Excludes(stranger) || !p.Excludes(last) || p.Excludes(first) {
				t.Errorf("%s\nwith one prefix left, Excludes() = %t, %t, %t", tc.reason, p.Excludes(stranger), p.Excludes(last), p.Excludes(first))
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

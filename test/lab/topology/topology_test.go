// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTopologiesAreValid(t *testing.T) {
	for name, want := range map[string]struct {
		reason string
		same   bool
	}{
		"overlapping": {reason: "an address that was not translated must not be right by luck", same: true},
		"distinct":    {reason: "nothing may need a translation", same: false},
		"equal":       {reason: "nothing may be right by luck", same: true},
		"partial":     {reason: "prefixes of different lengths do not even compare", same: false},
	} {
		t.Run(name, func(t *testing.T) {
			topology, err := Named(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := topology.Validate(); err != nil {
				t.Errorf("Validate: %v", err)
			}
			consumer, err := topology.Cluster(Consumer)
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range []string{ProviderA, ProviderB} {
				provider, err := topology.Cluster(other)
				if err != nil {
					t.Fatal(err)
				}
				if same := consumer.PodCIDR == provider.PodCIDR; same != want.same {
					t.Errorf("consumer and %s have the same pod CIDR: %t, want %t: %s", other, same, want.same, want.reason)
				}
			}
		})
	}
}

func TestNestedIsValid(t *testing.T) {
	if err := Nested().Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
}

func TestSelect(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		names    []string
		clusters []string
		peerings []Peering
		err      string
	}{
		"All": {
			reason: "no names select everything", clusters: []string{Consumer, Broker, ProviderA, ProviderB}, peerings: Overlapping().Peerings,
		},
		"Two": {
			reason: "only peerings among the selected remain", names: []string{Broker, ProviderA},
			clusters: []string{Broker, ProviderA}, peerings: []Peering{{Broker, ProviderA}},
		},
		"Unknown": {reason: "the error names the cluster", names: []string{"moon"}, err: `unknown cluster "moon"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Overlapping().Select(tc.names...)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q: %s", err, tc.err, tc.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.clusters, got.Names()); diff != "" {
				t.Errorf("clusters (-want +got), %s:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.peerings, got.Peerings); diff != "" {
				t.Errorf("peerings (-want +got), %s:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*Topology)
		want   string
	}{
		"SameName":    {"a name is a key", func(t *Topology) { t.Clusters[1].Name = t.Clusters[0].Name }, "used twice"},
		"SameAddress": {"two nodes cannot share one", func(t *Topology) { t.Clusters[1].Address = t.Clusters[0].Address }, "used twice"},
		"OffWAN": {
			"the node would not be reached", func(t *Topology) { t.Clusters[0].Address = netip.MustParseAddr("10.0.0.1") }, "not a host",
		},
		"Overlap": {"pods and Services would collide", func(t *Topology) { t.Clusters[0].PodCIDR = t.Clusters[0].ServiceCIDR }, "overlap"},
		"Narrow": {
			"the node's part is a /24", func(t *Topology) { t.Clusters[0].PodCIDR = netip.MustParsePrefix("10.1.0.0/25") }, "must hold a /24",
		},
		"SelfPeering": {
			"a cluster has no use for itself", func(t *Topology) { t.Peerings[0].Provider = t.Peerings[0].Consumer }, "not between two",
		},
	} {
		t.Run(name, func(t *testing.T) {
			topology := Overlapping()
			tc.change(&topology)
			if err := topology.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

func TestServiceAddresses(t *testing.T) {
	c := Overlapping().Clusters[0]
	got := []string{c.APIServerIP().String(), c.DNSIP().String(), c.NodePodCIDR().String()}
	if diff := cmp.Diff([]string{"10.80.0.1", "10.80.0.10", "10.200.0.0/24"}, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

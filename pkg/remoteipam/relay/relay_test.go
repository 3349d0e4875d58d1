// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

// calls is an IPAM that has given out one address for all, and remembers what it was
// asked to forget. What it maps anew gets the second one.
type calls struct{ unmapped []string }

const firstRelay, secondRelay = "10.202.0.6", "10.202.0.7"

func (c *calls) MapRelay(_ context.Context, _ cluster.ID, address netip.Addr) (netip.Addr, error) {
	if slices.Contains(c.unmapped, address.String()) {
		return netip.MustParseAddr(secondRelay), nil
	}
	return netip.MustParseAddr(firstRelay), nil
}

func (c *calls) UnmapRelay(_ context.Context, _ cluster.ID, address netip.Addr) error {
	c.unmapped = append(c.unmapped, address.String())
	return nil
}

// TestTaken asks for the address of a pod, when Liqo's IPAM may have given it out before.
func TestTaken(t *testing.T) {
	const consumer, pod, other = cluster.ID("consumer"), "10.90.0.13", "10.90.0.14"
	cases := map[string]struct {
		reason   string
		target   cluster.ID
		mapped   map[string]string
		used     bool // By the other pod.
		want     string
		unmapped []string
	}{
		"Alone": {reason: "It leads to the pod.", target: consumer, mapped: map[string]string{pod: firstRelay, other: secondRelay}, used: true, want: firstRelay},
		"New":   {reason: "It is not written down yet.", target: consumer, want: firstRelay},
		"Used": {reason: "It leads to another pod, which keeps it.", target: consumer, mapped: map[string]string{pod: firstRelay, other: firstRelay},
			used: true},
		"Left": {reason: "It led to another pod, which is gone.", target: consumer, mapped: map[string]string{pod: firstRelay, other: firstRelay},
			want: secondRelay, unmapped: []string{other, pod}},
		"Own":       {reason: "Liqo leads to something else with it.", target: consumer, mapped: map[string]string{pod: firstRelay, "10.80.0.1": firstRelay}},
		"Elsewhere": {reason: "It leads another cluster to another pod.", target: "another", mapped: map[string]string{other: firstRelay}, used: true, want: firstRelay},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, consumer)
			store.SetPod("shop", "web", netip.MustParseAddr(pod))
			if tc.used {
				store.SetPod("shop", "db", netip.MustParseAddr(other))
			}
			ipam := &calls{}
			keeper := NewKeeper(ipam, store, NatMappings{mapped(t, tc.target, tc.mapped)})

			got, err := keeper.MapRelay(t.Context(), consumer, netip.MustParseAddr(pod))
			if tc.want == "" != errors.Is(err, ErrTaken) || tc.want != "" && (err != nil || got.String() != tc.want) {
				t.Errorf("%s: got %v, %v, want %q", tc.reason, got, err, tc.want)
			}
			if diff := cmp.Diff(tc.unmapped, ipam.unmapped, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: unmapped: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

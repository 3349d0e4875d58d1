// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package addressing_test

import (
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
)

func TestCheckReport(t *testing.T) {
	provider := addressing.Peer{
		Pods:         view(t, "10.202.0.0/16", "10.92.0.0/16"),
		External:     view(t, "10.212.0.0/16", "10.93.0.0/16"),
		Home:         view(t, "10.201.0.0/16", "10.94.0.0/16"),
		HomeExternal: view(t, "10.211.0.0/16", "10.95.0.0/16"),
	}
	other := netip.MustParsePrefix("10.96.0.0/16")
	cases := map[string]struct {
		reason   string
		reported string
		ok       bool
	}{
		"Free":              {reason: "the provider's Liqo took it for the consumer", reported: "10.97.0.0/16", ok: true},
		"ProvidersViewHere": {reason: "what this cluster calls the provider's pods has no meaning there", reported: "10.92.0.0/16", ok: true},
		"Shared":            {reason: "clouds use RFC 6598 for pods", reported: "100.64.0.0/16", ok: true},
		"UniqueLocal":       {reason: "the private range of IPv6", reported: "fd12:3456::/48", ok: true},
		"Private172":        {reason: "the middle private range", reported: "172.31.0.0/16", ok: true},
		"Private192":        {reason: "the smallest private range", reported: "192.168.4.0/24", ok: true},
		"Pods":              {reason: "endpoints would be pods of the provider", reported: "10.202.0.0/16"},
		"PartOfPods":        {reason: "a part of the pod CIDR is as bad", reported: "10.202.7.0/24"},
		"AroundPods":        {reason: "and so is a prefix around it", reported: "10.200.0.0/13"},
		"External":          {reason: "endpoints would be whatever the provider relays to", reported: "10.212.0.0/16"},
		"Home":              {reason: "endpoints would be pods of this cluster", reported: "10.94.0.0/16"},
		"HomeExternal":      {reason: "endpoints would be what this cluster relays to", reported: "10.95.0.0/16"},
		"AnotherConsumer":   {reason: "endpoints would be pods of another consumer", reported: "10.96.0.0/16"},
		"LinkLocal":         {reason: "the metadata server of a cloud is there", reported: "169.254.0.0/16"},
		"Loopback":          {reason: "the node itself", reported: "127.0.0.0/16"},
		"Multicast":         {reason: "no pod has such an address", reported: "224.0.0.0/16"},
		"Public":            {reason: "a host of the internet", reported: "198.51.0.0/16"},
		"Everything":        {reason: "the whole network", reported: "0.0.0.0/0"},
		"AroundPrivate":     {reason: "public addresses are in it too", reported: "10.0.0.0/7"},
		"Mapped":            {reason: "4-in-6 addresses have ways of their own through comparisons", reported: "::ffff:10.97.0.0/112"},
		"LinkLocal6":        {reason: "the link of the provider's nodes", reported: "fe80::/64"},
		"Loopback6":         {reason: "the node itself", reported: "::1/128"},
		"Multicast6":        {reason: "no pod has such an address", reported: "ff02::/64"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := addressing.CheckReport(netip.MustParsePrefix(tc.reported), append(provider.Taken(), other)...)
			if (err == nil) != tc.ok {
				t.Errorf("%s: CheckReport(%s) = %v, want accepted %t", tc.reason, tc.reported, err, tc.ok)
			}
		})
	}
	if err := addressing.CheckReport(netip.Prefix{}); err == nil {
		t.Error("the zero prefix is accepted")
	}
	if taken := (addressing.Peer{}).Taken(); len(taken) != 0 {
		t.Errorf("%v are taken at a peer of which nothing is known", taken)
	}
}

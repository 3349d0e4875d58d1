// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

func TestWayTo(t *testing.T) {
	const broker, a, b = cluster.ID("broker"), cluster.ID("provider-a"), cluster.ID("provider-b")
	tunnelOfBroker := addressing.Peer{
		Pods: mustView(t, "10.201.0.0/16", "10.83.0.0/16"), External: mustView(t, "10.81.0.0/16", "10.202.0.0/16"), Connected: true,
	}
	tunnelOfA := addressing.Peer{Pods: mustView(t, "10.200.0.0/16", "10.84.0.0/16"), Connected: true}
	lost := tunnelOfA
	lost.Connected = false
	peers := map[cluster.ID]addressing.Peer{broker: tunnelOfBroker, a: tunnelOfA}
	orchestrated := &fakeRelay{routes: []addressing.Route{
		{Provider: a, Name: "milan", Pods: mustView(t, "10.200.0.0/16", "10.90.0.0/16")},
		{Provider: b, Pods: mustView(t, "10.200.0.0/16", "10.91.0.0/16")},
	}}
	aggregated := &fakeRelay{routes: []addressing.Route{}}
	none := Way{}
	cases := map[string]struct {
		reason          string
		relay           Relay
		peers           map[cluster.ID]addressing.Peer
		shown, reported string
		want            Way
		known           bool
	}{
		"Direct": {
			"the address is the provider's", orchestrated, peers, "10.84.0.13", "10.90.0.13", Way{addressing.PathDirect, a, "milan"}, true,
		},
		"Relay": {
			"the broker said who has the address", orchestrated, peers, "10.202.0.1", "10.91.0.13", Way{addressing.PathRelay, b, ""}, true,
		},
		"Aggregated": {"no route names a provider, whatever peerings there are", aggregated, peers,
			"10.202.0.1", "10.90.0.13", Way{Path: addressing.PathRelay}, true},
		"NotTold": {"the broker has told nothing yet: what was known stays", &fakeRelay{}, peers, "10.202.0.1", "10.90.0.13", none, false},
		"NotYet": {
			"the peering is there, and the status of the pod not yet", orchestrated, peers, "10.202.0.1", "10.90.0.13",
			Way{addressing.PathRelay, a, "milan"}, true,
		},
		"Moved":     {"the status is still that of another provider", orchestrated, peers, "10.84.0.13", "10.91.0.13", none, false},
		"Elsewhere": {"or of another pod there", orchestrated, peers, "10.84.0.13", "10.90.0.14", none, false},
		"TunnelLost": {"the direct address leads nowhere any more", orchestrated, map[cluster.ID]addressing.Peer{broker: tunnelOfBroker, a: lost},
			"10.84.0.13", "10.90.0.13", none, false},
		"BrokersOwn":   {"a pod of the broker is on no provider", orchestrated, peers, "10.83.0.13", "10.201.0.13", none, true},
		"NoBroker":     {"a foreign cluster that is none runs all pods itself", &fakeRelay{}, peers, "10.83.0.13", "10.201.0.13", none, true},
		"NoRemoteIPAM": {"nobody said that the foreign cluster is a broker", nil, peers, "10.202.0.1", "10.90.0.13", none, true},
		"NoTunnel":     {"nothing is known of any address", orchestrated, nil, "10.202.0.1", "10.90.0.13", none, false},
		"NotReported":  {"the foreign cluster makes the pod again", orchestrated, peers, "10.202.0.1", "", none, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			translation := New(localIPAM{}, broker, tc.relay)
			for id, peer := range tc.peers {
				translation.SetPeer(id, peer)
			}
			if got, known := translation.WayTo(tc.shown, tc.reported); got != tc.want || known != tc.known {
				t.Errorf("%s: got %s, %t; want %s, %t", tc.reason, got, known, tc.want, tc.known)
			}
		})
	}
}

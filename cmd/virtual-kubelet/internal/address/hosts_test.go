// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// The prefixes of the clusters in these tests: all but the broker have the same pods, and
// each sees the others under prefixes of its own.
const (
	theConsumer = cluster.ID("consumer")
	theBroker   = cluster.ID("broker")
	theProvider = cluster.ID("provider")
	theOther    = cluster.ID("provider-b")
)

// asConsumer are the addresses as the consumer's virtual kubelet for a cluster knows them.
func asConsumer(t *testing.T, foreign cluster.ID, relay Relay) *Addresses {
	t.Helper()
	a := New(localIPAM{}, foreign, relay)
	a.checkTunnel = true
	a.SetPeer(theBroker, addressing.Peer{
		Pods: mustView(t, "10.201.0.0/16", "10.83.0.0/16"), External: mustView(t, "10.81.0.0/16", "10.202.0.0/16"),
		Home: mustView(t, "10.200.0.0/16", "10.87.0.0/16"), HomeExternal: mustView(t, "10.81.0.0/16", "10.203.0.0/16"), Connected: true,
	})
	a.SetPeer(theProvider, addressing.Peer{
		Pods: mustView(t, "10.200.0.0/16", "10.84.0.0/16"), Home: mustView(t, "10.200.0.0/16", "10.99.0.0/16"), Connected: true,
	})
	return a
}

// asBroker are the addresses as the broker's virtual kubelet for the provider knows them.
func asBroker(t *testing.T, direct remoteipam.DirectConsumers) *Addresses {
	t.Helper()
	a := New(localIPAM{}, theProvider, nil)
	a.checkTunnel = true
	a.SetPeer(theProvider, addressing.Peer{
		Pods: mustView(t, "10.200.0.0/16", "10.90.0.0/16"), Home: mustView(t, "10.201.0.0/16", "10.95.0.0/16"), Connected: true,
	})
	a.SetPeer(theOther, addressing.Peer{Pods: mustView(t, "10.200.0.0/16", "10.91.0.0/16"), Connected: true})
	a.SetPeer(theConsumer, addressing.Peer{Pods: mustView(t, "10.200.0.0/16", "10.87.0.0/16"), Connected: true})
	a.setDirect(direct)
	return a
}

// TestMapHost translates addresses that a pod names.
func TestMapHost(t *testing.T) {
	broker := &fakeRelay{
		routes: []addressing.Route{{Provider: theProvider, Pods: mustView(t, "10.200.0.0/16", "10.90.0.0/16")}},
		from:   netip.MustParseAddr("10.91.0.7"), to: netip.MustParseAddr("10.202.0.1"),
	}
	oneHop, firstHop := asConsumer(t, theProvider, nil), asConsumer(t, theBroker, broker)
	secondHop := asBroker(t, remoteipam.DirectConsumers{theConsumer: netip.MustParsePrefix("10.99.0.0/16")})
	relayed := asBroker(t, nil)
	stranger := New(localIPAM{}, "stranger", nil)
	stranger.SetPeer(theBroker, addressing.Peer{Pods: mustView(t, "10.201.0.0/16", "10.83.0.0/16")})
	unknown := New(localIPAM{}, theProvider, nil)
	unknown.checkTunnel = true

	cases := map[string]struct {
		reason    string
		addresses *Addresses
		origin    cluster.ID
		host      string
		want      string
	}{
		"SameProvider":         {"a pod beside the one that names it", oneHop, "", "10.84.0.13", "10.200.0.13"},
		"OwnPod":               {"a pod of the cluster that offloads", oneHop, "", "10.200.1.1", "10.99.1.1"},
		"OtherCluster":         {"only this cluster reaches it at that address", oneHop, "", "10.83.0.4", ""},
		"ExternalCIDR":         {"a mapping leads from here, and not from there", oneHop, "", "10.202.0.1", ""},
		"OwnExternalCIDR":      {"a mapping leads here from there", oneHop, "", "10.81.0.1", ""},
		"Internet":             {"what is not Liqo's is the same everywhere", oneHop, "", "198.51.100.7", "198.51.100.7"},
		"Loopback":             {"a pod itself is the same everywhere", oneHop, "", "127.0.0.1", "127.0.0.1"},
		"SixToFour":            {"the arithmetic knows no family", oneHop, "", "fd00::1", "fd00::1"},
		"BrokersPod":           {"a pod of the broker itself", firstHop, "", "10.83.0.4", "10.201.0.4"},
		"Direct":               {"a pod that is reached past the broker, as the broker sees it", firstHop, "", "10.84.0.13", "10.90.0.13"},
		"Relay":                {"a pod that the broker leads to, as the broker sees it", firstHop, "", "10.202.0.1", "10.91.0.7"},
		"OtherRelay":           {"the broker leads there to a pod that is gone", firstHop, "", "10.202.0.2", ""},
		"ConsumersPod":         {"the first of two hops", firstHop, "", "10.200.1.1", "10.87.1.1"},
		"ThenSameProvider":     {"the second of two hops, to a pod beside", secondHop, theConsumer, "10.90.0.13", "10.200.0.13"},
		"ThenOtherProvider":    {"a provider does not reach another one at the broker's address", secondHop, theConsumer, "10.91.0.7", ""},
		"ThenBroker":           {"a provider reaches the broker's pods", secondHop, theConsumer, "10.201.0.4", "10.95.0.4"},
		"ThenConsumer":         {"a provider that is peered with the consumer", secondHop, theConsumer, "10.87.1.1", "10.99.1.1"},
		"ThenConsumerRelayed":  {"a provider that is not", relayed, theConsumer, "10.87.1.1", ""},
		"ThenAnotherConsumer":  {"a consumer learns nothing of another one's way", secondHop, "another", "10.87.1.1", ""},
		"ThenConsumerByBroker": {"the broker's own pods may name a consumer's", secondHop, "", "10.87.1.1", "10.99.1.1"},
		"OtherNetwork":         {"where the network is not Liqo's, addresses mean the same", stranger, "", "10.83.0.4", "10.83.0.4"},
		"TunnelUnknown":        {"what is not known yet is waited for", unknown, "", "198.51.100.7", "wait"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.addresses.MapHost(tc.origin, netip.MustParseAddr(tc.host))
			switch {
			case tc.want == "wait":
				if err == nil || errors.Is(err, ErrHostUnknown) {
					t.Errorf("%s: %s becomes %s (%v), want another error", tc.reason, tc.host, got, err)
				}
			case tc.want == "":
				if !errors.Is(err, ErrHostUnknown) {
					t.Errorf("%s: %s becomes %s (%v), want none", tc.reason, tc.host, got, err)
				}
			case err != nil || got.String() != tc.want:
				t.Errorf("%s: %s becomes %s (%v), want %s", tc.reason, tc.host, got, err, tc.want)
			}
		})
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"google.golang.org/grpc"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// fakeRelay tells routes, and maps one address.
type fakeRelay struct {
	routes []addressing.Route
	from   netip.Addr
	to     netip.Addr
	// tunnels is what was told last.
	tunnels map[cluster.ID]netip.Prefix
	// roundTrips are what was told last.
	roundTrips map[cluster.ID]time.Duration
}

var errRefused = errors.New("refused")

func (f *fakeRelay) Routes() []addressing.Route { return f.routes }

func (*fakeRelay) Hold(string, netip.Addr) {}

func (*fakeRelay) Release(string) {}

func (f *fakeRelay) SetTunnels(prefixes map[cluster.ID]netip.Prefix) { f.tunnels = prefixes }

func (f *fakeRelay) SetRoundTrip(id cluster.ID, took time.Duration, _ time.Time) {
	if f.roundTrips == nil {
		f.roundTrips = map[cluster.ID]time.Duration{}
	}
	f.roundTrips[id] = took
}

func (f *fakeRelay) MapRelay(_ context.Context, address netip.Addr) (netip.Addr, error) {
	if address != f.from {
		return netip.Addr{}, errRefused
	}
	return f.to, nil
}

func (f *fakeRelay) Reported(relay netip.Addr) (netip.Addr, bool) {
	if !relay.IsValid() || relay != f.to {
		return netip.Addr{}, false
	}
	return f.from, true
}

// localIPAM answers for foreign clusters other than the one of the test.
type localIPAM struct{ ipam.IpamClient }

func (localIPAM) GetHomePodIP(context.Context, *ipam.GetHomePodIPRequest, ...grpc.CallOption) (*ipam.GetHomePodIPResponse, error) {
	return &ipam.GetHomePodIPResponse{HomeIP: "192.0.2.9"}, nil
}

func (localIPAM) MapEndpointIP(context.Context, *ipam.MapRequest, ...grpc.CallOption) (*ipam.MapResponse, error) {
	return &ipam.MapResponse{Ip: "192.0.2.8"}, nil
}

func mustView(t *testing.T, own, seen string) addressing.View {
	t.Helper()
	view, err := addressing.NewView(own, seen)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func TestGetHomePodIP(t *testing.T) {
	const broker, a = cluster.ID("broker"), cluster.ID("provider-a")
	tunnelOfBroker := addressing.Peer{
		Pods: mustView(t, "10.201.0.0/16", "10.83.0.0/16"), External: mustView(t, "10.81.0.0/16", "10.202.0.0/16"), Connected: true,
	}
	answering := func(relay string) *fakeRelay {
		return &fakeRelay{from: netip.MustParseAddr("10.91.0.7"), to: netip.MustParseAddr(relay)}
	}
	tunnelOfA := addressing.Peer{Pods: mustView(t, "10.200.0.0/16", "10.84.0.0/16"), Connected: true}
	remote := &fakeRelay{
		routes: []addressing.Route{{Provider: a, Pods: mustView(t, "10.200.0.0/16", "10.90.0.0/16")}},
		from:   netip.MustParseAddr("10.91.0.7"), to: netip.MustParseAddr("10.202.0.1"),
	}
	overlapping := &fakeRelay{
		routes: []addressing.Route{{Provider: a, Pods: mustView(t, "10.200.0.0/16", "10.201.0.0/16")}},
		from:   netip.MustParseAddr("10.91.0.7"), to: netip.MustParseAddr("10.202.0.1"),
	}
	cases := map[string]struct {
		reason  string
		relay   Relay
		peers   map[cluster.ID]addressing.Peer
		cluster cluster.ID
		address string
		want    string
	}{
		"OwnPod": {"a pod of the foreign cluster itself, as in stock Liqo", nil,
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker}, broker, "10.201.0.13", "10.83.0.13"},
		"ForeignPodWithoutRemoteIPAM": {"stock Liqo shows another pod's address here", nil,
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker, a: tunnelOfA}, broker, "10.90.0.13", ""},
		"Direct": {"peered with the provider", remote,
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker, a: tunnelOfA}, broker, "10.90.0.13", "10.84.0.13"},
		"Relay": {"not peered with the provider", remote,
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker}, broker, "10.91.0.7", "10.202.0.1"},
		"Refused": {"the broker knows no such pod of ours", remote,
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker}, broker, "10.91.0.8", ""},
		"RelayInPods": {"a pod of the broker's own", answering("10.83.0.9"),
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker}, broker, "10.91.0.7", "10.83.0.9"},
		"RelayToOwnPod": {"a broker must not show a pod of this cluster as one of its providers", answering("10.200.0.99"),
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker}, broker, "10.91.0.7", ""},
		"RelayToAnotherPeer": {"nor one of another peer", answering("10.84.0.9"),
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker, a: tunnelOfA}, broker, "10.91.0.7", ""},
		"RelayAsSeenThere": {"what the broker calls its external CIDR means something else here", answering("10.81.0.9"),
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker}, broker, "10.91.0.7", ""},
		"RelayToMetadata": {"nor a server of this cluster's cloud", answering("169.254.169.254"),
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker}, broker, "10.91.0.7", ""},
		"NoTunnel": {"the prefixes of the foreign cluster are not known yet", remote,
			map[cluster.ID]addressing.Peer{a: tunnelOfA}, broker, "10.201.0.13", ""},
		"HostileRoutes": {"routes that overlap the broker's own pods do not change these", overlapping,
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker, a: tunnelOfA}, broker, "10.201.0.13", "10.83.0.13"},
		"Garbage": {"an address of a peer is hostile until parsed", remote,
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker}, broker, "ten", ""},
		"OtherCluster": {"questions about other clusters are the local IPAM's", remote,
			map[cluster.ID]addressing.Peer{broker: tunnelOfBroker}, "other", "10.1.1.1", "192.0.2.9"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			translation := New(localIPAM{}, broker, tc.relay)
			for id, peer := range tc.peers {
				translation.SetPeer(id, peer)
			}
			response, err := translation.GetHomePodIP(t.Context(), &ipam.GetHomePodIPRequest{ClusterID: string(tc.cluster), Ip: tc.address})
			if tc.want == "" {
				if err == nil {
					t.Fatalf("%s: got %s, want an error", tc.reason, response.GetHomeIP())
				}
				return
			}
			if err != nil || response.GetHomeIP() != tc.want {
				t.Errorf("%s: got %s, %v; want %s", tc.reason, response.GetHomeIP(), err, tc.want)
			}
		})
	}
}

func TestAddressesFollowTheTunnel(t *testing.T) {
	const broker, a = cluster.ID("broker"), cluster.ID("provider-a")
	remote := &fakeRelay{from: netip.MustParseAddr("10.90.0.13"), to: netip.MustParseAddr("10.202.0.1")}
	translation := New(localIPAM{}, broker, remote)
	show := func(step, want string) {
		t.Helper()
		response, err := translation.GetHomePodIP(t.Context(), &ipam.GetHomePodIPRequest{ClusterID: string(broker), Ip: "10.90.0.13"})
		if err != nil || response.GetHomeIP() != want {
			t.Errorf("%s: got %s, %v; want %s", step, response.GetHomeIP(), err, want)
		}
	}
	translation.SetPeer(broker, addressing.Peer{
		Pods: mustView(t, "10.201.0.0/16", "None"), External: mustView(t, "10.202.0.0/16", "None"), Connected: true,
	})
	show("before the broker told routes", "10.202.0.1")
	up := addressing.Peer{Pods: mustView(t, "10.200.0.0/16", "10.84.0.0/16"), Connected: true}
	if !translation.SetPeer(a, up) || translation.SetPeer(a, up) {
		t.Error("setPeer must report the first sight of a tunnel, and no event without news")
	}
	remote.routes = []addressing.Route{{Provider: a, Pods: mustView(t, "10.200.0.0/16", "10.90.0.0/16")}}
	translation.routesChanged()
	show("peered with the provider", "10.84.0.13")
	down := up
	down.Connected = false
	translation.SetPeer(a, down)
	show("the tunnel is down", "10.202.0.1")
	translation.SetPeer(a, up)
	show("the tunnel is back", "10.84.0.13")
	translation.deletePeer(a)
	show("the peering is gone", "10.202.0.1")
}

func TestMapEndpointIP(t *testing.T) {
	const provider, consumer = cluster.ID("provider"), cluster.ID("consumer")
	const relayed = "192.0.2.8"
	tunnel := addressing.Peer{Pods: mustView(t, "10.200.0.0/16", "10.91.0.0/16"), Connected: true}
	home := addressing.Peer{
		Pods: mustView(t, "10.202.0.0/16", "10.92.0.0/16"), External: mustView(t, "10.212.0.0/16", "10.93.0.0/16"),
		Home: mustView(t, "10.201.0.0/16", "10.94.0.0/16"), Connected: true,
	}
	there := netip.MustParsePrefix("10.83.0.0/16")
	direct := func(prefix string) remoteipam.DirectConsumers {
		return remoteipam.DirectConsumers{consumer: netip.MustParsePrefix(prefix)}
	}
	cases := map[string]struct {
		reason   string
		direct   remoteipam.DirectConsumers
		peers    map[cluster.ID]addressing.Peer
		cluster  cluster.ID
		endpoint string
		want     string
	}{
		"Direct": {"the provider reaches the consumer past the broker", remoteipam.DirectConsumers{consumer: there},
			map[cluster.ID]addressing.Peer{consumer: tunnel}, provider, "10.91.0.7", "10.83.0.7"},
		"NotPeered": {"the provider knows no way of its own to the consumer", nil,
			map[cluster.ID]addressing.Peer{consumer: tunnel}, provider, "10.91.0.7", relayed},
		"BrokersOwn": {"endpoints of the broker are the local IPAM's", remoteipam.DirectConsumers{consumer: there},
			map[cluster.ID]addressing.Peer{consumer: tunnel}, provider, "10.201.0.7", relayed},
		"ConsumerGone": {"what a consumer told that has left is not used", remoteipam.DirectConsumers{consumer: there},
			nil, provider, "10.91.0.7", relayed},
		"OtherLength": {"host bits cannot be kept", remoteipam.DirectConsumers{consumer: netip.MustParsePrefix("10.83.0.0/24")},
			map[cluster.ID]addressing.Peer{consumer: tunnel}, provider, "10.91.0.7", relayed},
		"OtherFamily": {"host bits cannot be kept", remoteipam.DirectConsumers{consumer: netip.MustParsePrefix("fd00::/16")},
			map[cluster.ID]addressing.Peer{consumer: tunnel}, provider, "10.91.0.7", relayed},
		"OtherCluster": {"questions about other clusters are the local IPAM's", remoteipam.DirectConsumers{consumer: there},
			map[cluster.ID]addressing.Peer{consumer: tunnel}, "other", "10.91.0.7", relayed},
		"Garbage": {"the local IPAM says what is wrong with it", remoteipam.DirectConsumers{consumer: there},
			map[cluster.ID]addressing.Peer{consumer: tunnel}, provider, "ten", relayed},
		"PodsOfTheProvider": {"a consumer must not make pods of the provider endpoints of its own", direct("10.202.0.0/16"),
			map[cluster.ID]addressing.Peer{consumer: tunnel}, provider, "10.91.0.7", relayed},
		"BrokersPods": {"nor pods of this cluster", direct("10.94.0.0/16"),
			map[cluster.ID]addressing.Peer{consumer: tunnel}, provider, "10.91.0.7", relayed},
		"LinkLocal": {"nor the metadata server of the provider's nodes", direct("169.254.0.0/16"),
			map[cluster.ID]addressing.Peer{consumer: tunnel}, provider, "10.91.0.7", relayed},
		"TwoConsumers": {"nobody knows which of two consumers has the prefix",
			remoteipam.DirectConsumers{consumer: there, "evil": there},
			map[cluster.ID]addressing.Peer{consumer: tunnel, "evil": {Pods: mustView(t, "10.205.0.0/16", "10.95.0.0/16")}},
			provider, "10.91.0.7", relayed},
		"ProviderNotKnown": {"what is taken at the provider is not known", remoteipam.DirectConsumers{consumer: there},
			map[cluster.ID]addressing.Peer{consumer: tunnel, provider: {}}, provider, "10.91.0.7", relayed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			translation := New(localIPAM{}, provider, nil)
			translation.SetPeer(provider, home)
			for id, peer := range tc.peers {
				translation.SetPeer(id, peer)
			}
			if peer, ok := tc.peers[provider]; ok && !peer.Pods.IsValid() {
				translation.deletePeer(provider)
			}
			translation.setDirect(tc.direct)
			response, err := translation.MapEndpointIP(t.Context(), &ipam.MapRequest{ClusterID: string(tc.cluster), Ip: tc.endpoint})
			if err != nil || response.GetIp() != tc.want {
				t.Errorf("%s: got %s, %v; want %s", tc.reason, response.GetIp(), err, tc.want)
			}
		})
	}
}

func TestTunnelsAreTold(t *testing.T) {
	const broker, a, b, c = cluster.ID("broker"), cluster.ID("provider-a"), cluster.ID("provider-b"), cluster.ID("provider-c")
	home := mustView(t, "10.200.0.0/16", "10.83.0.0/16")
	remote := &fakeRelay{}
	translation := New(localIPAM{}, broker, remote)
	translation.SetPeer(broker, addressing.Peer{Pods: mustView(t, "10.201.0.0/16", ""), Home: home, Connected: true})
	translation.SetPeer(a, addressing.Peer{Pods: mustView(t, "10.202.0.0/16", ""), Home: home, Connected: true})
	translation.SetPeer(b, addressing.Peer{Pods: mustView(t, "10.203.0.0/16", ""), Home: home})
	translation.SetPeer(c, addressing.Peer{Pods: mustView(t, "10.204.0.0/16", ""), Connected: true})
	want := map[cluster.ID]netip.Prefix{a: home.Seen}
	if diff := cmp.Diff(want, remote.tunnels, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("a tunnel that is down, a peer that told no prefix and the broker itself are no way past it (-want +got):\n%s", diff)
	}
	translation.SetPeer(a, addressing.Peer{Pods: mustView(t, "10.202.0.0/16", ""), Home: home})
	if len(remote.tunnels) != 0 {
		t.Errorf("after the tunnel was lost, %v is told", remote.tunnels)
	}
}

func TestRoundTripsArePassedOn(t *testing.T) {
	relay := &fakeRelay{}
	a := &Addresses{foreign: "broker", relay: relay}
	a.setRoundTrip("provider", time.Millisecond, time.Now())
	a.setRoundTrip("broker", time.Millisecond, time.Now())
	if diff := cmp.Diff(map[cluster.ID]time.Duration{"provider": time.Millisecond}, relay.roundTrips); diff != "" {
		t.Errorf("the broker measures itself how far it is: -want +got\n%s", diff)
	}
	(&Addresses{foreign: "provider"}).setRoundTrip("other", time.Millisecond, time.Now()) // Without a broker there is nobody to tell.
}

// TestSource compares for whom two callers count.
func TestSource(t *testing.T) {
	view := func(own, seen string) addressing.View {
		v, err := addressing.NewView(own, seen)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a := New(nil, "provider", nil)
	a.SetPeer("provider", addressing.Peer{Pods: view("10.200.0.0/16", "10.60.0.0/16"), External: view("10.201.0.0/16", "10.61.0.0/16")})
	a.SetPeer("consumer", addressing.Peer{Pods: view("10.70.0.0/16", "None")})
	cases := map[string]struct {
		reason string
		a, b   string
		same   bool
	}{
		"Peer":     {reason: "All pods of a cluster count for it.", a: "10.60.1.2", b: "10.60.250.9", same: true},
		"External": {reason: "So does what it relays.", a: "10.60.1.2", b: "10.61.0.9", same: true},
		"Peers":    {reason: "Another one counts for itself.", a: "10.60.1.2", b: "10.70.1.2"},
		"AtHome":   {reason: "What a cluster is called at home is not whose it is here.", a: "10.60.1.2", b: "10.200.1.2"},
		"Network":  {reason: "Of others nothing is known but their network.", a: "192.0.2.1", b: "192.0.2.2", same: true},
		"Networks": {reason: "Which is one of many.", a: "192.0.2.1", b: "198.51.100.1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of, other := a.source(netip.MustParseAddr(tc.a)), a.source(netip.MustParseAddr(tc.b))
			if (of == other) != tc.same {
				t.Errorf("%s\n%s counts for %+v, %s for %+v, want the same: %t", tc.reason, tc.a, of, tc.b, other, tc.same)
			}
		})
	}
}

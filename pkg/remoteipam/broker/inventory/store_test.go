// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/inventory"
)

func peer(t *testing.T, seen string, connected bool) addressing.Peer {
	t.Helper()
	view, err := addressing.NewView("10.200.0.0/16", seen)
	if err != nil {
		t.Fatal(err)
	}
	return addressing.Peer{Pods: view, Connected: connected}
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func TestChanges(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*inventory.Store)
		want   bool
	}{
		"NewPeer":  {"a provider joined", func(s *inventory.Store) { s.SetPeer("b", peer(t, "10.91.0.0/16", true)) }, true},
		"SamePeer": {"an event without news", func(s *inventory.Store) { s.SetPeer("a", peer(t, "10.90.0.0/16", true)) }, false},
		"TunnelDown": {
			"the broker's own tunnel is not on the consumer's direct path",
			func(s *inventory.Store) { s.SetPeer("a", peer(t, "10.90.0.0/16", false)) }, false,
		},
		"Remapped":      {"the prefix changed", func(s *inventory.Store) { s.SetPeer("a", peer(t, "10.92.0.0/16", true)) }, true},
		"PeerGone":      {"a provider left", func(s *inventory.Store) { s.DeletePeer("a") }, true},
		"UnknownGone":   {"nothing left", func(s *inventory.Store) { s.DeletePeer("x") }, false},
		"NewProvider":   {"a peer begins to provide", func(s *inventory.Store) { s.SetProvider("b", "") }, true},
		"SameProvider":  {"an event without news", func(s *inventory.Store) { s.SetProvider("a", "milan") }, false},
		"Renamed":       {"it calls itself otherwise", func(s *inventory.Store) { s.SetProvider("a", "turin") }, true},
		"NoProvider":    {"it ceases to", func(s *inventory.Store) { s.DeleteProvider("a") }, true},
		"NeverProvided": {"nothing ceases", func(s *inventory.Store) { s.DeleteProvider("x") }, false},
		"Opaque":        {"the broker hides its providers from now on", func(s *inventory.Store) { s.SetConsumer("c", false) }, true},
		"SameConsumer":  {"an event without news", func(s *inventory.Store) { s.SetConsumer("c", true) }, false},
		"ConsumerGone":  {"its stream must end", func(s *inventory.Store) { s.DeleteConsumer("c") }, true},
		"Pod":           {"pods do not change routes", func(s *inventory.Store) { s.SetPod("n", "p", netip.MustParseAddr("10.90.0.1")) }, false},
		"TwinNamespace": {"namespaces do not change routes", func(s *inventory.Store) { s.SetTwin("n", "c") }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := inventory.NewStore()
			store.SetPeer("a", peer(t, "10.90.0.0/16", true))
			store.SetConsumer("c", true)
			store.SetProvider("a", "milan")
			changes := store.Changes()
			tc.change(store)
			if got := isClosed(changes); got != tc.want {
				t.Errorf("%s: announced = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestRoutesLeaveOutTheConsumer(t *testing.T) {
	store := inventory.NewStore()
	store.SetPeer("b", peer(t, "10.91.0.0/16", true))
	store.SetPeer("c", peer(t, "10.92.0.0/16", true))
	store.SetPeer("a", peer(t, "10.90.0.0/16", true))
	for _, id := range []cluster.ID{"a", "b", "c"} {
		store.SetProvider(id, "the "+string(id))
	}
	store.SetConsumer("c", true)
	var got []cluster.ID
	for _, route := range store.Routes("c") {
		got = append(got, route.Provider)
		if want := "the " + string(route.Provider); route.Name != want {
			t.Errorf("the route to %s has the name %q, want %q", route.Provider, route.Name, want)
		}
	}
	if len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("routes of c = %v, want a and b in this order", got)
	}
	if routes := store.Routes("x"); routes != nil {
		t.Errorf("a cluster that is no consumer gets the routes %v", routes)
	}
}

func TestHasPod(t *testing.T) {
	address, second := netip.MustParseAddr("10.90.0.1"), netip.MustParseAddr("10.90.0.2")
	store := inventory.NewStore()
	has := func(step string, want bool) {
		t.Helper()
		if got := store.HasPod("c", address); got != want {
			t.Errorf("%s: HasPod = %t, want %t", step, got, want)
		}
	}
	store.SetPod("shop", "web", address)
	has("the namespace is not a twin", false)
	store.SetTwin("shop", "other")
	has("the namespace is another consumer's", false)
	store.SetTwin("shop", "c")
	has("the pod is the consumer's", true)
	store.SetPod("shop", "web", second)
	has("the pod has another address", false)
	store.SetPod("shop", "web", address)
	store.SetPod("shop", "successor", address)
	store.SetPod("shop", "web", netip.Addr{})
	has("the address passed to another pod of the consumer", true)
	store.SetPod("shop", "successor", netip.Addr{})
	has("the pod lost its address", false)
	store.SetPod("shop", "successor", address)
	store.DeleteTwin("shop")
	has("the namespace is gone", false)
}

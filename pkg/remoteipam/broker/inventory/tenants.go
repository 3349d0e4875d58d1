// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// tenants knows what is in the tenant namespaces, in which peers can write: each in its own.
// What an object there says of another cluster than the one of the namespace counts for
// nothing. The events of namespaces and of what is in them come in any order.
type tenants struct {
	store *Store
	log   logr.Logger

	mu      sync.Mutex
	of      map[string]cluster.ID // The peers, by their tenant namespaces.
	tunnels map[string]map[string]*liqo.TunnelEndpoint
	maps    map[string]map[string]*liqo.NamespaceMap
	refused map[object]bool // What was reported.
}

func newTenants(store *Store, log logr.Logger) *tenants {
	return &tenants{
		store: store, log: log, of: map[string]cluster.ID{}, refused: map[object]bool{},
		tunnels: map[string]map[string]*liqo.TunnelEndpoint{}, maps: map[string]map[string]*liqo.NamespaceMap{},
	}
}

// setTenant records whose tenant namespace a namespace is; empty for none.
func (t *tenants) setTenant(namespace string, peer cluster.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, was := t.of[namespace]
	if before == peer {
		return
	}
	if was {
		t.store.DeletePeer(before)
		t.store.SetOffloaded(before, nil)
	}
	delete(t.of, namespace)
	if peer != "" {
		t.of[namespace] = peer
	}
	t.showTunnel(namespace)
	t.showMaps(namespace)
}

func (t *tenants) setTunnel(tunnel *liqo.TunnelEndpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	put(t.tunnels, tunnel.Namespace, tunnel.Name, tunnel)
	t.showTunnel(tunnel.Namespace)
}

func (t *tenants) deleteTunnel(tunnel *liqo.TunnelEndpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	remove(t.tunnels, tunnel.Namespace, tunnel.Name)
	delete(t.refused, object{tunnel.Namespace, "tunnel endpoint " + tunnel.Name})
	t.showTunnel(tunnel.Namespace)
}

func (t *tenants) setMap(namespaces *liqo.NamespaceMap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	put(t.maps, namespaces.Namespace, namespaces.Name, namespaces)
	t.showMaps(namespaces.Namespace)
}

func (t *tenants) deleteMap(namespaces *liqo.NamespaceMap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	remove(t.maps, namespaces.Namespace, namespaces.Name)
	delete(t.refused, object{namespaces.Namespace, "namespace map " + namespaces.Name})
	t.showMaps(namespaces.Namespace)
}

// showTunnel puts the tunnel to the peer of a tenant namespace into the store. While the
// two negotiate, what was known before stays.
func (t *tenants) showTunnel(namespace string) {
	peer, is := t.of[namespace]
	if !is {
		return
	}
	found := false
	for _, name := range slices.Sorted(maps.Keys(t.tunnels[namespace])) {
		tunnel := t.tunnels[namespace][name]
		if says := liqo.TunnelCluster(tunnel); says != peer {
			t.refuse(object{namespace, "tunnel endpoint " + name}, peer, says)
			continue
		}
		found = true
		if _, path, err := liqo.TunnelPeer(tunnel); err != nil {
			t.log.V(1).Info("Tunnel endpoint left out", "namespace", namespace, "name", name, "reason", err.Error())
		} else {
			t.store.SetPeer(peer, path)
		}
	}
	if !found {
		t.store.DeletePeer(peer)
	}
}

// showMaps puts into the store what is offloaded to the peer of a tenant namespace.
func (t *tenants) showMaps(namespace string) {
	peer, is := t.of[namespace]
	if !is {
		return
	}
	var offloaded []string
	for name, namespaces := range t.maps[namespace] {
		switch target, names, ok := liqo.OffloadedTo(namespaces); {
		case !ok:
		case target != peer:
			t.refuse(object{namespace, "namespace map " + name}, peer, target)
		default:
			offloaded = append(offloaded, names...)
		}
	}
	t.store.SetOffloaded(peer, offloaded)
}

// refuse reports once that an object speaks of another cluster than the one that can write
// it.
func (t *tenants) refuse(o object, peer, says cluster.ID) {
	if !t.refused[o] {
		t.refused[o] = true
		t.log.Info("An object in the tenant namespace of one cluster speaks of another one, and counts for nothing",
			"namespace", o.namespace, "object", o.name, "cluster", peer, "other", says)
	}
}

func put[T any](in map[string]map[string]T, namespace, name string, value T) {
	if in[namespace] == nil {
		in[namespace] = map[string]T{}
	}
	in[namespace][name] = value
}

func remove[T any](from map[string]map[string]T, namespace, name string) {
	if delete(from[namespace], name); len(from[namespace]) == 0 {
		delete(from, namespace)
	}
}

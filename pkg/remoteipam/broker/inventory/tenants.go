// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// tenants knows what is in the tenant namespaces, in which peers can write: each in its own.
// What an object there says of another cluster than the one of the namespace counts for
// nothing. The events of namespaces and of what is in them come in any order.
type tenants struct {
	store *Store
	log   logr.Logger

	mu      sync.Mutex
	of      map[string]cluster.ID // The peers, by their tenant namespaces.
	tunnels kind[*v09.TunnelEndpoint]
	maps    kind[*v09.NamespaceMap]
	refused map[object]bool // What was reported.
}

func newTenants(store *Store, log logr.Logger) *tenants {
	return &tenants{
		store: store, log: log, of: map[string]cluster.ID{}, refused: map[object]bool{},
		tunnels: newKind("tunnel endpoint", func(t *v09.TunnelEndpoint) (cluster.ID, bool) { return v09.TunnelCluster(t), true }),
		maps: newKind("namespace map", func(m *v09.NamespaceMap) (cluster.ID, bool) {
			target, _, ok := v09.OffloadedTo(m)
			return target, ok
		}),
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

func (t *tenants) setTunnel(tunnel *v09.TunnelEndpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tunnels.set(tunnel)
	t.showTunnel(tunnel.Namespace)
}

func (t *tenants) deleteTunnel(tunnel *v09.TunnelEndpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.refused, t.tunnels.delete(tunnel))
	t.showTunnel(tunnel.Namespace)
}

func (t *tenants) setMap(namespaces *v09.NamespaceMap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.maps.set(namespaces)
	t.showMaps(namespaces.Namespace)
}

func (t *tenants) deleteMap(namespaces *v09.NamespaceMap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.refused, t.maps.delete(namespaces))
	t.showMaps(namespaces.Namespace)
}

// showTunnel puts the tunnel to the peer of a tenant namespace into the store. While the
// two negotiate, what was known before stays.
func (t *tenants) showTunnel(namespace string) {
	peer, is := t.of[namespace]
	if !is {
		return
	}
	tunnels := t.tunnels.about(peer, namespace, t.refuse)
	if len(tunnels) == 0 {
		t.store.DeletePeer(peer)
	}
	for _, tunnel := range tunnels {
		if link := v09.LinkOf(tunnel); link.Negotiating != nil {
			t.log.V(1).Info("Ignored a tunnel endpoint", "namespace", namespace, "name", tunnel.Name, "reason", link.Negotiating.Error())
		} else {
			t.store.SetPeer(peer, link.Path)
		}
	}
}

// showMaps puts into the store what is offloaded to the peer of a tenant namespace.
func (t *tenants) showMaps(namespace string) {
	peer, is := t.of[namespace]
	if !is {
		return
	}
	var offloaded []string
	for _, namespaces := range t.maps.about(peer, namespace, t.refuse) {
		_, names, _ := v09.OffloadedTo(namespaces)
		offloaded = append(offloaded, names...)
	}
	t.store.SetOffloaded(peer, offloaded)
}

// refuse reports once that an object speaks of another cluster than the one that can write
// it.
func (t *tenants) refuse(o object, peer, says cluster.ID) {
	if !t.refused[o] {
		t.refused[o] = true
		t.log.Info("Ignored an object in the tenant namespace of one cluster that is about another one",
			"namespace", o.namespace, "object", o.name, "cluster", peer, "other", says)
	}
}

// kind is the objects of one kind in all tenant namespaces.
type kind[T client.Object] struct {
	name string
	// speaksOf returns the cluster that an object speaks of, if it speaks of one.
	speaksOf func(T) (cluster.ID, bool)
	objects  map[string]map[string]T // By namespace and name.
}

func newKind[T client.Object](name string, speaksOf func(T) (cluster.ID, bool)) kind[T] {
	return kind[T]{name: name, speaksOf: speaksOf, objects: map[string]map[string]T{}}
}

func (k *kind[T]) set(o T) {
	if k.objects[o.GetNamespace()] == nil {
		k.objects[o.GetNamespace()] = map[string]T{}
	}
	k.objects[o.GetNamespace()][o.GetName()] = o
}

// delete drops an object, and returns under what it is reported.
func (k *kind[T]) delete(o T) object {
	rest := k.objects[o.GetNamespace()]
	if delete(rest, o.GetName()); len(rest) == 0 {
		delete(k.objects, o.GetNamespace())
	}
	return k.reported(o)
}

func (k *kind[T]) reported(o T) object { return object{o.GetNamespace(), k.name + " " + o.GetName()} }

// about returns the objects in the tenant namespace of a peer that speak of it, in order of
// their names, and refuses those that speak of other clusters.
func (k *kind[T]) about(peer cluster.ID, namespace string, refuse func(o object, peer, says cluster.ID)) []T {
	var own []T
	for _, name := range slices.Sorted(maps.Keys(k.objects[namespace])) {
		o := k.objects[namespace][name]
		switch says, ok := k.speaksOf(o); {
		case !ok:
		case says != peer:
			refuse(k.reported(o), peer, says)
		default:
			own = append(own, o)
		}
	}
	return own
}

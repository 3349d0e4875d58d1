// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory knows, on a broker, the consumers, the providers and the
// offloaded pods that the remote IPAM answers for, and follows them through the
// Kubernetes API.
//
// It does not know how addresses are translated, and talks to no peer.
package inventory

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// object identifies a pod or an EndpointSlice by namespace and name.
type object struct{ namespace, name string }

// Store is the state of the federation in memory. It is empty at first, safe
// for concurrent use, and answers every question without a call.
type Store struct {
	mu sync.RWMutex
	// peers are the clusters at the other end of a tunnel of the broker.
	peers map[cluster.ID]addressing.Peer
	// providers are the clusters on which pods of consumers may be, with what they call themselves.
	providers map[cluster.ID]string
	// consumers tells for each consumer whether the broker is transparent to it.
	consumers map[cluster.ID]bool
	// twins maps each twin namespace to the consumer that it belongs to.
	twins map[string]cluster.ID
	// offloaded are the namespaces that go to each cluster.
	offloaded map[cluster.ID]map[string]struct{}
	// pods are the addresses of offloaded pods, endpoints those of EndpointSlices, and
	// aliases those of the pods' API servers.
	pods, endpoints, aliases addressIndex
	changes                  wake.Broadcast
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		peers:     map[cluster.ID]addressing.Peer{},
		providers: map[cluster.ID]string{},
		consumers: map[cluster.ID]bool{},
		twins:     map[string]cluster.ID{},
		offloaded: map[cluster.ID]map[string]struct{}{},
		pods:      newAddressIndex(),
		endpoints: newAddressIndex(),
		aliases:   newAddressIndex(),
	}
}

// IsConsumer reports whether the broker has the cluster as a consumer.
func (s *Store) IsConsumer(id cluster.ID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.consumers[id]
	return ok
}

// Routes returns the providers that the consumer may reach past the broker,
// sorted by their ID; none if the broker is opaque to it. The consumer itself
// is never among them, nor a peer that only consumes.
func (s *Store) Routes(consumer cluster.ID) []addressing.Route {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.consumers[consumer] {
		return nil
	}
	var routes []addressing.Route
	for id, name := range s.providers {
		if peer, ok := s.peers[id]; ok && id != consumer {
			routes = append(routes, addressing.Route{Provider: id, Name: name, Pods: peer.Pods})
		}
	}
	slices.SortFunc(routes, func(a, b addressing.Route) int { return cmp.Compare(a.Provider, b.Provider) })
	return routes
}

// HasPod reports whether the address is the one of a pod in a twin namespace of
// the consumer.
func (s *Store) HasPod(consumer cluster.ID, address netip.Addr) bool {
	return s.holds(&s.pods, address, func(namespace string) bool { return s.twins[namespace] == consumer })
}

// HasOther reports whether the address is the one of a pod in a twin namespace of
// another consumer.
func (s *Store) HasOther(consumer cluster.ID, address netip.Addr) bool {
	return s.holds(&s.pods, address, func(namespace string) bool {
		owner, ok := s.twins[namespace]
		return ok && owner != consumer
	})
}

// HasEndpoint reports whether the address is the one of an endpoint in a
// namespace that is offloaded to the cluster, so that Liqo reflects it there.
func (s *Store) HasEndpoint(target cluster.ID, address netip.Addr) bool {
	return s.holds(&s.endpoints, address, func(namespace string) bool { return s.goesTo(target, namespace) })
}

// HasAlias reports whether the address is the one of the API server of a pod in a
// namespace that is offloaded to the cluster, so that the pod calls it from there.
func (s *Store) HasAlias(target cluster.ID, address netip.Addr) bool {
	return s.holds(&s.aliases, address, func(namespace string) bool { return s.goesTo(target, namespace) })
}

// holds reports whether an object in one of some namespaces has the address. The lock is held
// while it asks for a namespace.
func (s *Store) holds(index *addressIndex, address netip.Addr, in func(namespace string) bool) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for o := range index.holders[address] {
		if in(o.namespace) {
			return true
		}
	}
	return false
}

// goesTo reports whether a namespace is offloaded to the cluster. It is called with the lock
// held.
func (s *Store) goesTo(target cluster.ID, namespace string) bool {
	_, ok := s.offloaded[target][namespace]
	return ok
}

// IsPeerAddress reports whether the broker sees pods of a peer under addresses
// like this one.
func (s *Store) IsPeerAddress(address netip.Addr) bool {
	return s.anyPeer(func(p addressing.Peer) bool { return p.Pods.Seen.Contains(address) })
}

// IsPeerService reports whether the address leads into the external CIDR of a peer, where
// its API server is.
func (s *Store) IsPeerService(address netip.Addr) bool {
	return s.anyPeer(func(p addressing.Peer) bool { return p.External.Seen.Contains(address) })
}

func (s *Store) anyPeer(is func(addressing.Peer) bool) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, peer := range s.peers {
		if is(peer) {
			return true
		}
	}
	return false
}

// Taken returns the prefixes that have a meaning of their own in the network of a peer.
func (s *Store) Taken(id cluster.ID) []netip.Prefix {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.peers[id].Taken()
}

// Changes returns a channel that is closed when the answer of IsConsumer or
// Routes changes for any consumer.
func (s *Store) Changes() <-chan struct{} {
	return s.changes.Next()
}

// SetPeer records how the pods of a peer are seen.
func (s *Store) SetPeer(id cluster.ID, peer addressing.Peer) {
	// Whether the broker's own tunnel is up does not change a route.
	put(s, s.peers, id, peer, func(old addressing.Peer) bool { return old.Pods == peer.Pods })
}

// DeletePeer forgets a peer.
func (s *Store) DeletePeer(id cluster.ID) { remove(s, s.peers, id) }

// SetProvider records that pods of consumers may be on a cluster, and what that calls itself.
func (s *Store) SetProvider(id cluster.ID, name string) {
	put(s, s.providers, id, name, func(old string) bool { return old == name })
}

// DeleteProvider records that no pods of consumers can be on a cluster.
func (s *Store) DeleteProvider(id cluster.ID) { remove(s, s.providers, id) }

// SetConsumer records a consumer, and whether the broker shows it the
// providers.
func (s *Store) SetConsumer(id cluster.ID, transparent bool) {
	put(s, s.consumers, id, transparent, func(old bool) bool { return old == transparent })
}

// DeleteConsumer forgets a consumer.
func (s *Store) DeleteConsumer(id cluster.ID) { remove(s, s.consumers, id) }

// put writes an entry of a map of the store, and announces it unless the old one told the
// same.
func put[T any](s *Store, in map[cluster.ID]T, id cluster.ID, value T, same func(old T) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := in[id]; !ok || !same(old) {
		s.changes.Send()
	}
	in[id] = value
}

// remove removes an entry of a map of the store, and announces it if there was one.
func remove[T any](s *Store, from map[cluster.ID]T, id cluster.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := from[id]; ok {
		delete(from, id)
		s.changes.Send()
	}
}

// SetTwin records to which consumer a twin namespace belongs.
func (s *Store) SetTwin(namespace string, consumer cluster.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twins[namespace] = consumer
}

// DeleteTwin forgets a twin namespace.
func (s *Store) DeleteTwin(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.twins, namespace)
}

// SetOffloaded records which namespaces are offloaded to a cluster; none forgets
// the cluster.
func (s *Store) SetOffloaded(target cluster.ID, namespaces []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.offloaded, target)
	if len(namespaces) == 0 {
		return
	}
	s.offloaded[target] = make(map[string]struct{}, len(namespaces))
	for _, namespace := range namespaces {
		s.offloaded[target][namespace] = struct{}{}
	}
}

// SetPod records the address of a pod; an invalid address means that the pod
// has none, or is gone.
func (s *Store) SetPod(namespace, name string, address netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var addresses []netip.Addr
	if address.IsValid() {
		addresses = []netip.Addr{address}
	}
	s.pods.set(object{namespace, name}, addresses)
}

// SetAliases records the addresses of a pod's API server; none means that the pod is gone.
func (s *Store) SetAliases(namespace, name string, addresses []netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aliases.set(object{namespace, name}, addresses)
}

// SetEndpoints records the addresses of an EndpointSlice; none means that it is
// gone.
func (s *Store) SetEndpoints(namespace, name string, addresses []netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints.set(object{namespace, name}, addresses)
}

// addressIndex maps objects to their addresses, and addresses back.
type addressIndex struct {
	addresses map[object][]netip.Addr
	holders   map[netip.Addr]map[object]struct{}
}

func newAddressIndex() addressIndex {
	return addressIndex{addresses: map[object][]netip.Addr{}, holders: map[netip.Addr]map[object]struct{}{}}
}

// set replaces the addresses of an object.
func (i *addressIndex) set(o object, addresses []netip.Addr) {
	for _, address := range i.addresses[o] {
		delete(i.holders[address], o)
		if len(i.holders[address]) == 0 {
			delete(i.holders, address)
		}
	}
	delete(i.addresses, o)
	if len(addresses) == 0 {
		return
	}
	i.addresses[o] = addresses
	for _, address := range addresses {
		if i.holders[address] == nil {
			i.holders[address] = map[object]struct{}{}
		}
		i.holders[address][o] = struct{}{}
	}
}

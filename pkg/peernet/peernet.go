// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peernet knows under which addresses the peers of this cluster are seen here,
// so that a port can be closed to their pods, whatever the network plugin does, and what
// they call counts for the peer, and not for each of their addresses.
//
// A peer cannot send with another address: Liqo's gateway accepts from a peer nothing
// but its pod CIDR and its external CIDR, and moves both into the prefixes that its
// record of its network names, before the packets reach a pod.
package peernet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// Peers are the prefixes of the peers. The zero value knows of none, and that it does
// not know them.
//
// However many prefixes a peer has, all of them are known: what is remembered of a record is no more than the cache has of it, and how long
// it takes to find an address depends on the length of addresses alone. So no peer closes a port to anybody but itself.
type Peers struct {
	mu       sync.RWMutex
	line     line.Line // Nil before Watch.
	complete func() bool
	networks map[client.ObjectKey][]netip.Prefix
	// tenants has for each prefix in how many networks of which tenant namespace it is.
	tenants map[netip.Prefix]map[string]int
}

// Watch follows the networks towards peers, as a line of Liqo records them, in a cache, which is started later.
func (p *Peers) Watch(ctx context.Context, c cache.Cache, of line.Line) error {
	p.mu.Lock()
	p.line = of
	p.mu.Unlock()
	informer, err := c.GetInformer(ctx, of.Kinds().Network)
	if err != nil {
		return fmt.Errorf("watch the networks of peers: %w", err)
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    p.set,
		UpdateFunc: func(_, o any) { p.set(o) },
		DeleteFunc: p.remove,
	})
	if err != nil {
		return fmt.Errorf("watch the networks of peers: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complete = handler.HasSynced
	return nil
}

// Excludes reports whether an address is none of a peer's. As long as the peers are not
// known, every address may be one of theirs.
func (p *Peers) Excludes(a netip.Addr) bool {
	p.mu.RLock()
	complete := p.complete
	p.mu.RUnlock()
	return complete != nil && complete() && !p.Includes(a)
}

// ExcludesKnown reports whether an address is not known to be a peer's. As long as the peers are
// not known, none is: that is for ports on which who is no peer must not wait, and on which nothing is said that a peer must not know.
func (p *Peers) ExcludesKnown(a netip.Addr) bool { return !p.Includes(a) }

// Includes reports whether an address is known to be a peer's.
func (p *Peers) Includes(a netip.Addr) bool {
	_, is := p.tenantOf(a)
	return is
}

// Source returns for whom an address counts: for the peer whose it is, or else for its
// network.
func (p *Peers) Source(a netip.Addr) source.Source {
	if namespace, is := p.tenantOf(a); is {
		return source.Peer(namespace)
	}
	return source.Network(a)
}

// tenantOf returns the tenant namespace of the peer whose an address is: that of the longest prefix, and of several peers with the same
// prefix, which Liqo gives to none, the first by name.
func (p *Peers) tenantOf(a netip.Addr) (string, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for bits := a.BitLen(); bits >= 0; bits-- {
		prefix := netip.PrefixFrom(a, bits).Masked()
		if in := p.tenants[prefix]; len(in) > 0 {
			return first(in), true
		}
	}
	return "", false
}

// first returns the first of some names, without a copy: this is done for each connection.
func first(names map[string]int) string {
	least, found := "", false
	for name := range names {
		if !found || name < least {
			least, found = name, true
		}
	}
	return least
}

func (p *Peers) set(o any) {
	network, ok := o.(client.Object)
	if !ok {
		return
	}
	p.mu.RLock()
	of := p.line
	p.mu.RUnlock()
	p.take(network, of.SeenOf(network))
}

func (p *Peers) remove(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	network, ok := o.(client.Object)
	if !ok {
		return
	}
	p.take(network, nil)
}

// take replaces what is known of a network by its prefixes, of which there may be none any more. Most changes of
// a network are none of its prefixes: then nobody waits.
func (p *Peers) take(network client.Object, seen []netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.networks == nil {
		p.networks, p.tenants = map[client.ObjectKey][]netip.Prefix{}, map[netip.Prefix]map[string]int{}
	}
	key := client.ObjectKeyFromObject(network)
	if slices.Equal(p.networks[key], seen) {
		return
	}
	for _, prefix := range p.networks[key] {
		in := p.tenants[prefix]
		if in[key.Namespace]--; in[key.Namespace] == 0 {
			delete(in, key.Namespace)
		}
		if len(in) == 0 {
			delete(p.tenants, prefix)
		}
	}
	delete(p.networks, key)
	if len(seen) == 0 {
		return
	}
	for _, prefix := range seen {
		if p.tenants[prefix] == nil {
			p.tenants[prefix] = map[string]int{}
		}
		p.tenants[prefix][key.Namespace]++
	}
	p.networks[key] = seen
}

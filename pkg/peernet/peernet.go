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
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// maxPrefixes bounds what is taken of one tenant namespace. With Liqo 1.x a record has lists, which the peer writes: that of a broker has a
// prefix for each of its providers, and a thousand of these is the largest federation of docs/placement/scale.md.
const maxPrefixes = 2048

// Peers are the prefixes of the peers. The zero value knows of none, and that it does
// not know them.
type Peers struct {
	mu       sync.RWMutex
	line     line.Line // Nil before Watch.
	log      logr.Logger
	complete func() bool
	tenants  map[string]*tenant // By the tenant namespace.
}

// tenant is what is known of the peer of one tenant namespace.
type tenant struct {
	networks map[string]client.Object // By their names, as the cache has them.
	prefixes []netip.Prefix
	// over tells that there are more than are taken, and told that the log says so.
	over, told bool
}

// Watch follows the networks towards peers, as a line of Liqo records them, in a cache, which is started later.
func (p *Peers) Watch(ctx context.Context, c cache.Cache, of line.Line) error {
	p.mu.Lock()
	p.line, p.log = of, ctrl.LoggerFrom(ctx)
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
// known, every address may be one of theirs. So it may as long as a peer has more prefixes than are taken: such a peer closes the ports
// to all whose addresses are not given, and opens none to itself.
func (p *Peers) Excludes(a netip.Addr) bool {
	p.mu.RLock()
	complete, over := p.complete, false
	for _, of := range p.tenants {
		over = over || of.over
	}
	p.mu.RUnlock()
	return complete != nil && complete() && !over && !p.Includes(a)
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
// network. In a prefix that was not taken a peer counts as a stranger: each network for itself, and all together within what a server has
// for all.
func (p *Peers) Source(a netip.Addr) source.Source {
	if namespace, is := p.tenantOf(a); is {
		return source.Peer(namespace)
	}
	return source.Network(a)
}

// tenantOf returns the tenant namespace of the peer whose an address is.
func (p *Peers) tenantOf(a netip.Addr) (string, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for namespace, of := range p.tenants {
		for _, prefix := range of.prefixes {
			if prefix.Contains(a) {
				return namespace, true
			}
		}
	}
	return "", false
}

func (p *Peers) set(o any) {
	network, ok := o.(client.Object)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tenants == nil {
		p.tenants = map[string]*tenant{}
	}
	namespace := network.GetNamespace()
	if p.tenants[namespace] == nil {
		p.tenants[namespace] = &tenant{networks: map[string]client.Object{}}
	}
	p.tenants[namespace].networks[network.GetName()] = network
	p.take(namespace)
}

func (p *Peers) remove(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	network, ok := o.(client.Object)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	namespace := network.GetNamespace()
	of := p.tenants[namespace]
	if of == nil {
		return
	}
	delete(of.networks, network.GetName())
	if len(of.networks) == 0 {
		delete(p.tenants, namespace)
		return
	}
	p.take(namespace)
}

// take reads the prefixes of a tenant namespace, in the order of its networks' names, as many as there may be. The caller holds the lock.
func (p *Peers) take(namespace string) {
	of := p.tenants[namespace]
	of.prefixes, of.over = nil, false
	for _, name := range slices.Sorted(maps.Keys(of.networks)) {
		room := maxPrefixes - len(of.prefixes)
		if room == 0 {
			of.over = true // Whatever the others say: reading them takes time.
			break
		}
		seen := p.line.SeenOf(of.networks[name])
		if len(seen) > room {
			seen, of.over = seen[:room], true
		}
		of.prefixes = append(of.prefixes, seen...)
	}
	if of.over && !of.told {
		of.told = true
		p.log.Info("Too many prefixes of a peer; ports that are closed to peers are closed to all whose addresses are not given",
			"tenantNamespace", namespace, "taken", maxPrefixes)
	}
}

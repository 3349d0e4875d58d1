// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peernet knows under which addresses the peers of this cluster are seen here,
// so that a port can be closed to their pods, whatever the network plugin does.
//
// A peer cannot send with another address: Liqo's gateway accepts from a peer nothing
// but its pod CIDR and its external CIDR, and moves both into the prefixes that its
// TunnelEndpoint names, before the packets reach a pod.
package peernet

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Peers are the prefixes of the peers. The zero value knows of none, and that it does
// not know them.
type Peers struct {
	mu       sync.RWMutex
	complete func() bool
	prefixes map[string][]netip.Prefix // By TunnelEndpoint.
}

// Watch follows the TunnelEndpoints of a cache, which is started later.
func (p *Peers) Watch(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, &liqo.TunnelEndpoint{})
	if err != nil {
		return fmt.Errorf("watch the tunnel endpoints: %w", err)
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    p.set,
		UpdateFunc: func(_, o any) { p.set(o) },
		DeleteFunc: p.remove,
	})
	if err != nil {
		return fmt.Errorf("watch the tunnel endpoints: %w", err)
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

// Includes reports whether an address is known to be a peer's.
func (p *Peers) Includes(a netip.Addr) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, prefixes := range p.prefixes {
		for _, prefix := range prefixes {
			if prefix.Contains(a) {
				return true
			}
		}
	}
	return false
}

func (p *Peers) set(o any) {
	tunnel, ok := o.(*liqo.TunnelEndpoint)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prefixes == nil {
		p.prefixes = map[string][]netip.Prefix{}
	}
	p.prefixes[keyOf(tunnel)] = liqo.SeenPrefixes(tunnel)
}

func (p *Peers) remove(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if tunnel, ok := o.(*liqo.TunnelEndpoint); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.prefixes, keyOf(tunnel))
	}
}

func keyOf(t *liqo.TunnelEndpoint) string { return t.Namespace + "/" + t.Name }

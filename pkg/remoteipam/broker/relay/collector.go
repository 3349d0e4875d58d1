// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"net/netip"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

const (
	// grace is how long an address is kept after its pod was seen last. A pod that
	// is recreated may get it back, and the consumer's connections drain.
	grace = 30 * time.Second
	// interval is how often the mappings are looked at; grace and interval together
	// stay within a minute.
	interval = 15 * time.Second
	// serviceGrace is how long the address of an API server is kept that no pod calls.
	// A pod is given it once, when it is created, and never again.
	serviceGrace = 5 * time.Minute
)

// Collector frees the relay addresses that lead to no pod or endpoint any more, or to an
// API server that no pod calls, also those whose consumer never said so, those that Liqo's virtual kubelets
// leave behind, and those made before a restart: Liqo keeps all mappings in its
// NatMappings.
type Collector struct {
	allocator *Allocator
	// mappings reads NatMappings.
	mappings client.Reader
	clock    clock.PassiveClock
	// known is closed once the allocator knows all pods and endpoints.
	known <-chan struct{}
	// unused are the addresses without a pod. Only Reconcile, of which one runs at a
	// time, uses it.
	unused map[mapping]idle
}

// mapping is the address that leads a cluster to another one.
type mapping struct {
	target  cluster.ID
	address netip.Addr
}

// idle is since when an address has no pod, and when it was freed. That is zero for
// one that was not.
type idle struct{ since, freed time.Time }

// NewCollector returns a collector of the allocator's addresses. It frees none
// before known is closed: the allocator must know all pods and endpoints by then.
func NewCollector(allocator *Allocator, mappings client.Reader, known <-chan struct{}, now clock.PassiveClock) *Collector {
	return &Collector{allocator: allocator, mappings: mappings, known: known, clock: now, unused: map[mapping]idle{}}
}

// Reconcile looks at the mappings towards one cluster.
func (c *Collector) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	select {
	case <-c.known:
	default:
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	var nat v09.NatMapping
	if err := c.mappings.Get(ctx, request.NamespacedName, &nat); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	target := v09.MappedFor(&nat)
	current := map[mapping]bool{}
	for text := range v09.Mappings(&nat) {
		address, err := netip.ParseAddr(text)
		if err != nil || !c.allocator.pods.IsPeerAddress(address) && !c.allocator.pods.IsPeerService(address) {
			// Mappings of other addresses are Liqo's own.
			continue
		}
		m := mapping{target, address}
		current[m] = true
		if err := c.look(ctx, m); err != nil {
			return reconcile.Result{}, err
		}
	}
	for m := range c.unused {
		if m.target == target && !current[m] {
			delete(c.unused, m)
		}
	}
	if len(current) == 0 {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: interval}, nil
}

// look frees one mapping if it was long enough without use, or leads to another
// consumer's pod.
func (c *Collector) look(ctx context.Context, m mapping) error {
	if c.allocator.inUse(m.target, m.address) {
		delete(c.unused, m)
		return nil
	}
	now := c.clock.Now()
	state, known := c.unused[m]
	if !known {
		state.since = now
		c.unused[m] = state
	}
	inVain, patience := !state.freed.IsZero(), grace
	if !c.allocator.pods.IsPeerAddress(m.address) {
		patience = serviceGrace
	}
	switch {
	case inVain && now.Sub(state.freed) < interval:
		return nil
	// An address that passed to another consumer's pod must not lead there.
	case !inVain && now.Sub(state.since) < patience && !c.allocator.pods.HasOther(m.target, m.address):
		return nil
	}
	freed, err := c.allocator.free(ctx, m.target, m.address, inVain)
	if err != nil {
		return err
	}
	state.freed = now
	c.unused[m] = state
	if freed {
		ctrl.LoggerFrom(ctx).Info("Relay address freed", "cluster", m.target, "address", m.address.String())
	}
	return nil
}

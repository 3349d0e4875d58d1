// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

const (
	// grace is how long an address is kept after its pod was seen last. A pod that
	// is made anew may get it back, and the consumer's connections drain.
	grace = 30 * time.Second
	// interval is how often the mappings are looked at; grace and interval together
	// stay within a minute.
	interval = 20 * time.Second
)

// Collector frees the relay addresses of pods that are gone, also those whose
// consumer never said so, and those made before a restart: Liqo keeps all
// mappings in its NatMappings.
type Collector struct {
	keeper *Keeper
	// mappings reads NatMappings; live reads pods past any cache.
	mappings, live client.Reader
	now            func() time.Time
	// known is closed once the keeper knows all pods.
	known <-chan struct{}
	// unused is since when an address has no pod. Only Reconcile, of which one
	// runs at a time, uses it.
	unused map[mapping]time.Time
}

type mapping struct {
	consumer cluster.ID
	address  netip.Addr
}

// NewCollector returns a collector of the keeper's addresses. It frees none
// before known is closed: the keeper must know all pods by then.
func NewCollector(keeper *Keeper, mappings, live client.Reader, known <-chan struct{}) *Collector {
	return &Collector{
		keeper: keeper, mappings: mappings, live: live, known: known,
		now: time.Now, unused: map[mapping]time.Time{},
	}
}

// Setup registers the collector with a manager.
func (c *Collector) Setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).Named("relay").For(&liqo.NatMapping{}).Complete(c)
}

// Reconcile looks at the mappings towards one cluster.
func (c *Collector) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	select {
	case <-c.known:
	default:
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	var nat liqo.NatMapping
	if err := c.mappings.Get(ctx, request.NamespacedName, &nat); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	consumer := cluster.ID(nat.Spec.ClusterID)
	current := map[mapping]bool{}
	for text := range nat.Spec.ClusterMappings {
		address, err := netip.ParseAddr(text)
		if err != nil || !c.keeper.pods.IsProviderAddress(address) {
			// Mappings of other addresses are Liqo's own.
			continue
		}
		m := mapping{consumer, address}
		current[m] = true
		if err := c.look(ctx, m); err != nil {
			return reconcile.Result{}, err
		}
	}
	for m := range c.unused {
		if m.consumer == consumer && !current[m] {
			delete(c.unused, m)
		}
	}
	if len(current) == 0 {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: interval}, nil
}

// look frees one mapping if it was long enough without a pod, or leads to another
// consumer's.
func (c *Collector) look(ctx context.Context, m mapping) error {
	if c.keeper.pods.HasPod(m.consumer, m.address) {
		delete(c.unused, m)
		return nil
	}
	// An address that passed to another consumer's pod must not lead there.
	if !c.keeper.pods.HasOther(m.consumer, m.address) {
		since, ok := c.unused[m]
		if !ok {
			c.unused[m] = c.now()
			return nil
		}
		if c.now().Sub(since) < grace {
			return nil
		}
	}
	return c.collect(ctx, m)
}

// collect frees a mapping, unless it leads to a pod that the broker itself
// offloaded and whose Service it reflects to the consumer.
func (c *Collector) collect(ctx context.Context, m mapping) error {
	if !c.keeper.pods.HasOther(m.consumer, m.address) {
		var pods corev1.PodList
		if err := c.live.List(ctx, &pods, client.MatchingFields{"status.podIP": m.address.String()}, client.Limit(1)); err != nil {
			return fmt.Errorf("find the pod at %s: %w", m.address, err)
		}
		if len(pods.Items) > 0 {
			delete(c.unused, m)
			return nil
		}
	}
	freed, err := c.keeper.free(ctx, m.consumer, m.address)
	if err != nil {
		return err
	}
	delete(c.unused, m)
	if freed {
		ctrl.LoggerFrom(ctx).Info("Relay address freed", "consumer", m.consumer, "address", m.address.String())
	}
	return nil
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// late is for how long a peer may not know yet that it is offered less: its scheduler has bound pods by what it was told before.
const late = time.Minute

// Grants remember what peers were offered a moment ago. They may be used concurrently.
type Grants struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	earlier map[client.ObjectKey]earlier // By offer.
}

// earlier is what an offer had offered, which counts until a time.
type earlier struct {
	list  corev1.ResourceList
	until time.Time
}

// NewGrants returns Grants that remember nothing.
func NewGrants(now clock.PassiveClock) *Grants {
	return &Grants{clock: now, earlier: map[client.ObjectKey]earlier{}}
}

// Watch has the Grants follow the offers in a cache, as a line of Liqo has them.
func (g *Grants) Watch(ctx context.Context, c cache.Informers, of line.Line) error {
	informer, err := c.GetInformer(ctx, of.Kinds().Offer)
	if err != nil {
		return fmt.Errorf("watch what peers are offered: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			was, ok := before.(client.Object)
			is, also := after.(client.Object)
			if ok && also {
				g.changed(of.OfferOf(was), of.OfferOf(is))
			}
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if offer, ok := o.(client.Object); ok {
				g.forgetOffer(of.OfferOf(offer))
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch what peers are offered: %w", err)
	}
	return nil
}

// changed remembers what an offer offered, if it is more of anything than it offers now.
func (g *Grants) changed(was, is liqo.Offer) {
	before := resources.Bounded(was.Resources)
	if is.FromPeer || resources.Covers(resources.Bounded(is.Resources), before) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	key, now := keyOf(&is), g.clock.Now()
	if last, ok := g.earlier[key]; ok && now.Before(last.until) {
		before = resources.Max(before, last.list)
	}
	g.earlier[key] = earlier{before, now.Add(late)}
}

func (g *Grants) forgetOffer(o liqo.Offer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.earlier, keyOf(&o))
}

func keyOf(o *liqo.Offer) client.ObjectKey {
	return client.ObjectKey{Namespace: o.Tenant, Name: o.Name}
}

// of returns what some offers grant together: each what it offers, or has offered a moment ago, and nothing if it is withdrawn.
func (g *Grants) of(offers []liqo.Offer) amounts {
	g.mu.Lock()
	defer g.mu.Unlock()
	granted, now := corev1.ResourceList{}, g.clock.Now()
	for i := range offers {
		o := &offers[i]
		if o.Ending {
			continue
		}
		list := resources.Bounded(o.Resources)
		if last, ok := g.earlier[keyOf(o)]; ok && now.Before(last.until) {
			list = resources.Max(list, last.list)
		}
		resources.Add(granted, list)
	}
	return amountsOf(granted)
}

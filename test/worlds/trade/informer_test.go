// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
)

// informers shows the Sales that the cache of a process has, as soon as it has them.
type informers struct {
	cache.Informers // None: a method that is missing here panics.

	p *process
}

// GetInformer implements cache.Informers.
func (i informers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{p: i.p}, nil
}

type informer struct {
	cache.Informer

	p *process
}

// AddEventHandler implements cache.Informer.
func (i informer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.p.shows = handler
	i.p.show(nil)
	return nil, nil
}

// HasSynced implements cache.Informer.
func (informer) HasSynced() bool { return true }

// show shows what is in the cache now, and was not, or was otherwise, before.
func (p *process) show(before []*connectorv1alpha1.Sale) {
	if p.shows == nil {
		return
	}
	was := map[string]*connectorv1alpha1.Sale{}
	for _, sale := range before {
		was[sale.Name] = sale
	}
	for _, sale := range all(p.cache, &connectorv1alpha1.Sale{}) {
		if old, known := was[sale.Name]; !known {
			p.shows.OnAdd(sale, false)
		} else if old != sale {
			p.shows.OnUpdate(old, sale)
		}
		delete(was, sale.Name)
	}
	for _, gone := range was {
		p.shows.OnDelete(gone)
	}
}

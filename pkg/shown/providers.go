// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

func (o *Objects) providers(ctx context.Context, now time.Time) ([]feed.Item, error) {
	peers, found, err := o.peers(ctx, now)
	if err != nil {
		return nil, err
	}
	// What may be missing: whoever may not read it sees the rest.
	labels, err := snapshot.New(o.Line, o.Reader, o.Own.ID, nil).ShownLabels(ctx)
	if err != nil && !unreadable(err) {
		return nil, err
	}
	var histories v1alpha1.ProviderHistoryList
	if err := o.readAll(ctx, &histories); err != nil && !unreadable(err) {
		return nil, err
	}
	seen := make(map[string]string, len(histories.Items))
	for i := range histories.Items {
		seen[histories.Items[i].Name] = histories.Items[i].History
	}
	linked := map[string]*overview.Link{}
	for i := range found {
		if l := &found[i]; !l.Direct {
			linked[l.To.ID] = l
		}
	}
	items := make([]feed.Item, 0, len(peers.Providers))
	for i := range peers.Providers {
		p := &peers.Providers[i]
		of := apiv1.OfProvider{Link: linked[p.Name], Shown: labels[cluster.ID(p.Name)]}
		if history, err := kpi.Parse(seen[p.Name]); err == nil { // Who watches begins again.
			of.Seen = history.Windows()
		}
		items = append(items, feed.Item{Key: p.Name, Value: apiv1.ProviderOf(p, of)})
	}
	return items, nil
}

// unreadable reports whether something cannot be read because the reader may not, or does not keep it.
func unreadable(err error) bool {
	var uncached *cache.ErrResourceNotCached
	return apierrors.IsForbidden(err) || errors.As(err, &uncached)
}

// KeepWindows has a cache keep of a ProviderHistory what is shown of it: what became of single pods is most of it. One that cannot be read
// is kept as it is.
func KeepWindows(h *v1alpha1.ProviderHistory) {
	history, err := kpi.Parse(h.History)
	if err != nil {
		return
	}
	history.Pods = nil
	h.History = history.String()
}

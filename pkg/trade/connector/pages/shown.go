// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/listings"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
)

// Read returns what is remembered of all registries and is true at a time. It verifies everything: who may write pages need not be
// believed. It is for those who look at the catalog and do not follow it. LeftOut is how many parties and offers are not among them: they
// are over, cannot be read, or are not what their owners have signed.
func Read(ctx context.Context, reader client.Reader, now time.Time) (all *listings.Listings, leftOut int, err error) {
	stored := map[string][][]byte{}
	all = listings.New()
	list := &connectorv1alpha1.CatalogPageList{}
	for next := true; next; next = list.Continue != "" {
		if err := reader.List(ctx, list, client.Limit(listed), client.Continue(list.Continue)); err != nil {
			return nil, 0, fmt.Errorf("list catalog pages: %w", err)
		}
		for i := range list.Items {
			page := &list.Items[i]
			if _, err := Decode(page.Data); err != nil {
				leftOut += max(1, int(page.Offers))
				continue
			}
			stored[page.Registry] = append(stored[page.Registry], page.Data)
		}
	}
	for _, registry := range slices.Sorted(maps.Keys(stored)) {
		// A watcher that has not begun verifies what an earlier one knew.
		verifier := registryclient.NewWatcher(registryclient.WatcherConfig{Clock: moment(now)})
		leftOut += Restore(verifier, decoded(stored[registry]), func(restored []registryclient.Change) { all.Merge(registry, restored) })
	}
	return all, leftOut, nil
}

// moment is a clock that stands still.
type moment time.Time

// Now implements clock.PassiveClock.
func (m moment) Now() time.Time { return time.Time(m) }

// Since implements clock.PassiveClock.
func (m moment) Since(t time.Time) time.Duration { return time.Time(m).Sub(t) }

// decoded returns what was decoded before.
func decoded(pages [][]byte) iter.Seq[Page] {
	return func(yield func(Page) bool) {
		for _, data := range pages {
			if read, _ := Decode(data); !yield(read) {
				return
			}
		}
	}
}

// Restore has a watcher go on from pages, which are read twice: first the parties of all, then their offers. Take is handed what is
// verified and valid, page by page; the rest, of which it returns how much it is, is passed over.
func Restore(w *registryclient.Watcher, pages iter.Seq[Page], take func([]registryclient.Change)) (leftOut int) {
	for page := range pages {
		restored := w.Restore(page.Parties, nil)
		leftOut += len(page.Parties) - len(restored)
		take(restored)
	}
	for page := range pages {
		restored := w.Restore(nil, page.Offers)
		leftOut += len(page.Offers) - len(restored)
		take(restored)
	}
	return leftOut
}

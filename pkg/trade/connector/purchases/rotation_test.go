// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"slices"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// TestSellerRotatesAlone has the seller replace its key while no registry shows it: the buyer is told by the seller itself, and keeps the
// new key.
func TestSellerRotatesAlone(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	next := newParty(t)
	keys, err := party.Rotate(s.keys, s.key, next.key)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.somebody = somebody{next.key, keys}
	s.mu.Unlock()
	clear(w.parties)
	w.restart()
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.End = &connectorv1alpha1.ContractEnd{} })
	w.until("p", connectorv1alpha1.ReasonEnded, s)
	if p := w.get("p"); !slices.Equal(p.Status.Seller.Keys, keys.Chain()) {
		t.Errorf("the purchase knows %d keys of its seller, not %d", len(p.Status.Seller.Keys), len(keys.Chain()))
	}
}

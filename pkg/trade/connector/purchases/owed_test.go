// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/account"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// TestOwed holds that both sides owe the same by what has passed between them: for another size, a later end and suspensions.
func TestOwed(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.Resources["cpu"], spec.Duration.Duration = resource.MustParse("4"), 2*time.Hour
		spec.MaxPrice.Amount = "9"
	})
	w.once("p")
	same := func(what string) bill.Contract {
		t.Helper()
		record, err := s.Get(t.Context(), w.key("p"))
		if err != nil || record == nil {
			t.Fatal(record, err)
		}
		entry, err := account.OfPurchase(w.get("p"))
		if err != nil {
			t.Fatal(err)
		}
		sold := bill.OfSeller(*record)
		if sold.All().String() != entry.Bill.All().String() || len(sold.All()) != 1 {
			t.Errorf("%s: the seller is owed %s, and its buyer owes %s", what, sold.All(), entry.Bill.All())
		}
		return entry.Bill
	}
	if got := same("in use"); len(got.Rates) != 2 || len(got.Pauses) != 0 {
		t.Errorf("it has the prices %v", got.Rates)
	}
	s.decide(t, w.key("p"), contract.Suspend)
	w.once("p")
	if got := same("suspended"); len(got.Pauses) != 1 || !got.Pauses[0].To.IsZero() {
		t.Errorf("the buyer has the pauses %v", got.Pauses)
	}
	s.decide(t, w.key("p"), contract.Resume)
	w.once("p")
	if got := same("resumed"); len(got.Pauses) != 1 || got.Pauses[0].To.IsZero() {
		t.Errorf("the buyer has the pauses %v", got.Pauses)
	}
}

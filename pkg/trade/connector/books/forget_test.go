// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// TestForget holds that what is kept for people alone closes no shop, and takes no more memory than it may: who has the most loses its
// oldest, and what is not over, was a moment ago, or is not withdrawn stays.
func TestForget(t *testing.T) {
	s := newServer(t)
	store, informer := watched(t, s, s)
	now := time.Now()
	size := 0
	sale := func(of, id string, ago time.Duration, state contract.State, withdrawn bool) {
		t.Helper()
		key := contract.Key{Buyer: of, ID: id}
		record := contract.Record{
			View:      contract.View{Key: key, Version: 1, State: state, Countersignature: "signed"},
			Withdrawn: withdrawn, History: []contract.Transition{{At: now.Add(-ago), To: state}},
		}
		text, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		made := &connectorv1alpha1.Sale{
			ObjectMeta: metav1.ObjectMeta{Name: books.Name(key), UID: types.UID(id + of)},
			Spec:       connectorv1alpha1.SaleSpec{Buyer: connectorv1alpha1.PartyID(of), ContractID: connectorv1alpha1.Label(id)},
		}
		made.Status.Record = string(text)
		if err := s.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		informer.Add(made)
		size = max(size, len(text))
	}
	const week = negotiation.CountedFor
	other := strings.Repeat("b", len(buyer))
	for i := range 5 {
		sale(buyer, fmt.Sprintf("old-%d", i), week+time.Duration(5-i)*time.Minute, contract.Ended, true)
	}
	sale(buyer, "recent", week-time.Minute, contract.Ended, true)
	sale(buyer, "held", 10*week, contract.Ended, false)
	sale(buyer, "open", 10*week, contract.Active, false)
	sale(other, "old-x", 10*week, contract.Ended, true)
	count, err := store.Count(t.Context(), buyer)
	if err != nil || count.Kept != 3 || count.AllKept != 3 || count.Open != 1 || count.Bytes == 0 || count.Bytes > 3*size {
		t.Errorf("counts %+v, %v: what has been over for a week counts", count, err)
	}
	left := func() (names []string) {
		t.Helper()
		var sales connectorv1alpha1.SaleList
		if err := s.List(t.Context(), &sales); err != nil {
			t.Fatal(err)
		}
		for i := range sales.Items {
			names = append(names, string(sales.Items[i].Spec.ContractID))
		}
		slices.Sort(names)
		return names
	}
	if gone, err := store.Forget(t.Context(), now, 6*size); err != nil || len(gone) != 0 {
		t.Errorf("what fits is forgotten: %v, %v", gone, err)
	}
	gone, err := store.Forget(t.Context(), now, 3*size)
	if err != nil || len(gone) != 3 || gone[0].Key.ID != "old-0" || gone[2].Key.ID != "old-2" {
		t.Errorf("forgets %+v, %v", gone, err)
	}
	if want := []string{"held", "old-3", "old-4", "old-x", "open", "recent"}; !slices.Equal(left(), want) {
		t.Errorf("left are %v, not %v", left(), want)
	}
	for _, k := range gone {
		informer.Delete(&connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: k.Name}})
	}
	if _, err := store.Forget(t.Context(), now, 0); err != nil {
		t.Error(err)
	}
	if want := []string{"held", "open", "recent"}; !slices.Equal(left(), want) {
		t.Errorf("with no room at all left are %v, not %v", left(), want)
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
)

// TestSeenAfterRestore believes what a watch shows, when what this process has written should have been shown for long.
func TestSeenAfterRestore(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newSeen(clocktest.Func(func() time.Time { return now }))
	s.ready = func() bool { return true }
	sale := func(version int) *connectorv1alpha1.Sale {
		sale := &connectorv1alpha1.Sale{
			ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "1"}, Spec: connectorv1alpha1.SaleSpec{Buyer: "b", ContractID: "c"},
		}
		sale.Status.Record = fmt.Sprintf(`{"key":{"buyer":"b","id":"c"},"version":%d,"state":"Active"}`, version)
		return sale
	}
	is := func(want int64) {
		t.Helper()
		all, complete := s.all()
		one, found, _ := s.get("s")
		if !complete || !found || len(all) != 1 || one.Record.Version != want || all[0].Record.Version != want {
			t.Errorf("version %d and %+v are known, want version %d", one.Record.Version, all, want)
		}
	}
	// The changes of what is known are counted, and nothing else.
	counted := int64(0)
	changed := func(want bool) {
		t.Helper()
		changes, complete := s.count()
		if !complete || (changes != counted) != want {
			t.Errorf("the changes are %d after %d, want others: %t", changes, counted, want)
		}
		counted = changes
	}
	s.note(sale(7))
	is(7)
	changed(true)
	changed(false)
	s.show(sale(5))
	is(7)
	changed(true)
	now = now.Add(seenWithin)
	is(5)
	changed(true)
	changed(false)
	s.show(sale(6))
	is(6)
	changed(true)
	s.remove(sale(6))
	changed(true)
}

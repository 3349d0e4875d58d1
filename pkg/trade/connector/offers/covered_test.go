// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offers_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
)

// TestCovered checks what is said of an offer by which more is sold than there is, or for longer; of another one nothing is said.
func TestCovered(t *testing.T) {
	w := newWorld(t, small("a"), small("b"), small("c"))
	covered := func(name string) string {
		t.Helper()
		w.look()
		c := meta.FindStatusCondition(w.offer(name).Status.Conditions, connectorv1alpha1.ConditionCovered)
		if c == nil {
			return ""
		}
		return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
	}
	w.books = ledger.New([]ledger.Hold{
		{Key: ledger.Key{Buyer: "x", ID: "1"}, Offer: "a", Plan: "s", Resources: corev1.ResourceList(list("2", "4Gi", "20"))},
		{Key: ledger.Key{Buyer: "x", ID: "2"}, Offer: "b", Plan: "s", Resources: corev1.ResourceList(list("2", "4Gi", "20"))},
	})
	if got := covered("a"); !strings.HasPrefix(got, "True Covered ") {
		t.Errorf("with all that it has sold: %s", got)
	}
	if got := covered("c"); got != "" {
		t.Errorf("nothing is sold of it: %s", got)
	}
	w.gap = capacity.Gap{Short: corev1.ResourceList(list("1", "0", "0")), Sold: []capacity.Sold{{Sale: "s-1", Offer: "a"}}}
	if got := covered("a"); !strings.HasPrefix(got, "False Overcommitted ") || !strings.Contains(got, "cpu=1") {
		t.Errorf("with more sold than there is: %s", got)
	}
	if got := covered("b"); !strings.HasPrefix(got, "True Covered ") {
		t.Errorf("another offer: %s", got)
	}
	w.gap.From, w.gap.Purchase = w.now, "early"
	for i := range 9 {
		w.gap.Sold = append(w.gap.Sold, capacity.Sold{Sale: fmt.Sprint("t-", i), Offer: "b"})
	}
	for _, want := range []string{"False Uncovered ", "Purchase early ends at 2027-01-15T08:00:00Z", "s-1", "and 2 others"} {
		if got := covered("a"); !strings.Contains(got, want) {
			t.Errorf("with more sold than there will be it does not say %q: %s", want, got)
		}
	}
	select {
	case event := <-w.events.Events:
		t.Log(event)
	default:
		t.Error("nobody is told")
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// restoredUID is that of a Purchase which was made again.
const restoredUID = "uid-restored"

// bringBack makes a Purchase again as a copy has it, with its status, and has another process look after it.
func (w *world) bringBack(was *connectorv1alpha1.Purchase, status connectorv1alpha1.PurchaseStatus) {
	w.t.Helper()
	if now := w.get(was.Name); now != nil {
		now.Finalizers = nil
		if err := w.client.Update(w.t.Context(), now); err != nil {
			w.t.Fatal(err)
		}
		if err := w.client.Delete(w.t.Context(), now); client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
	}
	object := was.DeepCopy()
	object.UID, object.ResourceVersion, object.Status = restoredUID, "", connectorv1alpha1.PurchaseStatus{}
	if err := w.client.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	object.Status = status
	if err := w.client.Status().Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	w.restart()
}

// TestBuyerRestored restores a buyer from a copy of when the contract was in use: it keeps to what it has signed by the copy, and hears
// from the seller what is over. The seller holds what both have signed.
func TestBuyerRestored(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*testing.T, *shop, *world)
		seller    contract.State // While the copy goes on.
		revision  int64
		over      string
	}{
		"nothing": {func(*testing.T, *shop, *world) {}, contract.Active, 1, ""},
		"another size": {func(_ *testing.T, _ *shop, w *world) {
			w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("5") })
		}, contract.Active, 2, ""},
		"a later end": {func(_ *testing.T, _ *shop, w *world) {
			w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Duration = &metav1.Duration{Duration: 3 * time.Hour} })
		}, contract.Active, 2, ""},
		"the end": {func(_ *testing.T, _ *shop, w *world) { w.end("p") }, contract.Ended, 1, connectorv1alpha1.ReasonEndedEarly},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, remote())
			w := newWorld(t, s)
			w.create("p", s, nil)
			copied := w.until("p", connectorv1alpha1.ReasonActive, s).DeepCopy()
			key := w.key("p")
			rounds := func() {
				for range 30 {
					w.once("p")
					s.serve(t, key)
				}
			}
			c.meanwhile(t, s, w)
			rounds()
			w.bringBack(copied, copied.Status)
			done := len(w.clusters.log)
			rounds()
			record, _ := s.Get(t.Context(), key)
			if record == nil || record.State != c.seller || record.Terms.Revision != c.revision {
				t.Fatalf("the seller has %+v", record)
			}
			p := w.get("p")
			if c.over != "" {
				if reasonOf(p) != c.over || slices.Contains(w.clusters.log[done:], "peer a") {
					t.Errorf("%s (%s), done %q", reasonOf(p), messageOf(p), w.clusters.log)
				}
				return
			}
			if p.Status.ContractID != key.ID || !slices.Equal(w.clusters.log, parted[:1]) {
				t.Errorf("%s (%s) of contract %s, done %q", reasonOf(p), messageOf(p), p.Status.ContractID, w.clusters.log)
			}
			// A drain after the end that the copy has, it has parted, whatever the seller holds.
			w.wait(copied.Status.EndTime.Add(record.Terms.Drain).Sub(w.now()))
			rounds()
			record, _ = s.Get(t.Context(), key)
			if !slices.Equal(w.clusters.log, parted) || name == "a later end" && record.State != contract.Active {
				t.Errorf("at the end: done %q, and the seller has it %s", w.clusters.log, record.State)
			}
		})
	}
}

// TestBuyerWithoutStatus applies a Purchase from a copy that has no status: it is a new order, beside the contract that the seller holds.
func TestBuyerWithoutStatus(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	copied := w.until("p", connectorv1alpha1.ReasonActive, s).DeepCopy()
	w.bringBack(copied, connectorv1alpha1.PurchaseStatus{})
	another := contract.Key{Buyer: string(w.buyer.key.ID()), ID: restoredUID}
	w.until("p", connectorv1alpha1.ReasonActive, nil, func() { s.serve(t, another) })
	for _, key := range []contract.Key{w.key("p"), another} {
		if record, _ := s.Get(t.Context(), key); record == nil || record.State != contract.Active {
			t.Errorf("the seller has contract %s as %+v", key.ID, record)
		}
	}
}

// TestRestoredSuspension restores a seller from a copy of before a suspension, and of before its end: what the copy says counts.
func TestRestoredSuspension(t *testing.T) {
	for name, c := range map[string]struct {
		before, since []contract.Event
		// reason and last are what the buyer says, and has done last.
		reason, last string
	}{
		"before it": {nil, []contract.Event{contract.Suspend}, connectorv1alpha1.ReasonActive, "peer a"},
		"before its end": {
			[]contract.Event{contract.Suspend}, []contract.Event{contract.Resume}, connectorv1alpha1.ReasonSellerRestored, "drain a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, remote())
			w := newWorld(t, s)
			w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) { spec.Duration.Duration = 30 * 24 * time.Hour })
			w.until("p", connectorv1alpha1.ReasonActive, s)
			for _, event := range c.before {
				s.decide(t, w.key("p"), event)
				w.once("p")
			}
			copied, _ := s.Get(t.Context(), w.key("p"))
			for _, event := range c.since {
				s.decide(t, w.key("p"), event)
				w.once("p")
			}
			if reasonOf(w.get("p")) == c.reason {
				t.Fatalf("nothing has changed since the copy: %s", c.reason)
			}
			s.restore(t, *copied)
			for range 10 {
				w.once("p")
				s.serve(t, w.key("p"))
			}
			if p := w.get("p"); reasonOf(p) != c.reason || w.clusters.log[len(w.clusters.log)-1] != c.last {
				t.Errorf("%s (%s), done %q", reasonOf(p), messageOf(p), w.clusters.log)
			}
		})
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// openAsking returns a shop in which somebody has to approve each contract, within two days.
func openAsking(t *testing.T) *shop {
	t.Helper()
	rules, err := negotiation.NewRules(nil, contract.Ask)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, remote(), func(cfg *negotiation.Config) {
		cfg.Admission, cfg.Seller.DecideFor = rules, 48*time.Hour
	})
}

// TestNeverDecided has nobody at the seller decide for a day: what was ordered is not over as agreed, whether the seller hears that nobody
// waits any more or not. If people end it before, it is.
func TestNeverDecided(t *testing.T) {
	for name, c := range map[string]struct {
		then   func(*world, *shop)
		reason string
	}{
		"told":            {func(*world, *shop) {}, connectorv1alpha1.ReasonExpired},
		"silent":          {func(_ *world, s *shop) { s.silence() }, connectorv1alpha1.ReasonExpired},
		"forgotten":       {func(w *world, s *shop) { s.Forget(w.key("p")) }, connectorv1alpha1.ReasonExpired},
		"ended by people": {func(w *world, _ *shop) { w.end("p") }, connectorv1alpha1.ReasonEnded},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAsking(t)
			w := newWorld(t, s)
			w.create("p", s, nil)
			w.until("p", connectorv1alpha1.ReasonAwaitsApproval, s)
			w.wait(23 * time.Hour)
			if w.once("p"); reasonOf(w.get("p")) != connectorv1alpha1.ReasonAwaitsApproval {
				t.Errorf("after 23 hours: %s", reasonOf(w.get("p")))
			}
			w.wait(2 * time.Hour)
			c.then(w, s)
			for range 3 {
				w.once("p")
			}
			if p := w.get("p"); reasonOf(p) != c.reason || len(w.clusters.log) > 0 {
				t.Errorf("after 25 hours: %s (%s), done %q", reasonOf(p), messageOf(p), w.clusters.log)
			}
		})
	}
}

// TestFixedEnd has somebody approve ten minutes late what people want until a time: it begins when it is signed, and ends at that time.
// What is wanted for an hour lasts an hour.
func TestFixedEnd(t *testing.T) {
	for _, fixed := range []bool{true, false} {
		s := openAsking(t)
		w := newWorld(t, s)
		ordered := w.now().UTC().Truncate(time.Second)
		w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) {
			if fixed {
				spec.Duration, spec.EndTime = nil, &metav1.Time{Time: ordered.Add(time.Hour)}
			}
		})
		w.until("p", connectorv1alpha1.ReasonAwaitsApproval, s)
		w.wait(10 * time.Minute)
		s.decide(t, w.key("p"), contract.Approve)
		status := w.until("p", connectorv1alpha1.ReasonActive, s).Status
		begins, ends := status.StartTime.Time, status.EndTime.Time
		if begins.Before(ordered.Add(10*time.Minute)) || fixed && !ends.Equal(ordered.Add(time.Hour)) || !fixed && ends.Sub(begins) != time.Hour {
			t.Errorf("fixed %t: ordered at %s, it lasts from %s to %s", fixed, ordered, begins, ends)
		}
		if record, _ := s.Get(t.Context(), w.key("p")); !record.Terms.StartsAt.Equal(begins) || !record.Terms.EndsAt.Equal(ends) {
			t.Errorf("fixed %t: the seller has from %s to %s", fixed, record.Terms.StartsAt, record.Terms.EndsAt)
		}
	}
}

// TestFixedEndUndecided has nobody approve what people want until a time: they wait until a drain before it, and no longer.
func TestFixedEndUndecided(t *testing.T) {
	s := openAsking(t)
	w := newWorld(t, s)
	ends := w.now().UTC().Truncate(time.Second).Add(time.Hour)
	w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.Duration, spec.EndTime = nil, &metav1.Time{Time: ends}
	})
	w.until("p", connectorv1alpha1.ReasonAwaitsApproval, s)
	w.wait(ends.Add(-time.Minute - 2*pause).Sub(w.now()))
	if w.once("p"); reasonOf(w.get("p")) != connectorv1alpha1.ReasonAwaitsApproval {
		t.Errorf("%s before the end: %s", ends.Sub(w.now()), reasonOf(w.get("p")))
	}
	w.once("p")
	if p := w.until("p", connectorv1alpha1.ReasonExpired, nil); !w.now().Before(ends) {
		t.Errorf("%s after the end: %s", w.now().Sub(ends), messageOf(p))
	}
}

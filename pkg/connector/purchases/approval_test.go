// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/connector/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/core/contract"
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

// TestNeverDecided has nobody at the seller decide for a day: what was ordered is not over as agreed, whether the seller hears that nobody waits any
// more or not. If people end it before, it is.
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

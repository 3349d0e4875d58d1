// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// TestNotSetUp checks that a purchase ends which is signed and never used: what its seller does not grant costs nothing, and what this side
// cannot use is paid until it has left, without notice.
func TestNotSetUp(t *testing.T) {
	half := &metav1.Duration{Duration: 30 * time.Minute}
	for name, tc := range map[string]struct {
		within  *metav1.Duration
		granted bool
		ends    time.Duration
	}{
		"not granted":                  {half, false, half.Duration},
		"not peered":                   {half, true, half.Duration},
		"not peered, and nothing said": {nil, true, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, remote())
			s.offer.Plans[0].Notice = 0
			w := newWorld(t, s)
			w.clusters.stuck = true
			w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) {
				spec.ReadyWithin, spec.Duration = tc.within, &metav1.Duration{Duration: 48 * time.Hour}
			})
			serve := func() {}
			if tc.granted {
				serve = func() { s.serve(t, w.key("p")) }
			}
			w.until("p", connectorv1alpha1.ReasonSettingUp, nil, serve)
			signed := w.passed()
			for w.passed() < signed+tc.ends-2*time.Minute {
				serve()
				w.once("p")
				w.wait(time.Minute)
			}
			if reason := reasonOf(w.get("p")); reason != connectorv1alpha1.ReasonSettingUp {
				t.Fatalf("two minutes before the time is over: %s", reason)
			}
			w.wait(3 * time.Minute)
			p := w.until("p", connectorv1alpha1.ReasonNotSetUp, s)
			record, err := s.Get(t.Context(), w.key("p"))
			if err != nil || record.State != contract.Ended || record.PaidUntil.IsZero() == tc.granted {
				t.Errorf("the seller has %+v, %v", record, err)
			}
			if paid := p.Status.PaidUntilTime; tc.granted && (paid == nil || paid.After(w.now())) {
				t.Errorf("paid until %s, and it is %s", paid, w.now())
			}
			did := w.clusters.log
			if peered := slices.Contains(did, "peer a"); peered != tc.granted || peered && did[len(did)-1] != "unpeer a" {
				t.Errorf("done: %q", did)
			}
		})
	}
}

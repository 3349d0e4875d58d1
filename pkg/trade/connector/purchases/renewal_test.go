// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// renewalOf returns how it stands with a later end of a purchase.
func renewalOf(p *connectorv1alpha1.Purchase) metav1.Condition {
	if c := meta.FindStatusCondition(p.Status.Conditions, connectorv1alpha1.ConditionRenewal); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// renewing returns a purchase of 61 minutes that is in use and renews, with a drain of a minute: a later end is asked for 20 minutes before
// the drain, and has to be agreed 10 minutes before it.
func renewing(t *testing.T, s *shop, change func(*connectorv1alpha1.PurchaseSpec)) *world {
	t.Helper()
	w := newWorld(t, s)
	w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.Renew, spec.Duration = true, &metav1.Duration{Duration: 61 * time.Minute}
		if change != nil {
			change(spec)
		}
	})
	p := w.until("p", connectorv1alpha1.ReasonActive, s)
	if is := renewalOf(p); is.Status != metav1.ConditionTrue || is.Reason != connectorv1alpha1.ReasonRenews {
		t.Fatalf("at the beginning: %+v", is)
	}
	return w
}

// to lets the time pass until so long before the end of a purchase, and has it looked at.
func (w *world) to(before time.Duration) *connectorv1alpha1.Purchase {
	w.t.Helper()
	ends := w.get("p").Status.EndTime.Time
	w.wait(ends.Add(-before).Sub(w.now()) - pause)
	for range 4 {
		w.once("p")
	}
	return w.get("p")
}

// TestRenews checks that a later end is asked for in time, once for each end, and that it is another one each time.
func TestRenews(t *testing.T) {
	s := open(t, remote())
	w := renewing(t, s, nil)
	before := w.get("p").Status.EndTime.Time
	if p := w.to(25 * time.Minute); !p.Status.EndTime.Time.Equal(before) {
		t.Errorf("25 minutes before its end it ends at %s, not at %s", p.Status.EndTime, before)
	}
	for times := range 3 {
		p := w.to(21 * time.Minute)
		want := before.Add(time.Duration(times+1) * 61 * time.Minute)
		if is := renewalOf(p); !p.Status.EndTime.Time.Equal(want) || is.Reason != connectorv1alpha1.ReasonRenewed {
			t.Fatalf("renewed %d times: it ends at %s, not at %s: %+v", times+1, p.Status.EndTime, want, is)
		}
	}
	// What people change beside it is no wish for an earlier end.
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.MaxPrice.Amount = "2" })
	for range 4 {
		w.once("p")
	}
	if said := messageOf(w.get("p")); strings.Contains(said, "shorter") {
		t.Errorf("after another price: %s", said)
	}
	// Nobody wants more time.
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Renew = false })
	before = w.get("p").Status.EndTime.Time
	if p := w.to(15 * time.Minute); !p.Status.EndTime.Time.Equal(before) || renewalOf(p).Reason != "" {
		t.Errorf("it ends at %s, not at %s: %+v", p.Status.EndTime, before, renewalOf(p))
	}
}

// TestRenewsLong checks that the end of a long contract is looked at two days before its drain, and that what is not for sale any more is
// renewed as both have signed it.
func TestRenewsLong(t *testing.T) {
	s := open(t, remote())
	w := renewing(t, s, func(spec *connectorv1alpha1.PurchaseSpec) { spec.Duration.Duration = 720 * time.Hour })
	before := w.get("p").Status.EndTime.Time
	if p := w.to(48*time.Hour + 3*time.Minute); !p.Status.EndTime.Time.Equal(before) {
		t.Errorf("more than two days before its end it ends at %s, not at %s", p.Status.EndTime, before)
	}
	if p := w.to(48 * time.Hour); !p.Status.EndTime.Time.Equal(before.Add(720 * time.Hour)) {
		t.Errorf("two days before its end it ends at %s: %+v", p.Status.EndTime, renewalOf(p))
	}
}

// TestNotRenewed checks what is said of a purchase that is not renewed: that it is refused, and asked for again, and that it ends.
func TestNotRenewed(t *testing.T) {
	dear := func(s *shop) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var err error
		if s.offer.Plans[0].Price.Amount, err = offer.ParseAmount("100"); err != nil {
			t.Fatal(err)
		}
		s.offer.Revision++
	}
	rules := func(verdict contract.Verdict) func(*negotiation.Config) {
		return func(cfg *negotiation.Config) {
			var err error
			if cfg.Admission, err = negotiation.NewRules([]negotiation.Rule{
				{Expression: "terms.revision > 1", Verdict: verdict, Reason: "nobody renews"},
			}, contract.Accept); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		config func(*negotiation.Config)
		then   func(*shop)
		spec   func(*connectorv1alpha1.PurchaseSpec)
		// reason and why are what is said after it was asked for, last what is said of its end.
		reason, why, last string
	}{
		"too expensive": {
			then: dear, reason: connectorv1alpha1.ReasonRenewalRefused, why: "spec.maxPrice", last: "spec.maxPrice",
		},
		"too expensive, until people pay more": {then: dear, reason: connectorv1alpha1.ReasonRenewalRefused, why: "spec.maxPrice"},
		"too much in all": {
			spec: func(spec *connectorv1alpha1.PurchaseSpec) {
				spec.MaxTotal = &connectorv1alpha1.Money{Amount: "0.5", Currency: "EUR"}
			},
			reason: connectorv1alpha1.ReasonRenewalRefused, why: "spec.maxTotal", last: "spec.maxTotal",
		},
		"refused": {
			config: rules(contract.Deny), reason: connectorv1alpha1.ReasonRenewalRefused, why: "nobody renews", last: "nobody renews",
		},
		"nobody decides": {config: rules(contract.Ask), reason: connectorv1alpha1.ReasonRenewalAsked, why: "asked", last: "not agreed in time"},
		"nobody answers": {
			then: func(s *shop) { s.silence() }, reason: connectorv1alpha1.ReasonRenews, why: "asked for at", last: "not agreed in time",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var changes []func(*negotiation.Config)
			if tc.config != nil {
				changes = append(changes, tc.config)
			}
			s := open(t, remote(), changes...)
			w := renewing(t, s, tc.spec)
			if tc.then != nil {
				tc.then(s)
			}
			before := w.get("p").Status.EndTime.Time
			p := w.to(20 * time.Minute)
			if is := renewalOf(p); is.Reason != tc.reason || !strings.Contains(is.Message, tc.why) {
				t.Errorf("asked for: %+v", is)
			}
			if name == "too expensive, until people pay more" {
				w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.MaxPrice.Amount = "1000" })
				for range 4 {
					w.once("p")
				}
				if p := w.get("p"); !p.Status.EndTime.Time.Equal(before.Add(61 * time.Minute)) {
					t.Errorf("for more, it ends at %s: %+v", p.Status.EndTime, renewalOf(p))
				}
				return
			}
			p = w.to(11 * time.Minute)
			is := renewalOf(p)
			if is.Reason != connectorv1alpha1.ReasonNotRenewed || is.Status != metav1.ConditionFalse || !strings.Contains(is.Message, tc.last) {
				t.Errorf("ten minutes before the drain: %+v", is)
			}
			if reasonOf(p) != connectorv1alpha1.ReasonActive || !p.Status.EndTime.Time.Equal(before) {
				t.Errorf("it ends at %s, not at %s: %s", p.Status.EndTime, before, reasonOf(p))
			}
			// An approval that comes too late changes nothing.
			if name == "nobody decides" {
				s.decide(t, w.key("p"), contract.Approve)
				for range 4 {
					w.once("p")
				}
				if p := w.get("p"); !p.Status.EndTime.Time.Equal(before) {
					t.Errorf("approved too late: it ends at %s", p.Status.EndTime)
				}
			}
		})
	}
}

// TestRenewalTries checks that a later end is asked for again for a while, and not with each look.
func TestRenewalTries(t *testing.T) {
	s := open(t, remote(), func(cfg *negotiation.Config) {
		var err error
		if cfg.Admission, err = negotiation.NewRules([]negotiation.Rule{{Expression: "terms.revision > 1", Verdict: contract.Deny}},
			contract.Accept); err != nil {
			t.Fatal(err)
		}
	})
	w := renewing(t, s, nil)
	w.to(21 * time.Minute)
	for w.now().Before(w.get("p").Status.EndTime.Add(-10 * time.Minute)) {
		w.once("p")
	}
	record, err := s.Get(t.Context(), w.key("p"))
	if err != nil {
		t.Fatal(err)
	}
	if asked := record.LastRevision - 1; asked < 3 || asked > 4 {
		t.Errorf("asked %d times in ten minutes", asked)
	}
}

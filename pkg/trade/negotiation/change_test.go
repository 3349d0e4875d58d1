// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// active negotiates a contract that is in use, and returns its terms.
func (s *shop) active(t *testing.T, c *negotiation.Client, buyer somebody) contract.Terms {
	t.Helper()
	_, request := buy(t, c, buyer, "a")
	s.decide(t, request.Key, contract.Grant)
	view, err := c.Do(t.Context(), contract.Request{Event: contract.Peered, Key: request.Key})
	if err != nil || view.State != contract.Active {
		t.Fatalf("peered: %s, %v", view.State, err)
	}
	return view.Terms
}

// TestChange holds which new terms who has bought can get, whatever has become of the offer since.
func TestChange(t *testing.T) {
	later := func(terms *contract.Terms) {
		terms.EffectiveAt, terms.EndsAt = terms.EndsAt, terms.EndsAt.Add(time.Hour)
	}
	smaller := func(terms *contract.Terms) {
		terms.Resources = terms.Resources.DeepCopy()
		terms.Resources["cpu"] = resource.MustParse("1")
	}
	cheaper := func(change func(*contract.Terms)) func(*contract.Terms) {
		return func(terms *contract.Terms) {
			change(terms)
			terms.Price = offertest.Price("0.01")
		}
	}
	larger := func(terms *contract.Terms) {
		terms.Resources = terms.Resources.DeepCopy()
		terms.Resources["cpu"] = resource.MustParse("16")
	}
	closed := func(s *shop) { s.offer.ID = "another" }
	dearer := func(s *shop) {
		s.offer.Revision++
		s.offer.Plans[0].Price.Amount, _ = offer.ParseAmount("0.2")
	}
	moves := func(terms *contract.Terms) {
		terms.Plan, terms.Notice = "two", 2*time.Hour
	}
	// second has the shop sell another plan too: for a while, with a notice.
	second := func(change func(*offer.Plan)) func(*shop) {
		return func(s *shop) {
			s.offer.Revision++
			plan := s.offer.Plans[0]
			plan.ID, plan.Notice = "two", offer.Duration(2*time.Hour)
			plan.Price.Amount, _ = offer.ParseAmount("0.01")
			if change != nil {
				change(&plan)
			}
			s.offer.Plans = append(s.offer.Plans, plan)
		}
	}
	for name, test := range map[string]struct {
		reason string
		shop   func(s *shop)
		event  contract.Event
		terms  func(terms *contract.Terms)
		// now has the terms say the offer as it is now.
		now   bool
		state contract.State
	}{
		"as it is": {"nothing has changed", func(*shop) {}, contract.Renew, later, false, contract.Resizing},
		"another notice": {
			"both have signed the old one", func(s *shop) { s.offer.Revision++; s.offer.Plans[0].Notice = offer.Duration(time.Hour) },
			contract.Renew, later, true, contract.Resizing,
		},
		"dearer":                   {"more time costs what it costs now", dearer, contract.Renew, later, true, contract.Resizing},
		"dearer, as it was signed": {"as long as it is for sale, it costs what it costs now", dearer, contract.Renew, later, false, ""},
		"dearer, and smaller":      {"a part can always be given back", dearer, contract.Resize, smaller, false, contract.Resizing},
		"closed":                   {"who has bought keeps it", closed, contract.Renew, later, false, contract.Resizing},
		"closed, and smaller":      {"a part can always be given back", closed, contract.Resize, smaller, false, contract.Resizing},
		"closed, and larger":       {"nothing is for sale", closed, contract.Resize, larger, false, ""},
		"without the plan": {
			"it is not for sale", func(s *shop) { s.offer.Revision++; s.offer.Plans[0].ID = "other" }, contract.Renew, later, false,
			contract.Resizing,
		},
		"over": {"it is not for sale", func(s *shop) {
			s.offer.IssuedAt, s.offer.ValidUntil = s.offer.IssuedAt.Add(-2*time.Hour), s.offer.IssuedAt.Add(-time.Hour)
		}, contract.Renew, later, false, contract.Resizing},
		"to another plan": {"it is sold", second(nil), contract.Resize, moves, true, contract.Resizing},
		"to another plan, with the old notice": {"a plan has its own", second(nil), contract.Resize, func(terms *contract.Terms) {
			terms.Plan = "two"
		}, true, ""},
		"to another plan, with a longer notice": {"it is neither plan's", second(nil), contract.Resize, func(terms *contract.Terms) {
			moves(terms)
			terms.Notice += time.Hour
		}, true, ""},
		"as it was signed, with a longer notice": {"it is not signed", closed, contract.Resize, func(terms *contract.Terms) {
			terms.Notice = time.Hour
		}, false, ""},
		"to a plan of another offer": {"it is another contract", func(s *shop) { second(nil)(s); closed(s) }, contract.Resize,
			func(terms *contract.Terms) {
				moves(terms)
				terms.Offer = "another"
			}, true, ""},
		"to another plan, as it was signed": {"what is signed is of the other plan", second(nil), contract.Resize, moves, false, ""},
		"to another plan, and smaller": {"a part of another plan is bought", second(nil), contract.Resize, func(terms *contract.Terms) {
			moves(terms)
			smaller(terms)
		}, true, ""},
		"to a plan that is sold for longer": {"it is bought for the time that is left", second(func(p *offer.Plan) {
			p.MinDuration = offer.Duration(24 * time.Hour)
		}), contract.Resize, moves, true, ""},
		"to a plan that is not sold": {"it is not for sale", func(*shop) {}, contract.Resize, moves, false, ""},
		"to another plan, closed":    {"nothing is for sale", func(s *shop) { second(nil)(s); closed(s) }, contract.Resize, moves, true, ""},
		"to another plan, later": {"an end is no plan", second(nil), contract.Renew, func(terms *contract.Terms) {
			moves(terms)
			later(terms)
		}, true, ""},
		"to a plan that is sold out": {"nothing is left of it", func(s *shop) {
			second(nil)(s)
			s.stocks = map[string]int64{"two": 0}
		}, contract.Resize, moves, true, contract.Active},
		"closed, at another price":  {"only what is signed counts", closed, contract.Renew, cheaper(later), false, ""},
		"smaller, at another price": {"only what is signed counts", closed, contract.Resize, cheaper(smaller), false, ""},
		"smaller, with something new": {"that is no part", closed, contract.Resize, func(terms *contract.Terms) {
			smaller(terms)
			terms.Resources["nvidia.com/gpu"] = resource.MustParse("1")
		}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, buyer := open(t, nil), newParty(t)
			c := s.client(t, buyer)
			wanted := s.active(t, c, buyer)
			wanted.Revision = 2
			s.mu.Lock()
			test.shop(s)
			if test.now {
				price, err := s.offer.Plans[len(s.offer.Plans)-1].Cost(offer.FromList(wanted.Resources))
				if err != nil {
					t.Fatal(err)
				}
				wanted.OfferRevision, wanted.OfferDigest, wanted.Price = s.offer.Revision, s.offer.Fingerprint(), price
			}
			s.mu.Unlock()
			test.terms(&wanted)
			view, err := c.Do(t.Context(), contract.Request{Event: test.event, Key: wanted.Key(), Terms: wanted})
			switch {
			case test.state == "" && !errors.Is(err, contract.ErrTerms):
				t.Errorf("%s, and it is %s: %v", test.reason, view.State, err)
			case test.state != "" && (err != nil || view.State != test.state):
				t.Errorf("%s, and it is %s with %+v: %v", test.reason, view.State, view.Refused, err)
			}
		})
	}
}

// TestMoveTerms moves a contract to plans of which the shortest and the longest time, and the notice, are told from what is left of it.
func TestMoveTerms(t *testing.T) {
	for name, test := range map[string]struct {
		// min and max are for how long the plan is sold, of a contract of which 18 of 24 hours are left.
		min, max, signed, notice, asked time.Duration
		state                           contract.State
	}{
		"as short":               {min: 17 * time.Hour, state: contract.Resizing},
		"too short":              {min: 19 * time.Hour},
		"not longer":             {max: 19 * time.Hour, state: contract.Resizing},
		"too long":               {max: 17 * time.Hour},
		"with a longer notice":   {signed: time.Hour, notice: 2 * time.Hour, asked: 2 * time.Hour, state: contract.Resizing},
		"with a shorter notice":  {signed: 2 * time.Hour, notice: time.Hour, asked: time.Hour},
		"with the signed notice": {signed: 2 * time.Hour, notice: time.Hour, asked: 2 * time.Hour, state: contract.Resizing},
	} {
		t.Run(name, func(t *testing.T) {
			var ahead atomic.Int64
			s, buyer := open(t, func(cfg *negotiation.Config) {
				cfg.Clock = clocktest.Func(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
			}), newParty(t)
			c := s.client(t, buyer)
			s.mu.Lock()
			s.offer.ValidUntil, s.offer.Plans[0].Notice = s.offer.ValidUntil.Add(24*time.Hour), offer.Duration(test.signed)
			s.mu.Unlock()
			wanted := s.active(t, c, buyer)
			ahead.Store(int64(6 * time.Hour))
			s.mu.Lock()
			plan := s.offer.Plans[0]
			plan.ID, plan.Notice = "two", offer.Duration(test.notice)
			plan.MinDuration, plan.MaxDuration = offer.Duration(test.min), offer.Duration(test.max)
			s.offer.Revision, s.offer.Plans = s.offer.Revision+1, append(slices.Clone(s.offer.Plans), plan)
			wanted.OfferRevision, wanted.OfferDigest = s.offer.Revision, s.offer.Fingerprint()
			s.mu.Unlock()
			wanted.Revision, wanted.Plan, wanted.Notice = 2, "two", test.asked
			view, err := c.Do(t.Context(), contract.Request{Event: contract.Resize, Key: wanted.Key(), Terms: wanted})
			if refused := errors.Is(err, contract.ErrTerms); refused != (test.state == "") || !refused && (err != nil || view.State != test.state) {
				t.Errorf("it is %s: %v", view.State, err)
			}
		})
	}
}

// TestMoveMeanwhile has a buyer sign another plan while its seller decides about what it has asked for before, as signed, with a notice of
// its own choice.
func TestMoveMeanwhile(t *testing.T) {
	for _, notice := range []time.Duration{0, 9 * time.Hour} {
		s, buyer := open(t, nil), newParty(t)
		c := s.client(t, buyer)
		was := s.active(t, c, buyer)
		s.mu.Lock()
		plan := s.offer.Plans[0]
		plan.ID, plan.Notice = "two", offer.Duration(2*time.Hour)
		s.offer.Revision, s.offer.Plans = 2, append(slices.Clone(s.offer.Plans), plan)
		moved := was
		moved.Revision, moved.Plan, moved.Notice, moved.OfferRevision, moved.OfferDigest = 2, "two", 2*time.Hour, 2, s.offer.Fingerprint()
		s.mu.Unlock()
		if view, err := c.Do(t.Context(), contract.Request{Event: contract.Resize, Key: was.Key(), Terms: moved}); err != nil {
			t.Fatalf("it is %s: %v", view.State, err)
		}
		moved.EffectiveAt = time.Now().UTC().Truncate(time.Second)
		signature, err := negotiation.SignTerms(buyer.key, moved)
		if err != nil {
			t.Fatal(err)
		}
		var between atomic.Bool
		s.BeforeRead = func() {
			if between.Swap(true) {
				return
			}
			confirm := contract.Request{Event: contract.Confirm, Key: was.Key(), Terms: moved, Signature: signature}
			if _, err := c.Do(t.Context(), confirm); err != nil {
				t.Error(err)
			}
		}
		back := was
		back.Revision, back.Notice, back.EffectiveAt = 3, notice, time.Time{}
		view, err := c.Do(t.Context(), contract.Request{Event: contract.Resize, Key: was.Key(), Terms: back})
		if !errors.Is(err, contract.ErrTerms) {
			t.Errorf("with a notice of %s it is %s: %v", notice, view.State, err)
		}
		record, err := s.Get(t.Context(), was.Key())
		if err != nil || record.State != contract.Active || record.Terms.Plan != "two" || record.Terms.Notice != 2*time.Hour {
			t.Errorf("it has plan %s with a notice of %s, %s: %v", record.Terms.Plan, record.Terms.Notice, record.State, err)
		}
	}
}

// TestChangeAfterRestart renews a contract at a seller that gives another drain to those who buy now.
func TestChangeAfterRestart(t *testing.T) {
	var cfg negotiation.Config
	s, buyer := open(t, func(c *negotiation.Config) { cfg = *c }), newParty(t)
	wanted := s.active(t, s.client(t, buyer), buyer)
	again := open(t, func(c *negotiation.Config) {
		*c = cfg
		c.Drain = 2 * time.Minute
	})
	wanted.Revision, wanted.EffectiveAt, wanted.EndsAt = 2, wanted.EndsAt, wanted.EndsAt.Add(time.Hour)
	view, err := s.clientAt(t, again.url, buyer).Do(t.Context(), contract.Request{Event: contract.Renew, Key: wanted.Key(), Terms: wanted})
	if err != nil || view.State != contract.Resizing || view.Change.Terms.Drain != time.Minute {
		t.Errorf("renewed: %s, %v", view.State, err)
	}
}

// TestIdle answers who looks at a contract of which nothing is due from what is known, and reads the store when something is, or when the
// buyer has seen more.
func TestIdle(t *testing.T) {
	var reads atomic.Int64
	var ahead atomic.Int64
	s, buyer := open(t, func(cfg *negotiation.Config) {
		cfg.Clock = clocktest.Func(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	}), newParty(t)
	s.BeforeRead = func() { reads.Add(1) }
	c := s.client(t, buyer)
	terms := s.active(t, c, buyer)
	look := func(after int64, wait time.Duration) (contract.View, bool) {
		t.Helper()
		before := reads.Load()
		view, err := c.Get(t.Context(), "a", after, wait)
		if err != nil {
			t.Fatal(err)
		}
		return view, reads.Load() > before
	}
	view, read := look(0, 0)
	if _, again := look(view.Version, time.Second); view.State != contract.Active || read || again {
		t.Errorf("%s, and the store was read: at a look %t, at a wait %t", view.State, read, again)
	}
	if _, read := look(view.Version+1, 0); !read {
		t.Error("who has seen more is answered from what is known")
	}
	ahead.Store(int64(time.Until(terms.EndsAt)))
	if view, read := look(0, 0); view.State != contract.Terminating || !read {
		t.Errorf("at its end it is %s", view.State)
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"errors"
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
func (s *shop) active(t *testing.T, c *negotiation.Client, buyer somebody, id string) contract.Terms {
	t.Helper()
	_, request := buy(t, c, buyer, id)
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
			wanted := s.active(t, c, buyer, "a")
			wanted.Revision = 2
			s.mu.Lock()
			test.shop(s)
			if test.now {
				price, err := s.offer.Plans[0].Cost(offer.FromList(wanted.Resources))
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

// TestChangeAfterRestart renews a contract at a seller that gives another drain to those who buy now.
func TestChangeAfterRestart(t *testing.T) {
	var cfg negotiation.Config
	s, buyer := open(t, func(c *negotiation.Config) { cfg = *c }), newParty(t)
	wanted := s.active(t, s.client(t, buyer), buyer, "a")
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
	terms := s.active(t, c, buyer, "a")
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

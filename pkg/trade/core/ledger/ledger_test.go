// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func cores(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
}

func hold(buyer string, cpu int64) ledger.Hold {
	return ledger.Hold{Key: ledger.Key{Buyer: buyer, ID: "c"}, Offer: "o", Plan: "p", Resources: cores(cpu)}
}

func limits(stock, cpu int64) ledger.Limits {
	return ledger.Limits{Stock: &stock, Capacity: cores(cpu)}
}

func TestReserve(t *testing.T) {
	until := func(h ledger.Hold, at time.Time) ledger.Hold { h.Until = at; return h }
	next := func(h ledger.Hold, cpu int64, at time.Time) ledger.Hold {
		h.Next, h.NextUntil = cores(cpu), at
		return h
	}
	gpu, nothing, nothingNext := hold("b", 1), hold("a", 1), hold("a", 1)
	nothing.Resources, nothingNext.Next = nil, corev1.ResourceList{}
	gpu.Resources = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	plan := hold("b", 1)
	plan.Plan = "q"
	of := func(h ledger.Hold, buyer string) ledger.Hold { h.Key.Buyer = buyer; return h }
	moves := func(h ledger.Hold, to string, at time.Time) ledger.Hold {
		h.NextPlans = []string{to}
		return next(h, 1, at)
	}
	only := func(plan string, l ledger.Limits) ledger.Limits { l.Plan = plan; return l }
	cases := map[string]struct {
		reason string
		held   []ledger.Hold
		hold   ledger.Hold
		limits ledger.Limits
		want   error
	}{
		"fits":     {"there is as much as it takes", []ledger.Hold{hold("a", 2)}, hold("b", 2), limits(2, 4), nil},
		"sold out": {"the last one is sold", []ledger.Hold{hold("a", 1)}, hold("b", 1), limits(1, 4), ledger.ErrSoldOut},
		"no capacity": {
			"the stock is there, and the cores are not", []ledger.Hold{hold("a", 3)}, hold("b", 2), limits(9, 4), ledger.ErrCapacity,
		},
		"another plan": {"stock is by plan", []ledger.Hold{hold("a", 1)}, plan, limits(1, 4), nil},
		"to another plan": {
			"what is held of one plan is no stock of another", []ledger.Hold{of(plan, "a"), hold("b", 1)}, plan, limits(1, 4), ledger.ErrSoldOut,
		},
		"another resource": {"what the capacity does not name is not for sale", nil, gpu, limits(1, 4), ledger.ErrCapacity},
		"no stock given":   {"only capacity bounds it", []ledger.Hold{hold("a", 1)}, hold("b", 1), ledger.Limits{Capacity: cores(4)}, nil},
		"a negative stock": {"it counts as none", nil, hold("b", 1), limits(-5, 4), ledger.ErrSoldOut},
		"the same again":   {"a contract holds once", []ledger.Hold{hold("a", 4)}, hold("a", 4), limits(1, 4), nil},
		"kept when shrunk": {
			"what is held stays when the cluster has lost nodes", []ledger.Hold{hold("a", 4)}, hold("a", 4), limits(0, 1), nil,
		},
		"smaller when short": {"it gives back, and does not grow", []ledger.Hold{hold("a", 4)}, hold("a", 3), limits(0, 1), nil},
		"grows when short":   {"there is no more", []ledger.Hold{hold("a", 4)}, hold("a", 5), limits(1, 4), ledger.ErrCapacity},
		"lapsed":             {"what has lapsed is free", []ledger.Hold{until(hold("a", 4), now)}, hold("b", 4), limits(1, 4), nil},
		"not lapsed": {
			"a reservation counts", []ledger.Hold{until(hold("a", 1), now.Add(1))}, hold("b", 1), limits(1, 4), ledger.ErrSoldOut,
		},
		"next counts": {
			"new terms are reserved", []ledger.Hold{next(hold("a", 1), 4, now.Add(1))}, hold("b", 1), limits(2, 4), ledger.ErrCapacity,
		},
		"next lapsed": {"new terms were not agreed", []ledger.Hold{next(hold("a", 1), 4, now)}, hold("b", 1), limits(2, 4), nil},
		"next is smaller": {
			"the old terms are in force", []ledger.Hold{next(hold("a", 4), 1, now.Add(1))}, hold("b", 1), limits(2, 4), ledger.ErrCapacity,
		},
		"too large a next": {
			"the new terms must fit as well", []ledger.Hold{hold("a", 1)}, next(hold("a", 1), 5, now.Add(1)), limits(2, 4), ledger.ErrCapacity,
		},
		"next plan": {
			"one of the plan is left", []ledger.Hold{hold("a", 1), of(plan, "b")}, moves(hold("a", 1), "q", now.Add(1)), limits(2, 4), nil,
		},
		"next plan sold out": {
			"both plans are counted", []ledger.Hold{hold("a", 1), of(plan, "b")}, moves(hold("a", 1), "q", now.Add(1)), limits(1, 4),
			ledger.ErrSoldOut,
		},
		"next plan again": {
			"it counts once", []ledger.Hold{moves(hold("a", 1), "q", now.Add(1)), of(plan, "b")}, moves(hold("a", 1), "q", now.Add(2)),
			limits(1, 4), nil,
		},
		"another's next plan": {
			"it is reserved", []ledger.Hold{moves(hold("a", 1), "q", now.Add(1))}, plan, limits(1, 4), ledger.ErrSoldOut,
		},
		"another's next plan lapsed": {"it was not agreed", []ledger.Hold{moves(hold("a", 1), "q", now)}, plan, limits(1, 4), nil},
		"another's last plan": {
			"it is counted until it is left", []ledger.Hold{moves(of(plan, "a"), "p", time.Time{})}, hold("b", 1), limits(1, 4),
			ledger.ErrSoldOut,
		},
		"stock of another plan": {"nobody knows what is left of this one", nil, hold("b", 1), only("q", limits(1, 4)), ledger.ErrSoldOut},
		"again, and stock of another": {
			"it has it already", []ledger.Hold{hold("a", 1)}, hold("a", 1), only("q", limits(1, 4)), nil,
		},
		"stock of the next plan": {
			"that is what is new", []ledger.Hold{hold("a", 1)}, moves(hold("a", 1), "q", now.Add(1)), only("q", limits(1, 4)), nil,
		},
		"a next plan without a name": {"plans have names", nil, moves(hold("a", 1), "", now.Add(1)), limits(2, 4), ledger.ErrHold},

		"nothing":            {"a hold takes something", nil, nothing, limits(2, 4), ledger.ErrHold},
		"nothing next":       {"new terms take something", nil, nothingNext, limits(2, 4), ledger.ErrHold},
		"negative resources": {"a hold gives nothing", nil, hold("a", -1), limits(2, 4), ledger.ErrHold},
		"most resources":     {"more than can be", nil, hold("a", math.MaxInt64), limits(1, math.MaxInt64), ledger.ErrHold},
		"nobody's":           {"a hold has a contract", nil, hold("", 1), limits(2, 4), ledger.ErrHold},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			books := ledger.Ledger{}
			for _, h := range c.held {
				books = books.Keep(h)
			}
			before, _ := json.Marshal(books)
			got, err := books.Reserve(c.hold, c.limits, now)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%s: got %v, want %v", c.reason, err, c.want)
			}
			if kept, found := got.Get(c.hold.Key); err == nil && (!found || !kept.Equal(c.hold)) {
				t.Errorf("%s: it holds %v", c.reason, kept)
			}
			if after, _ := json.Marshal(books); string(after) != string(before) || err != nil && !got.Equal(books) {
				t.Errorf("%s: the ledger was changed from %s to %s", c.reason, before, after)
			}
		})
	}
}

// TestNew reads holds that people have brought out of order, and finds each.
func TestNew(t *testing.T) {
	want := ledger.Ledger{}
	holds := []ledger.Hold{hold("c", 1), hold("a", 1), hold("b", 1), hold("a", 2)}
	for _, each := range holds {
		want = want.Keep(each)
	}
	got := ledger.New(holds)
	if !got.Equal(want) {
		t.Errorf("New() = %+v, want %+v", got, want)
	}
	if last, found := got.Get(holds[3].Key); !found || !last.Equal(holds[3]) {
		t.Errorf("of two holds of a contract, %+v counts (%t), want the last one", last, found)
	}
	if len(holds) != 4 || holds[0].Key.Buyer != "c" {
		t.Error("the holds that were given are changed")
	}
	if empty := ledger.New(nil); len(empty.Holds) != 0 {
		t.Errorf("New() of nothing = %+v", empty)
	}
}

func TestManyLargeHoldsDoNotOverflow(t *testing.T) {
	books := ledger.Ledger{}
	for i := range 20000 {
		h := hold("b", 1<<50)
		h.Key.ID = string(rune('a'+i%26)) + time.Duration(i).String()
		books.Holds = append(books.Holds, h)
	}
	held := books.Held(now)[corev1.ResourceCPU]
	if sold := books.Sold("o", "p", now); sold != 20000 || held.Sign() <= 0 {
		t.Errorf("%d contracts and %s cores are held", sold, held.String())
	}
	if _, err := books.Reserve(hold("z", 1), limits(math.MaxInt64, math.MaxInt64), now); !errors.Is(err, ledger.ErrCapacity) {
		t.Errorf("got %v, want ErrCapacity: far more is held than there is", err)
	}
}

func TestLapseReleaseAndPrune(t *testing.T) {
	reserved, sold, far := hold("a", 1), hold("b", 1), hold("c", 1)
	reserved.Until, far.Until = now.Add(time.Minute), now.Add(9000*time.Hour)
	books := ledger.Ledger{}.Keep(sold).Keep(far).Keep(reserved)
	if got := books.Lapse(now, time.Hour); len(got.Holds) != 3 || !got.Holds[2].Until.Equal(now.Add(time.Hour)) {
		t.Errorf("a reservation by a clock that was set back since lasts no longer than any other: %v", got)
	}
	if got := books.Lapse(now.Add(time.Minute), 0); len(got.Holds) != 2 {
		t.Errorf("one has lapsed: %v", got)
	}
	if got := books.Lapse(now.Add(90000*time.Hour), 0); !got.Equal(ledger.Ledger{}.Keep(sold)) {
		t.Errorf("what was sold never lapses: %v", got)
	}
	if got := books.Release(sold.Key); len(got.Holds) != 2 || !got.Release(sold.Key).Equal(got) {
		t.Errorf("it is released once, and again without effect: %v", got)
	}
	if got := books.Prune(func(ledger.Key) bool { return false }); len(got.Holds) != 2 {
		t.Errorf("reservations may be about to get their contract: %v", got)
	}
	if len(books.Holds) != 3 {
		t.Errorf("the ledger itself was changed: %v", books)
	}
	text, err := json.Marshal(books)
	if err != nil {
		t.Fatal(err)
	}
	var read ledger.Ledger
	if err := json.Unmarshal(text, &read); err != nil || !read.Equal(books) {
		t.Errorf("read %v, %v, wrote %s", read, err, text)
	}
}

func TestLapsedCountsForNothing(t *testing.T) {
	reserved, grown, sold := hold("a", 4), hold("b", 1), hold("c", 2)
	reserved.Until = now.Add(time.Minute)
	grown.Next, grown.NextUntil = cores(8), now.Add(time.Hour)
	books := ledger.Ledger{}.Keep(reserved).Keep(grown).Keep(sold)
	for after, want := range map[time.Duration]struct {
		sold, cores int64
		lapses      time.Time
	}{
		0:               {3, 14, now.Add(time.Minute)},
		time.Minute - 1: {3, 14, now.Add(time.Minute)},
		time.Minute:     {2, 10, now.Add(time.Hour)},
		time.Hour:       {2, 3, time.Time{}},
	} {
		at := now.Add(after)
		held := books.Held(at)[corev1.ResourceCPU]
		if sold := books.Sold("o", "p", at); sold != want.sold || held.Value() != want.cores {
			t.Errorf("after %s: %d contracts and %s cores are held, want %d and %d", after, sold, held.String(), want.sold, want.cores)
		}
		if lapses := books.Lapses(at); !lapses.Equal(want.lapses) {
			t.Errorf("after %s: the next lapses at %s, want %s", after, lapses, want.lapses)
		}
	}
}

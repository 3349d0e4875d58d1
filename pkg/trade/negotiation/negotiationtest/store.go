// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiationtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// bound is how long a test waits for what must happen.
const bound = 20 * time.Second

// stock is how many contracts fit.
const stock = 3

// contest is a store that is tested.
type contest struct {
	negotiation.Store

	now time.Time
}

// Open returns stores of two processes over the same empty books. The first calls reading before each read of an Update; what is read
// must be what is stored after reading has returned. Reading can use the second store.
type Open func(t *testing.T, reading func()) [2]negotiation.Store

// TestStore holds a store to the promises of negotiation.Store.
func TestStore(t *testing.T, open Open) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, contest, contest){
		"Written": written, "Refused": refused, "Nothing": nothing, "Again": again, "LedgerAgain": ledgerAgain, "GivenBack": givenBack,
		"AtOnce": atOnce, "Count": count, "Wait": wait, "WaitEnds": waitEnds, "Cancelled": cancelled,
	} {
		t.Run(name, func(t *testing.T) {
			one, other := contests(t, open, func() {})
			test(t, one, other)
		})
	}
	for name, race := range races() {
		t.Run(name, func(t *testing.T) { race.run(t, open) })
	}
}

// contests opens stores.
func contests(t *testing.T, open Open, reading func()) (one, other contest) {
	t.Helper()
	both := open(t, reading)
	now := time.Now().UTC().Truncate(time.Second) // What has been over for long does not count.
	return contest{both[0], now}, contest{both[1], now}
}

// key names a contract of the first buyer.
func key(id string) contract.Key { return contract.Key{Buyer: strings.Repeat("a", 52), ID: id} }

// deciding decides as a seller does that has three of a plan.
func (c contest) deciding(key contract.Key, event contract.Event) negotiation.Decide {
	left := int64(stock)
	terms := contract.Terms{
		ID: key.ID, Buyer: key.Buyer, Seller: strings.Repeat("b", 52), Revision: 1, Cluster: cluster.Identity{ID: "edge-id", Name: "edge"},
		Offer: "small", OfferRevision: 1, OfferDigest: "sha256:0", Plan: "one",
		Resources: corev1.ResourceList{"cpu": resource.MustParse("1500m")}, Price: offertest.Price("0.1"), StartsAt: c.now,
		EndsAt: c.now.Add(time.Hour), Drain: time.Minute,
	}
	return func(record *contract.Record, books ledger.Ledger) (contract.Result, error) {
		seller := contract.Seller{ReserveFor: time.Minute, DecideFor: time.Hour}
		request := contract.Request{Event: event, Key: key, Terms: terms, Verdict: contract.Accept, Signature: "s", Countersignature: "c"}
		return seller.Apply(record, request, c.now, books,
			ledger.Limits{Stock: &left, Capacity: corev1.ResourceList{"cpu": resource.MustParse("100")}})
	}
}

// do lets something happen to a contract.
func (c contest) do(t *testing.T, key contract.Key, events ...contract.Event) contract.Record {
	t.Helper()
	var record contract.Record
	for _, event := range events {
		var err error
		if record, err = c.Update(t.Context(), key, c.deciding(key, event)); err != nil {
			t.Fatalf("%s contract %s: %v", event, key.ID, err)
		}
	}
	return record
}

// held returns the ledger.
func (c contest) held(t *testing.T) ledger.Ledger {
	t.Helper()
	var held ledger.Ledger
	_, err := c.Update(t.Context(), key("none"), func(_ *contract.Record, books ledger.Ledger) (contract.Result, error) {
		held = books
		return contract.Result{Before: books, After: books}, nil
	})
	if err != nil {
		t.Fatalf("read the ledger: %v", err)
	}
	return held
}

// stored returns a record that must be there.
func (c contest) stored(t *testing.T, key contract.Key) contract.Record {
	t.Helper()
	record, err := c.Get(t.Context(), key)
	if err != nil || record == nil {
		t.Fatalf("get contract %s: %v, %v", key.ID, record, err)
	}
	return *record
}

// written has both processes read what one has written, all of it.
func written(t *testing.T, one, other contest) {
	t.Helper()
	if record, err := one.Get(t.Context(), key("x")); record != nil || err != nil {
		t.Fatalf("a contract that nobody made: %+v, %v", record, err)
	}
	wrote := one.do(t, key("x"), contract.Reserve, contract.Sign)
	if recent, knows := one.Recent(key("x")); knows && recent.Version != wrote.Version {
		t.Errorf("what this process has written last is version %d, not %d", wrote.Version, recent.Version)
	}
	read := other.stored(t, key("x"))
	if read.Version != wrote.Version || read.State != contract.Signed || !read.Terms.Equal(wrote.Terms) || !read.Ends.Equal(wrote.Ends) ||
		read.Signature != "s" || read.Countersignature != "c" || len(read.History) != len(wrote.History) || read.LastRevision != 1 {
		t.Errorf("read %+v, want %+v", read, wrote)
	}
	hold, has := other.held(t).Get(key("x"))
	if want := (ledger.Hold{Key: key("x"), Offer: "small", Plan: "one", Resources: wrote.Terms.Resources}); !has || !hold.Equal(want) {
		t.Errorf("holds %+v, %t, want %+v", hold, has, want)
	}
	// A key is a buyer and an ID: another buyer's contract of the same ID is another.
	if record, err := other.Get(t.Context(), contract.Key{Buyer: strings.Repeat("c", 52), ID: "x"}); record != nil || err != nil {
		t.Errorf("another buyer's contract: %+v, %v", record, err)
	}
}

// refused returns the error of decide, and writes what was decided beside it.
func refused(t *testing.T, one, other contest) {
	t.Helper()
	one.do(t, key("x"), contract.Reserve)
	reason := errors.New("no")
	record, err := one.Update(t.Context(), key("x"), func(record *contract.Record, books ledger.Ledger) (contract.Result, error) {
		result, _ := one.deciding(key("x"), contract.Terminate)(record, books)
		return result, reason
	})
	if !errors.Is(err, reason) || record.State != contract.Ended {
		t.Errorf("returned %s, %v", record.State, err)
	}
	if read := other.stored(t, key("x")); read.State != contract.Ended || len(other.held(t).Holds) != 0 {
		t.Errorf("stored %s, and holds %+v", read.State, other.held(t).Holds)
	}
}

// nothing writes no record of version 0.
func nothing(t *testing.T, one, other contest) {
	t.Helper()
	record, err := one.Update(t.Context(), key("x"), one.deciding(key("x"), contract.Peered))
	if !errors.Is(err, contract.ErrUnknown) || record.Version != 0 {
		t.Errorf("returned version %d, %v", record.Version, err)
	}
	if record, err := other.Get(t.Context(), key("x")); record != nil || err != nil {
		t.Errorf("stored %+v, %v", record, err)
	}
}

// again decides again if the record has changed meanwhile.
func again(t *testing.T, one, other contest) {
	t.Helper()
	one.do(t, key("x"), contract.Reserve)
	calls := 0
	record, err := one.Update(t.Context(), key("x"), func(record *contract.Record, books ledger.Ledger) (contract.Result, error) {
		if calls++; calls == 1 {
			other.do(t, key("x"), contract.Terminate)
		}
		return one.deciding(key("x"), contract.Sign)(record, books)
	})
	if calls != 2 || !errors.Is(err, contract.ErrLate) || record.State != contract.Ended {
		t.Errorf("decided %d times: %s, %v", calls, record.State, err)
	}
	if read := other.stored(t, key("x")); read.State != contract.Ended || len(other.held(t).Holds) != 0 {
		t.Errorf("stored %s, and holds %+v", read.State, other.held(t).Holds)
	}
}

// ledgerAgain decides again if another contract has taken something meanwhile: the last one is sold once.
func ledgerAgain(t *testing.T, one, other contest) {
	t.Helper()
	one.do(t, key("a"), contract.Reserve)
	one.do(t, key("b"), contract.Reserve)
	calls := 0
	record, err := one.Update(t.Context(), key("x"), func(record *contract.Record, books ledger.Ledger) (contract.Result, error) {
		if calls++; calls == 1 {
			other.do(t, key("y"), contract.Reserve)
		}
		return one.deciding(key("x"), contract.Reserve)(record, books)
	})
	if calls != 2 || err != nil || record.State != contract.Rejected || len(other.held(t).Holds) != stock {
		t.Errorf("decided %d times: %s, %v, %d holds", calls, record.State, err, len(other.held(t).Holds))
	}
}

// givenBack gives back what a contract held, and nothing else, also when another contract takes something meanwhile.
func givenBack(t *testing.T, one, other contest) {
	t.Helper()
	one.do(t, key("x"), contract.Reserve)
	calls := 0
	_, err := one.Update(t.Context(), key("x"), func(record *contract.Record, books ledger.Ledger) (contract.Result, error) {
		if calls++; calls == 1 {
			other.do(t, key("y"), contract.Reserve)
		}
		return one.deciding(key("x"), contract.Terminate)(record, books)
	})
	held := other.held(t)
	if _, kept := held.Get(key("y")); err != nil || !kept || len(held.Holds) != 1 {
		t.Errorf("holds %+v, %v", held.Holds, err)
	}
	if read := other.stored(t, key("x")); read.State != contract.Ended {
		t.Errorf("stored %s", read.State)
	}
}

// atOnce sells three of them to ten that want one at once.
func atOnce(t *testing.T, one, other contest) {
	t.Helper()
	states := make([]contract.State, 10)
	var all sync.WaitGroup
	for i := range states {
		all.Go(func() {
			id, by := key(fmt.Sprintf("c%d", i)), one
			if i%2 == 1 {
				by = other
			}
			record, err := by.Update(t.Context(), id, by.deciding(id, contract.Reserve))
			if err != nil {
				t.Errorf("reserve %s: %v", id.ID, err)
			}
			states[i] = record.State
		})
	}
	all.Wait()
	count := map[contract.State]int{}
	for _, state := range states {
		count[state]++
	}
	if count[contract.Reserved] != stock || count[contract.Rejected] != len(states)-stock || len(one.held(t).Holds) != stock {
		t.Errorf("states %v, %d holds", count, len(one.held(t).Holds))
	}
}

// count counts the contracts of a buyer, and those of all.
func count(t *testing.T, one, other contest) {
	t.Helper()
	another := contract.Key{Buyer: strings.Repeat("c", 52), ID: "x"}
	one.do(t, key("a"), contract.Reserve)
	one.do(t, key("b"), contract.Reserve, contract.Sign)
	one.do(t, key("over"), contract.Reserve, contract.Terminate)
	one.do(t, another, contract.Reserve)
	for buyer, want := range map[string]negotiation.Count{
		key("a").Buyer: {Open: 2, Kept: 3, Lapsed: 1, AllOpen: 3, AllKept: 4}, another.Buyer: {Open: 1, Kept: 1, AllOpen: 3, AllKept: 4},
		strings.Repeat("d", 52): {AllOpen: 3, AllKept: 4},
	} {
		count, err := other.Count(t.Context(), buyer)
		if (count.Bytes > 0) != (want.Kept > 0) || count.AllBytes < count.Bytes || count.AllBytes == 0 {
			t.Errorf("%.1s: %d bytes, of %d", buyer, count.Bytes, count.AllBytes)
		}
		if count.Bytes, count.AllBytes = 0, 0; count != want || err != nil {
			t.Errorf("%.1s: %+v, %v: want %+v", buyer, count, err, want)
		}
	}
}

// wait returns when the same process has written a newer version, and at once if there is one.
func wait(t *testing.T, one, _ contest) {
	t.Helper()
	before := one.do(t, key("x"), contract.Reserve)
	ctx, stop := context.WithTimeout(t.Context(), bound)
	defer stop()
	if err := one.Wait(ctx, key("x"), before.Version-1); err != nil {
		t.Fatalf("a newer one is there: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- one.Wait(ctx, key("x"), before.Version) }()
	one.do(t, key("y"), contract.Reserve) // Another contract's change is none.
	one.do(t, key("x"), contract.Sign)
	if err := <-done; err != nil {
		t.Errorf("wait for a change: %v", err)
	}
}

// waitEnds ends to wait with the context.
func waitEnds(t *testing.T, one, _ contest) {
	t.Helper()
	before := one.do(t, key("x"), contract.Reserve)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- one.Wait(ctx, key("x"), before.Version) }()
	one.do(t, key("y"), contract.Reserve)
	select {
	case err := <-done:
		t.Errorf("another contract has changed: %v", err)
	default:
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v", err)
	}
}

// cancelled writes nothing for who has gone away.
func cancelled(t *testing.T, one, other contest) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := one.Update(ctx, key("x"), one.deciding(key("x"), contract.Reserve)); !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v", err)
	}
	if record, err := other.Get(t.Context(), key("x")); record != nil || err != nil || len(other.held(t).Holds) != 0 {
		t.Errorf("stored %+v, %v", record, err)
	}
}

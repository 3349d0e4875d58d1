// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books_test

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
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
)

var (
	seller  = contract.Seller{ReserveFor: time.Minute, DecideFor: time.Hour}
	start   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	buyer   = strings.Repeat("a", 52)
	errKill = errors.New("killed")
)

// server is a client that fails from the write with the number dies on; 0 is never.
type server struct {
	client.Client

	// one lets one write happen at a time: the fake compares versions and writes in two steps, and an API server in one.
	one sync.Mutex

	mu     sync.Mutex
	writes int
	dies   int
	// watched is told each Sale that was written; nil tells nobody.
	watched func(sale *connectorv1alpha1.Sale)
}

// tell tells what was written.
func (s *server) tell(o client.Object, err error) error {
	if sale, is := o.(*connectorv1alpha1.Sale); is && err == nil && s.watched != nil {
		s.watched(sale.DeepCopy())
	}
	return err
}

// write counts a write, which happens if before is the last that does.
func (s *server) write() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.dies > 0 && s.writes >= s.dies {
		return errKill
	}
	return nil
}

func newServer(t *testing.T) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &server{}
	s.Client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&connectorv1alpha1.Sale{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := s.write(); err != nil {
					return err
				}
				s.one.Lock()
				defer s.one.Unlock()
				return s.tell(o, c.Create(ctx, o, opts...))
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if err := s.write(); err != nil {
					return err
				}
				s.one.Lock()
				defer s.one.Unlock()
				return s.tell(o, c.Update(ctx, o, opts...))
			},
			SubResourceUpdate: func(
				ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
			) error {
				if err := s.write(); err != nil {
					return err
				}
				s.one.Lock()
				defer s.one.Unlock()
				return s.tell(o, c.SubResource(sub).Update(ctx, o, opts...))
			},
		}).Build()
	return s
}

func newStore(t *testing.T, s *server) *books.Store {
	t.Helper()
	store, err := books.New(books.Config{Client: s, Reader: s})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func terms(id string) contract.Terms {
	return contract.Terms{
		ID: id, Buyer: buyer, Seller: strings.Repeat("b", 52), Revision: 1, Cluster: cluster.Identity{ID: "edge-id", Name: "edge"}, Offer: "o",
		OfferRevision: 1, OfferDigest: "sha256:0", Plan: "p",
		Resources: corev1.ResourceList{"cpu": resource.MustParse("1")}, Price: offertest.Price("1"),
		StartsAt: start, EndsAt: start.Add(time.Hour), Drain: time.Minute,
	}
}

// apply decides as the seller does, with three units for sale.
func apply(event contract.Event, id string) negotiation.Decide {
	return func(record *contract.Record, held ledger.Ledger) (contract.Result, error) {
		stock := int64(3)
		limits := ledger.Limits{Stock: &stock, Capacity: corev1.ResourceList{"cpu": resource.MustParse("100")}}
		t := terms(id)
		return seller.Apply(record, contract.Request{
			Event: event, Key: t.Key(), Terms: t, Verdict: contract.Accept, Signature: "s", Countersignature: "c",
		}, start, held, limits)
	}
}

// reader tells before each read.
type reader struct {
	client.Reader

	reading func()
}

func (r reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	r.reading()
	return r.Reader.Get(ctx, key, into, opts...)
}

// TestStore holds the books of two processes to what stores of negotiations promise.
func TestStore(t *testing.T) {
	negotiationtest.TestStore(t, func(t *testing.T, reading func()) [2]negotiation.Store {
		t.Helper()
		s := newServer(t)
		first, err := books.New(books.Config{Client: s, Reader: reader{s, reading}})
		if err != nil {
			t.Fatal(err)
		}
		return [2]negotiation.Store{first, newStore(t, s)}
	})
}

// TestUpdate writes a record and its hold, and reads what it has written.
func TestUpdate(t *testing.T) {
	s := newServer(t)
	store := newStore(t, s)
	key := terms("x").Key()
	if record, err := store.Get(t.Context(), key); record != nil || err != nil {
		t.Fatalf("a contract that nobody made: %v, %v", record, err)
	}
	if _, err := store.Update(t.Context(), key, apply(contract.Peered, "x")); !errors.Is(err, contract.ErrUnknown) {
		t.Fatalf("an unknown contract: %v", err)
	}
	written, err := store.Update(t.Context(), key, apply(contract.Reserve, "x"))
	if err != nil || written.State != contract.Reserved {
		t.Fatalf("reserve: %v, %v", written.State, err)
	}
	read, err := store.Get(t.Context(), key)
	if err != nil || read == nil || read.Version != written.Version || !read.Terms.Equal(written.Terms) || !read.Until.Equal(written.Until) {
		t.Fatalf("read %+v, %v: want %+v", read, err, written)
	}
	held, err := store.Ledger(t.Context())
	if err != nil || len(held.Holds) != 1 || !held.Holds[0].Until.Equal(written.Until) {
		t.Fatalf("ledger: %+v, %v", held, err)
	}
	before := s.writes
	if _, err := store.Update(t.Context(), key, apply(contract.Reserve, "x")); err != nil || s.writes != before {
		t.Fatalf("the same again: %d writes, %v", s.writes-before, err)
	}
	var sale connectorv1alpha1.Sale
	if err := s.Get(t.Context(), client.ObjectKey{Name: books.Name(key)}, &sale); err != nil {
		t.Fatal(err)
	}
	if sale.Status.State != "Reserved" || sale.Status.Offer != "o" || len(sale.Finalizers) != 1 || sale.Status.Resources.Cpu().Value() != 1 {
		t.Fatalf("sale: %+v", sale)
	}
	if _, err := store.Update(t.Context(), key, apply(contract.Terminate, "x")); err != nil {
		t.Fatal(err)
	}
	if held, err := store.Ledger(t.Context()); err != nil || len(held.Holds) != 0 {
		t.Fatalf("ledger after the end: %+v, %v", held, err)
	}
}

// TestSuperseded shows people which terms counted before, from when those in force do, and until when is paid.
func TestSuperseded(t *testing.T) {
	s := newServer(t)
	store := newStore(t, s)
	key, changed := terms("x").Key(), start.Add(10*time.Minute)
	do := func(event contract.Event, revision, cpus int64, at time.Time) connectorv1alpha1.Sale {
		t.Helper()
		wanted := terms("x")
		wanted.OfferDigest = fmt.Sprint("digest of ", revision)
		wanted.Revision, wanted.Resources = revision, corev1.ResourceList{"cpu": *resource.NewQuantity(cpus, resource.DecimalSI)}
		if event == contract.Confirm {
			wanted.EffectiveAt = at
		}
		request := contract.Request{Event: event, Key: key, Terms: wanted, Verdict: contract.Accept, Signature: "s", Countersignature: "c"}
		request.Documents = map[string]string{
			offer.TermsURL: fmt.Sprint("https://seller.example/", revision), offer.SLAURL: strings.Repeat("x", 254), // It is too long.
		}
		if _, err := store.Update(t.Context(), key, func(record *contract.Record, held ledger.Ledger) (contract.Result, error) {
			return seller.Apply(record, request, at, held, ledger.Limits{Capacity: corev1.ResourceList{"cpu": resource.MustParse("100")}})
		}); err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		var sale connectorv1alpha1.Sale
		if err := s.Get(t.Context(), client.ObjectKey{Name: books.Name(key)}, &sale); err != nil {
			t.Fatal(err)
		}
		return sale
	}
	for _, event := range []contract.Event{contract.Reserve, contract.Sign, contract.Grant, contract.Peered} {
		do(event, 1, 1, start)
	}
	if of := do(contract.Resize, 2, 2, changed).Status.Documents; len(of) != 1 || of[offer.TermsURL] != "https://seller.example/1" {
		t.Errorf("while other terms are asked for, people are shown %v", of)
	}
	status := do(contract.Confirm, 2, 2, changed).Status
	if was := status.Superseded; len(was) != 1 || was[0].Revision != 1 || was[0].Resources.Cpu().Value() != 1 ||
		!was[0].EffectiveTime.Time.Equal(start) ||
		status.Resources.Cpu().Value() != 2 || !status.EffectiveTime.Time.Equal(changed) || !status.PaidUntilTime.Equal(status.EndTime) {
		t.Errorf("another size: %+v", status)
	}
	if of := status.Documents; len(of) != 1 || of[offer.TermsURL] != "https://seller.example/2" {
		t.Errorf("with other terms, people are shown %v", of)
	}
	ended := changed.Add(time.Minute)
	if status = do(contract.Terminate, 2, 2, ended).Status; !status.PaidUntilTime.Time.Equal(ended) {
		t.Errorf("ended at %s, and paid until %s", ended, status.PaidUntilTime)
	}
}

// TestKill kills the process before each write: what is stored holds what the record needs, and the same requests lead to the same end.
func TestKill(t *testing.T) {
	for dies := 1; ; dies++ {
		s := newServer(t)
		store := newStore(t, s)
		key := terms("x").Key()
		killed := false
		for _, event := range []contract.Event{
			contract.Reserve, contract.Sign, contract.Grant, contract.Terminate, contract.Drained, contract.Withdrawn,
		} {
			if !killed {
				s.dies = dies
			}
			_, err := store.Update(t.Context(), key, apply(event, "x"))
			if errors.Is(err, errKill) {
				s.dies, killed = 0, true
				covered(t, store, key)
				_, err = newStore(t, s).Update(t.Context(), key, apply(event, "x"))
			}
			if err != nil {
				t.Fatalf("killed at write %d: %s: %v", dies, event, err)
			}
		}
		record, err := store.Get(t.Context(), key)
		held, lost := store.Ledger(t.Context())
		if err != nil || lost != nil || record.State != contract.Ended || !record.Withdrawn || len(held.Holds) != 0 {
			t.Fatalf("killed at write %d: %+v, %+v, %v, %v", dies, record, held, err, lost)
		}
		if !killed {
			if dies < 10 {
				t.Fatalf("only %d writes were killed", dies-1)
			}
			return
		}
	}
}

// covered fails if the ledger lacks what a stored record needs.
func covered(t *testing.T, store *books.Store, key contract.Key) {
	t.Helper()
	record, err := store.Get(t.Context(), key)
	held, lost := store.Ledger(t.Context())
	if err != nil || lost != nil {
		t.Fatal(err, lost)
	}
	if _, has := held.Get(key); !has && record != nil && (!record.State.Final() || record.Duty() == contract.WithdrawDuty) {
		t.Fatalf("contract in state %s holds nothing", record.State)
	}
}

// TestConcurrent sells three units to ten that want one at once, by two processes.
func TestConcurrent(t *testing.T) {
	s := newServer(t)
	stores := []*books.Store{newStore(t, s), newStore(t, s)}
	states := make([]contract.State, 10)
	var all sync.WaitGroup
	for i := range states {
		all.Go(func() {
			id := fmt.Sprintf("c%d", i)
			record, err := stores[i%2].Update(t.Context(), contract.Key{Buyer: buyer, ID: id}, apply(contract.Reserve, id))
			if err != nil {
				t.Errorf("reserve %s: %v", id, err)
			}
			states[i] = record.State
		})
	}
	all.Wait()
	count := map[contract.State]int{}
	for _, state := range states {
		count[state]++
	}
	if count[contract.Reserved] != 3 || count[contract.Rejected] != 7 {
		t.Fatalf("states: %v", count)
	}
	if held, err := stores[0].Ledger(t.Context()); err != nil || len(held.Holds) != 3 {
		t.Fatalf("ledger: %+v, %v", held, err)
	}
}

// TestUnreadable writes nothing over what cannot be read.
func TestUnreadable(t *testing.T) {
	s := newServer(t)
	store := newStore(t, s)
	key := terms("x").Key()
	if _, err := store.Update(t.Context(), key, apply(contract.Reserve, "x")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"NoJSON": "?", "Another": `{"key":{"buyer":"b","id":"x"},"version":1,"state":"Active"}`, "Large": strings.Repeat(" ", 256<<10+1),
	} {
		t.Run(name, func(t *testing.T) {
			var sale connectorv1alpha1.Sale
			if err := s.Get(t.Context(), client.ObjectKey{Name: books.Name(key)}, &sale); err != nil {
				t.Fatal(err)
			}
			sale.Status.Record = text
			if err := s.Status().Update(t.Context(), &sale); err != nil {
				t.Fatal(err)
			}
			before := s.writes
			if _, err := store.Update(t.Context(), key, apply(contract.Sign, "x")); !errors.Is(err, books.ErrUnreadable) || s.writes != before {
				t.Fatalf("%d writes, %v", s.writes-before, err)
			}
		})
	}
}

// TestAnotherContract writes nothing over a Sale that has the name of a contract and is of another one.
func TestAnotherContract(t *testing.T) {
	s := newServer(t)
	key := terms("x").Key()
	sale := &connectorv1alpha1.Sale{Spec: connectorv1alpha1.SaleSpec{Buyer: connectorv1alpha1.PartyID(buyer), ContractID: "y"}}
	sale.Name = books.Name(key)
	if err := s.Create(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	if _, err := newStore(t, s).Get(t.Context(), key); !errors.Is(err, books.ErrUnreadable) {
		t.Errorf("read: %v", err)
	}
	before := s.writes
	if _, err := newStore(t, s).Update(t.Context(), key, apply(contract.Reserve, "x")); !errors.Is(err, books.ErrUnreadable) ||
		s.writes != before {
		t.Errorf("%d writes, %v", s.writes-before, err)
	}
}

// TestWait waits for a change, and not longer than its context.
func TestWait(t *testing.T) {
	store := newStore(t, newServer(t))
	key := terms("x").Key()
	written, err := store.Update(t.Context(), key, apply(contract.Reserve, "x"))
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.Wait(ended, key, written.Version); !errors.Is(err, context.Canceled) {
		t.Fatalf("wait with a context that has ended: %v", err)
	}
	done := make(chan error, 1)
	bounded, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	go func() { done <- store.Wait(bounded, key, written.Version) }()
	if _, err := store.Update(t.Context(), key, apply(contract.Sign, "x")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatalf("wait for a change: %v", err)
	}
}

// TestTidy removes reservations that have lapsed, and holds of contracts that are not stored.
func TestTidy(t *testing.T) {
	s := newServer(t)
	store := newStore(t, s)
	for _, id := range []string{"gone", "kept"} {
		for _, event := range []contract.Event{contract.Reserve, contract.Sign} {
			if _, err := store.Update(t.Context(), terms(id).Key(), apply(event, id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := store.Update(t.Context(), terms("lapsed").Key(), apply(contract.Reserve, "lapsed")); err != nil {
		t.Fatal(err)
	}
	var sale connectorv1alpha1.Sale
	if err := s.Get(t.Context(), client.ObjectKey{Name: books.Name(terms("gone").Key())}, &sale); err != nil {
		t.Fatal(err)
	}
	sale.Finalizers = nil
	if err := errors.Join(s.Update(t.Context(), &sale), s.Delete(t.Context(), &sale)); err != nil {
		t.Fatal(err)
	}
	if err := store.Tidy(t.Context(), start.Add(time.Minute), time.Hour); err != nil {
		t.Fatal(err)
	}
	held, err := store.Ledger(t.Context())
	if err != nil || len(held.Holds) != 1 || held.Holds[0].Key.ID != "kept" {
		t.Fatalf("ledger: %+v, %v", held, err)
	}
}

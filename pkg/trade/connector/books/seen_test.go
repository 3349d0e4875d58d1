// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
)

// counting counts what is read from an API server.
type counting struct {
	client.Reader

	reads atomic.Int64
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	c.reads.Add(1)
	return c.Reader.Get(ctx, key, into, opts...)
}

func (c *counting) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	c.reads.Add(1)
	return c.Reader.List(ctx, into, opts...)
}

// watched returns a store that watches, and the informer that shows it Sales.
func watched(tb testing.TB, s *server, reader client.Reader) (*books.Store, *controllertest.FakeInformer) {
	tb.Helper()
	store, err := books.New(books.Config{Client: s, Reader: reader})
	if err != nil {
		tb.Fatal(err)
	}
	informers := &informertest.FakeInformers{Scheme: s.Scheme()}
	if err := store.Watch(tb.Context(), informers); err != nil {
		tb.Fatal(err)
	}
	informer, err := informers.FakeInformerFor(tb.Context(), &connectorv1alpha1.Sale{})
	if err != nil {
		tb.Fatal(err)
	}
	informer.Synced = true
	return store, informer
}

// TestStoreThatWatches holds the books of two processes that watch to what stores of negotiations promise.
func TestStoreThatWatches(t *testing.T) {
	negotiationtest.TestStore(t, func(t *testing.T, reading func()) [2]negotiation.Store {
		t.Helper()
		s := newServer(t)
		one, first := watched(t, s, reader{s, reading})
		other, second := watched(t, s, s)
		s.watched = func(sale *connectorv1alpha1.Sale) {
			first.Update(nil, sale)
			second.Update(nil, sale)
		}
		return [2]negotiation.Store{one, other}
	})
}

// TestSeen asks nobody for what this process has written or a watch has shown, and believes the newer one.
func TestSeen(t *testing.T) {
	s := newServer(t)
	reads := &counting{Reader: s}
	store, informer := watched(t, s, reads)
	other := newStore(t, s)
	key := terms("x").Key()
	sale := func() *connectorv1alpha1.Sale {
		t.Helper()
		var stored connectorv1alpha1.Sale
		if err := s.Get(t.Context(), client.ObjectKey{Name: books.Name(key)}, &stored); err != nil {
			t.Fatal(err)
		}
		return &stored
	}
	do := func(by *books.Store, event contract.Event) contract.Record {
		t.Helper()
		record, err := by.Update(t.Context(), key, apply(event, "x"))
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	is := func(what string, want contract.Record, knows bool, count negotiation.Count) {
		t.Helper()
		before := reads.reads.Load()
		if recent, knew := store.Recent(key); knew != knows || knows && recent.Version != want.Version {
			t.Errorf("%s: knows %t, version %d, want version %d", what, knew, recent.Version, want.Version)
		}
		got, err := store.Count(t.Context(), buyer)
		if (got.Bytes > 0) != (count.Kept > 0) || got.AllBytes != got.Bytes {
			t.Errorf("%s: counts %d bytes, of %d", what, got.Bytes, got.AllBytes)
		}
		if got.Bytes, got.AllBytes = 0, 0; err != nil || got != count {
			t.Errorf("%s: counts %+v, %v, want %+v", what, got, err, count)
		}
		if knows {
			if err := store.Wait(t.Context(), key, want.Version-1); err != nil {
				t.Errorf("%s: wait for what is there: %v", what, err)
			}
		}
		if asked := reads.reads.Load() - before; asked != 0 {
			t.Errorf("%s: the API server was asked %d times", what, asked)
		}
	}
	one := negotiation.Count{Open: 1, Kept: 1, AllOpen: 1, AllKept: 1}
	is("nothing", contract.Record{}, false, negotiation.Count{})
	wrote := do(store, contract.Reserve)
	is("written and not shown yet", wrote, true, one)
	before := sale()
	wrote = do(store, contract.Sign)
	informer.Add(before)
	is("an older one is shown", wrote, true, one)

	// Another process changes it. It is seen when the watch shows it.
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- store.Wait(ctx, key, wrote.Version) }()
	next := do(other, contract.Grant)
	is("another process has written", wrote, true, one)
	informer.Update(nil, sale())
	if err := <-done; err != nil {
		t.Errorf("wait for another process: %v", err)
	}
	is("another process has written, and it is shown", next, true, one)

	do(store, contract.Terminate)
	wrote = do(store, contract.Drained)
	is("over", wrote, false, negotiation.Count{Kept: 1, AllKept: 1})
	informer.Delete(sale())
	is("gone", wrote, false, negotiation.Count{})
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
)

// TestBooks holds the books of two sellers on a real API server to what those on a fake one promise: nothing is sold twice. No connector
// may run on the cluster, which would do something with the contracts.
func TestBooks(t *testing.T) {
	on := fed.Broker
	// One of an earlier run on this lab ends; TestResell has it run again.
	if _, err := on.Kubectl(t.Context(), "delete", "deployment", "--namespace=liqo-broker-connector", "--ignore-not-found",
		"--cascade=foreground",
		"liqo-broker-connector"); err != nil {
		t.Fatal(err)
	}
	if _, err := on.Kubectl(t.Context(), "apply", "--server-side", "--kustomize=../../deploy/connector/crds"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { forget(t, context.WithoutCancel(t.Context())) })
	negotiationtest.TestStore(t, func(t *testing.T, reading func()) [2]negotiation.Store {
		t.Helper()
		forget(t, t.Context())
		var both [2]negotiation.Store
		for i, reader := range []client.Reader{telling{on, reading}, on} {
			store, err := books.New(books.Config{Client: on, Reader: reader})
			if err != nil {
				t.Fatal(err)
			}
			both[i] = store
		}
		return both
	})
}

// telling tells before each read.
type telling struct {
	client.Reader

	reading func()
}

func (r telling) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	r.reading()
	return r.Reader.Get(ctx, key, into, opts...)
}

// forget removes all sales and the ledger of the broker's cluster.
func forget(t *testing.T, ctx context.Context) {
	t.Helper()
	var sales connectorv1alpha1.SaleList
	eventually(t, time.Minute, func(context.Context) error { return fed.Broker.List(ctx, &sales) }) // The kinds are there a moment later.
	for i := range sales.Items {
		sale := &sales.Items[i]
		before := client.MergeFrom(sale.DeepCopy())
		sale.Finalizers = nil
		if err := fed.Broker.Patch(ctx, sale, before); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []client.Object{&connectorv1alpha1.Sale{}, &connectorv1alpha1.SalesLedger{}} {
		if err := fed.Broker.DeleteAllOf(ctx, of); err != nil {
			t.Fatal(err)
		}
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// BenchmarkNegotiation negotiates from a quote to a contract with both signatures, over TLS on loopback, and the seller writes it into the
// books of a cluster. It reports how long that takes at most in 50 and in 99 of 100 cases. The API server is a fake, which does not keep
// who manages which field: a real one adds its writes.
func BenchmarkNegotiation(b *testing.B) {
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&connectorv1alpha1.Sale{}).WithObjectTracker(tracker).Build()
	store, err := books.New(books.Config{Client: api, Reader: api})
	if err != nil {
		b.Fatal(err)
	}
	s := open(b, func(cfg *negotiation.Config) {
		cfg.Store = store
		const many = 1 << 30
		limits := &cfg.Limits
		for _, limit := range []*int{
			&limits.PerSecond, &limits.AtOnce, &limits.NewPerMinute, &limits.NewAtOnce, &limits.Open, &limits.Kept, &limits.Lapsed, &limits.AllOpen,
			&limits.AllKept, &limits.Bytes, &limits.AllBytes,
		} {
			*limit = many
		}
	})
	buyer := newParty(b)
	c := s.client(b, buyer)
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		_, request := buy(b, c, buyer, fmt.Sprintf("c%d", len(took)))
		took = append(took, time.Since(begin))
		b.StopTimer()
		// It ends, and is forgotten, so that the next one meets the same books.
		for _, event := range []contract.Event{contract.Terminate, contract.Drained} {
			if _, err := c.Do(b.Context(), contract.Request{Event: event, Key: request.Key}); err != nil {
				b.Fatal(err)
			}
		}
		seller := negotiation.Applier{
			Store: store, Offers: s, Seller: contract.Seller{ReserveFor: time.Minute, DecideFor: time.Hour}, Clock: clock.RealClock{},
		}
		withdrawn := func(*contract.Record) contract.Request { return contract.Request{Event: contract.Withdrawn} }
		if record, err := seller.Apply(b.Context(), request.Key, withdrawn); err != nil || !record.Withdrawn {
			b.Fatalf("withdraw: %+v, %v", record, err)
		}
		sale := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: books.Name(request.Key)}}
		if err := api.Get(b.Context(), client.ObjectKeyFromObject(sale), sale); err != nil {
			b.Fatal(err)
		}
		sale.Finalizers = nil // Else it stays, and the books grow.
		if err := errors.Join(api.Update(b.Context(), sale), api.Delete(b.Context(), sale)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	slices.Sort(took)
	for _, percent := range []int{50, 99} {
		b.ReportMetric(float64(took[(len(took)-1)*percent/100])/float64(time.Millisecond), fmt.Sprintf("p%d-ms", percent))
	}
}

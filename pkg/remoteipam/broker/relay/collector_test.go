// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/inventory"
)

// freed is an IPAM that remembers what was freed.
type freed map[string]bool

func (freed) MapRelay(context.Context, cluster.ID, netip.Addr) (netip.Addr, error) {
	return netip.Addr{}, errors.New("not asked for in this test")
}

func (f freed) UnmapRelay(_ context.Context, consumer cluster.ID, address netip.Addr) error {
	f[string(consumer)+" "+address.String()] = true
	return nil
}

// newStore returns an inventory with one provider and a twin namespace of the consumer.
func newStore(t *testing.T) *inventory.Store {
	t.Helper()
	view, err := addressing.NewView("10.200.0.0/16", "10.90.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	store := inventory.NewStore()
	external, err := addressing.NewView("10.210.0.0/16", "10.91.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	store.SetPeer("provider", addressing.Peer{Pods: view, External: external})
	store.SetTwin("shop", consumer)
	return store
}

func TestCollector(t *testing.T) {
	const text = "10.90.0.13"
	address := netip.MustParseAddr(text)
	nothing := func(*inventory.Store) {}
	cases := map[string]struct {
		reason  string
		mapped  string
		prepare func(*inventory.Store)
		// between runs after the collector looked for the first time.
		between func(*inventory.Store)
		wait    time.Duration
		want    bool
	}{
		"Gone": {reason: "the pod is gone for longer than the grace", mapped: text, prepare: nothing, between: nothing, wait: grace, want: true},
		"JustGone": {reason: "a pod that is recreated may get the address back", mapped: text, prepare: nothing, between: nothing,
			wait: grace - time.Second},
		"InUse": {
			reason: "the pod is there", mapped: text, prepare: func(s *inventory.Store) { s.SetPod("shop", "web", address) }, between: nothing,
			wait: time.Hour,
		},
		"Back": {reason: "the pod came back in time", mapped: text, prepare: nothing,
			between: func(s *inventory.Store) { s.SetPod("shop", "web", address) }, wait: time.Hour},
		"OthersPod": {reason: "the address passed to another consumer's pod: no grace", mapped: text,
			prepare: func(s *inventory.Store) { s.SetPod("other", "web", address) }, between: nothing, want: true},
		"Endpoint": {reason: "a Service that is reflected there has this endpoint", mapped: text, between: nothing, wait: time.Hour,
			prepare: func(s *inventory.Store) { s.SetEndpoints("own", "web-abcde", []netip.Addr{address}) }},
		"EndpointOfOthersPod": {reason: "so may another consumer's pod be, on two providers that reach each other", mapped: text,
			between: nothing, wait: time.Hour,
			prepare: func(s *inventory.Store) {
				s.SetPod("other", "web", address)
				s.SetEndpoints("own", "web-abcde", []netip.Addr{address})
			}},
		"EndpointElsewhere": {reason: "a namespace that does not go there is none of its business", mapped: text, between: nothing,
			wait: grace, want: true, prepare: func(s *inventory.Store) { s.SetEndpoints("other", "web-abcde", []netip.Addr{address}) }},
		"EndpointGone": {reason: "the Service lost the endpoint", mapped: text, wait: grace, want: true,
			prepare: func(s *inventory.Store) { s.SetEndpoints("own", "web-abcde", []netip.Addr{address}) },
			between: func(s *inventory.Store) { s.SetEndpoints("own", "web-abcde", nil) }},
		"Service": {reason: "a pod in a namespace that goes there calls its API server at it", mapped: "10.91.0.13", between: nothing,
			wait: time.Hour, prepare: func(s *inventory.Store) { s.SetAliases("own", "web", []netip.Addr{netip.MustParseAddr("10.91.0.13")}) }},
		"ServiceElsewhere": {reason: "no pod that calls it goes there", mapped: "10.91.0.13", between: nothing, wait: serviceGrace, want: true,
			prepare: func(s *inventory.Store) {
				s.SetAliases("other", "web", []netip.Addr{netip.MustParseAddr("10.91.0.13")})
			}},
		"ServiceGone": {reason: "the last pod that called it is gone for long", mapped: "10.91.0.13", wait: serviceGrace, want: true,
			prepare: func(s *inventory.Store) { s.SetAliases("own", "web", []netip.Addr{netip.MustParseAddr("10.91.0.13")}) },
			between: func(s *inventory.Store) { s.SetAliases("own", "web", nil) }},
		"ServiceJustGone": {reason: "another pod may be about to call it", mapped: "10.91.0.13", prepare: nothing, between: nothing,
			wait: serviceGrace - time.Second},
		"NoProvider": {
			reason: "addresses outside of the providers' prefixes are Liqo's own business", mapped: "10.80.0.1", prepare: nothing, between: nothing,
			wait: time.Hour,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v09.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			nat := &v09.NatMapping{ObjectMeta: metav1.ObjectMeta{Name: "nat"}}
			nat.Spec.ClusterID = string(consumer)
			nat.Spec.ClusterMappings = map[string]string{tc.mapped: "10.202.0.1"}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(nat).Build()
			store := newStore(t)
			store.SetTwin("other", "another")
			store.SetOffloaded(consumer, []string{"own"})
			tc.prepare(store)

			got, known, clock := freed{}, make(chan struct{}), testingclock.NewFakePassiveClock(time.Unix(0, 0))
			collector := NewCollector(NewAllocator(got, store, NatMappings{api}, NatMappings{api}, DefaultLimit), api, known, clock)
			look := func() {
				t.Helper()
				if _, err := collector.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(nat)}); err != nil {
					t.Fatal(err)
				}
			}
			look()
			if len(got) != 0 {
				t.Fatalf("freed %v before the pods were known", got)
			}
			close(known)
			look()
			tc.between(store)
			look()
			clock.SetTime(clock.Now().Add(tc.wait))
			look()
			if got[string(consumer)+" "+tc.mapped] != tc.want {
				t.Errorf("%s: freed %v, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

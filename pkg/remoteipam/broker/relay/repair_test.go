// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/inventory"
)

const (
	consumer = cluster.ID("consumer")
	neighbor = cluster.ID("neighbor") // Another peer, to which Services are reflected.
	leaving  = cluster.ID("leaving")  // A peer whose peering ends.

	bits = 24 // Of the external CIDR.
)

// broker is the IPAM of Liqo with an allocator, and the relay addresses that it gave out.
type broker struct {
	t         *testing.T
	state     *liqotest.IPAMState
	ipam      *liqotest.IPAM
	store     *inventory.Store
	cache     late
	allocator *Allocator
	held      map[netip.Addr]netip.Addr
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	peers := []cluster.ID{consumer, neighbor, leaving}
	b := &broker{t: t, state: liqotest.NewIPAMState(t, peers...), store: newStore(t), held: map[netip.Addr]netip.Addr{}}
	b.store.SetOffloaded(neighbor, []string{"shop"})
	b.start(peers...)
	return b
}

// start starts the IPAM, perhaps again.
func (b *broker) start(peers ...cluster.ID) {
	b.t.Helper()
	b.ipam = liqotest.StartIPAM(b.t, b.state, bits, peers...)
	b.allocator = NewAllocator(b.ipam, b.store, NatMappings{&b.cache}, NatMappings{b.state.NatMappings()}, DefaultLimit)
}

// late is a cache: it has what was so when it was filled.
type late struct {
	client.Reader

	mappings v09.NatMappingList
}

func (l *late) fill(ctx context.Context, from client.Reader) error {
	return from.List(ctx, &l.mappings)
}

// List implements client.Reader.
func (l *late) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.mappings.DeepCopyInto(list.(*v09.NatMappingList))
	return nil
}

func pod(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 90, 0, byte(n)}) }

// come makes a pod of the consumer, which takes longer than what the cache is late.
func (b *broker) come(n int) {
	b.t.Helper()
	if err := b.cache.fill(b.t.Context(), b.state.NatMappings()); err != nil {
		b.t.Fatal(err)
	}
	b.store.SetPod("shop", fmt.Sprint(n), pod(n))
}

// ask asks for the relay address of a pod, which must not change while the pod is there.
func (b *broker) ask(n int) error {
	got, err := b.allocator.MapRelay(b.t.Context(), consumer, pod(n))
	if err != nil {
		delete(b.held, pod(n))
		return err
	}
	if had := b.held[pod(n)]; had.IsValid() && had != got {
		b.t.Errorf("pod %s was at %s and is at %s now", pod(n), had, got)
	}
	b.held[pod(n)] = got
	return nil
}

// mustAsk does so and takes no refusal.
func (b *broker) mustAsk(pods ...int) {
	b.t.Helper()
	for _, n := range pods {
		if err := b.ask(n); err != nil {
			b.t.Errorf("ask for pod %d: %v", n, err)
		}
	}
}

// leave removes a pod and frees its address.
func (b *broker) leave(n int) {
	b.t.Helper()
	b.store.SetPod("shop", fmt.Sprint(n), netip.Addr{})
	delete(b.held, pod(n))
	if _, err := b.allocator.free(b.t.Context(), consumer, pod(n), false); err != nil {
		b.t.Error(err)
	}
}

// meanwhile ends a peering, and does something before Liqo has written that down.
func (b *broker) meanwhile(do func()) {
	b.t.Helper()
	b.state.BeforeRecord = func() {
		b.state.BeforeRecord = nil
		do()
	}
	if err := b.ipam.EndPeering(leaving); err != nil {
		b.t.Fatal(err)
	}
}

// reach has the IPAM lead a cluster to an address, as Liqo's virtual kubelets do.
func (b *broker) reach(target cluster.ID, address netip.Addr) {
	b.t.Helper()
	if _, err := b.ipam.MapRelay(b.t.Context(), target, address); err != nil {
		b.t.Fatal(err)
	}
	b.store.SetEndpoints("shop", address.String(), []netip.Addr{address})
}

// unreach ends that.
func (b *broker) unreach(target cluster.ID, address netip.Addr) {
	b.t.Helper()
	b.store.SetEndpoints("shop", address.String(), nil)
	if err := b.ipam.UnmapRelay(b.t.Context(), target, address); err != nil {
		b.t.Fatal(err)
	}
}

// check demands that each address that was given out leads to its pod alone.
func (b *broker) check() {
	b.t.Helper()
	for address, relay := range b.held {
		behind, err := b.allocator.live.Behind(b.t.Context(), consumer, relay)
		if err != nil {
			b.t.Fatal(err)
		}
		if !leadsTo(behind, address) {
			b.t.Errorf("the relay address %s of pod %s leads to %s", relay, address, behind)
		}
	}
}

// TestRepair has Liqo's IPAM lose writes when a peering ends. After each story all pods
// must have addresses that lead to them, and those that come later too.
func TestRepair(t *testing.T) {
	// restarted has the pod back, and Liqo's network manager started again with a record that it still had the address.
	restarted := func(b *broker) {
		b.meanwhile(func() { b.leave(1) })
		b.start(consumer, neighbor)
		b.come(1)
		b.mustAsk(1)
	}
	// goneForBoth leaves a record that has a pod for the consumer and the neighbor.
	goneForBoth := func(b *broker) {
		b.reach(neighbor, pod(1))
		b.meanwhile(func() {
			b.leave(1)
			b.unreach(neighbor, pod(1))
		})
	}
	cases := map[string]struct {
		reason string
		story  func(b *broker)
		// refused is a pod that gets no address; zero for none.
		refused int
	}{
		"FreedMeanwhile": {reason: "The address of a pod that went is still in the record, and another pod has it.", story: func(b *broker) {
			b.meanwhile(func() { b.leave(1) })
			b.come(3)
			b.mustAsk(3)
			b.come(1)
		}},
		"NotThereAnyMore": {reason: "The same, and nobody has it: it leads nowhere.", story: func(b *broker) {
			b.meanwhile(func() { b.leave(1) })
			b.come(1)
		}},
		"MappedMeanwhile": {reason: "The address of a new pod is not in the record.", story: func(b *broker) {
			b.come(3)
			b.meanwhile(func() { b.mustAsk(3) })
			delete(b.held, pod(3)) // It may get another one.
		}},
		"Restarted": {reason: "Liqo's network manager started again with such a record: two pods are in the NatMapping.", story: func(b *broker) {
			restarted(b)
			b.come(3)
			b.mustAsk(3)
		}},
		"LeftBehind": {reason: "The same, and the older pod is gone: it makes way.", story: func(b *broker) {
			b.meanwhile(func() { b.leave(1) })
			b.start(consumer, neighbor)
			b.come(3)
			b.mustAsk(3)
		}},
		"EndpointToo": {reason: "And a Service leads a neighbor to the older one.", story: func(b *broker) {
			restarted(b)
			b.reach(neighbor, pod(1))
			b.come(3)
			b.mustAsk(3)
		}},
		"FreedForAll": {reason: "Both had it, and only the record says so.", story: func(b *broker) {
			goneForBoth(b)
			b.come(3)
			b.mustAsk(3)
			b.come(1)
		}},
		"FreedForNeighbor": {reason: "The same, and the older pod is the one of which the record is wrong.", story: func(b *broker) {
			goneForBoth(b)
			b.come(1)
			if _, err := b.ipam.MapRelay(b.t.Context(), consumer, pod(1)); err != nil {
				b.t.Fatal(err)
			}
			b.come(3)
			b.mustAsk(3)
		}},
		"NewEndpoint": {reason: "A Service leads a neighbor to the newer one, by the address that it would have to give up.",
			story: func(b *broker) {
				restarted(b)
				b.come(3)
				b.reach(neighbor, pod(3))
			}, refused: 3},
		"OwnMapping": {reason: "Liqo itself leads to an API server with it.", story: func(b *broker) {
			b.meanwhile(func() { b.leave(1) })
			b.reach(consumer, netip.MustParseAddr("10.80.0.1"))
			b.come(1)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t)
			b.come(1)
			b.come(2)
			b.mustAsk(1, 2)
			tc.story(b)
			for n := 1; n <= 6; n++ {
				b.come(n)
				if err := b.ask(n); (n == tc.refused) != errors.Is(err, ErrTaken) || err != nil && n != tc.refused {
					t.Errorf("%s: pod %d: got %v", tc.reason, n, err)
				}
			}
			b.check()
			for n := 1; n <= 3; n++ {
				b.leave(n)
			}
			for n := 7; n <= 12; n++ {
				b.come(n)
				b.mustAsk(n)
			}
			b.check()
		})
	}
}

// TestForgotten checks that the address of a pod that is gone leads nowhere, also when
// the IPAM has forgotten it.
func TestForgotten(t *testing.T) {
	b := newBroker(t)
	b.come(1)
	b.meanwhile(func() { b.mustAsk(1) })
	b.store.SetPod("shop", "1", netip.Addr{})

	known := make(chan struct{})
	close(known)
	began := time.Unix(0, 0)
	clock := testingclock.NewFakePassiveClock(began)
	collector := NewCollector(b.allocator, b.state.NatMappings(), known, clock)
	left := true
	for range 4 {
		if _, err := collector.Reconcile(t.Context(),
			reconcile.Request{NamespacedName: client.ObjectKey{Name: liqotest.NatMappingOf(consumer)}}); err != nil {
			t.Fatal(err)
		}
		clock.SetTime(clock.Now().Add(grace))
		of, err := b.allocator.live.Of(t.Context(), pod(1))
		if err != nil {
			t.Fatal(err)
		}
		left = of[consumer].IsValid()
	}
	if left {
		t.Errorf("pod 1 is gone for %s, and its address leads there", clock.Since(began))
	}
}

// counted counts the calls of an IPAM.
type counted struct {
	IPAM

	mapped, unmapped int
}

func (c *counted) MapRelay(ctx context.Context, target cluster.ID, address netip.Addr) (netip.Addr, error) {
	c.mapped++
	return c.IPAM.MapRelay(ctx, target, address)
}

func (c *counted) UnmapRelay(ctx context.Context, target cluster.ID, address netip.Addr) error {
	c.unmapped++
	return c.IPAM.UnmapRelay(ctx, target, address)
}

// TestNothingToRepair checks what it costs that things may be wrong.
func TestNothingToRepair(t *testing.T) {
	b := newBroker(t)
	ipam := &counted{IPAM: b.ipam}
	b.allocator.ipam = ipam
	b.come(1)
	b.come(2)
	b.mustAsk(1, 2, 1)
	if ipam.mapped != 3 || ipam.unmapped != 0 {
		t.Errorf("for two new pods, one of them twice, the IPAM mapped %d addresses and unmapped %d, want 3 and 0", ipam.mapped, ipam.unmapped)
	}
}

// TestOwnPod checks that a pod on the broker's cluster, for which Liqo writes no
// NatMapping, has the address that it has for all.
func TestOwnPod(t *testing.T) {
	b := newBroker(t)
	address := netip.MustParseAddr("10.201.0.5")
	b.store.SetPod("shop", "own", address)
	if got, err := b.allocator.MapRelay(t.Context(), consumer, address); err != nil || got != address {
		t.Errorf("got %s, %v, want %s", got, err, address)
	}
}

// TestNoMapping checks that no address is handed out that the gateway does not know.
func TestNoMapping(t *testing.T) {
	b := newBroker(t)
	b.allocator.cached, b.allocator.live = NatMappings{&late{}}, NatMappings{&late{}}
	b.come(1)
	if err := b.ask(1); !errors.Is(err, ErrTaken) {
		t.Errorf("got %v, want ErrTaken", err)
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// anyPod is an inventory in which all have all pods of this cluster.
type anyPod struct{ Pods }

func (anyPod) HasPod(cluster.ID, netip.Addr) bool { return true }
func (anyPod) IsPeerAddress(netip.Addr) bool      { return false }

// slow is an IPAM that takes a while for each call, one after the other.
type slow struct{ IPAM }

const callTime = time.Millisecond

func (slow) MapRelay(context.Context, cluster.ID, netip.Addr) (netip.Addr, error) {
	time.Sleep(callTime)
	return netip.MustParseAddr("10.1.2.3"), nil
}

// TestConsumersTakeTurns lets one consumer ask thousands of times at once, and another one
// for a hundred pods.
func TestConsumersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const batch = 100
		allocator := NewAllocator(slow{}, anyPod{}, nil, nil, DefaultLimit)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2000 {
			all.Go(func() {
				for ctx.Err() == nil {
					_, _ = allocator.MapRelay(ctx, "evil", pod(1))
				}
			})
		}
		time.Sleep(10*callTime + callTime/2)
		began := time.Now()
		for n := range batch {
			if _, err := allocator.MapRelay(t.Context(), "victim", pod(n)); err != nil {
				t.Fatal(err)
			}
		}
		// Alone it takes one call for each.
		if took, most := time.Since(began), (2*batch+1)*callTime; took > most {
			t.Errorf("%d pods took %s beside another consumer, want %s at most", batch, took, most)
		}
		stop()
		all.Wait()
	})
}

// TestLimit gives a consumer that has as many relay addresses as it may have only those
// that it has.
func TestLimit(t *testing.T) {
	cases := map[string]struct {
		reason string
		limit  int
		pod    int
		want   error
	}{
		"Room":   {"one more is within the limit", 3, 9, nil},
		"Full":   {"one more would be above it", 2, 9, ErrTooMany},
		"Known":  {"what it has, it keeps", 2, 2, nil},
		"Shrunk": {"also when the limit was lowered", 1, 1, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			nat := &v09.NatMapping{ObjectMeta: metav1.ObjectMeta{Name: "nat"}}
			nat.Spec.ClusterID = string(consumer)
			nat.Spec.ClusterMappings = map[string]string{pod(1).String(): "10.202.0.1", pod(2).String(): "10.202.0.2"}
			others := nat.DeepCopy()
			others.Name, others.Spec.ClusterID = "others", string(neighbor)
			cached := NatMappings{fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(nat, others).Build()}
			store := newStore(t)
			store.SetPod("shop", "web", pod(tc.pod))
			allocator := NewAllocator(asked{tc.pod}, store, cached, straight{}, tc.limit)
			if _, err := allocator.MapRelay(t.Context(), consumer, pod(tc.pod)); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}

// asked is an IPAM that has a relay address for one pod.
type asked struct{ n int }

func (a asked) MapRelay(_ context.Context, _ cluster.ID, address netip.Addr) (netip.Addr, error) {
	if address != pod(a.n) {
		return netip.Addr{}, fmt.Errorf("not asked for in this test: %s", address)
	}
	return netip.AddrFrom4([4]byte{10, 202, 0, byte(a.n)}), nil
}

func (asked) UnmapRelay(context.Context, cluster.ID, netip.Addr) error {
	return errors.New("not asked for in this test")
}

// straight has each relay address lead to the pod of the same number.
type straight struct{ Mappings }

func (straight) Behind(_ context.Context, _ cluster.ID, relay netip.Addr) ([]netip.Addr, error) {
	return []netip.Addr{pod(int(relay.As4()[3]))}, nil
}

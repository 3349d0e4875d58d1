// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package ipamclient_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/ipamclient"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

const (
	consumer = cluster.ID("consumer")
	// small is the length of an external CIDR that is soon full.
	small = 29
)

func TestIPAM(t *testing.T) {
	state := liqotest.NewIPAMState(t, consumer)
	client := liqotest.StartIPAM(t, state, small, consumer)
	mapped := map[netip.Addr]netip.Addr{}
	var full error
	next := netip.MustParseAddr("10.90.0.1")
	for ; full == nil && len(mapped) < 8; next = next.Next() {
		relay, err := client.MapRelay(t.Context(), consumer, next)
		if err != nil {
			full = err
			break
		}
		for pod, other := range mapped {
			if other == relay {
				t.Fatalf("pods %s and %s have one relay address, %s", pod, next, relay)
			}
		}
		mapped[next] = relay
	}
	if !errors.Is(full, ipamclient.ErrExternalCIDRFull) {
		t.Fatalf("after %d addresses of a /29: got %v, want ErrExternalCIDRFull", len(mapped), full)
	}
	if len(mapped) == 0 {
		t.Fatal("not one address was given out")
	}

	// Another process with the same state, as after a restart.
	restarted := liqotest.StartIPAM(t, state, small, consumer)
	for pod, relay := range mapped {
		if got, err := restarted.MapRelay(t.Context(), consumer, pod); err != nil || got != relay {
			t.Errorf("after a restart, pod %s: got %s, %v; want %s", pod, got, err, relay)
		}
	}
	for pod := range mapped {
		for range 2 { // Twice, as after a lost answer.
			if err := restarted.UnmapRelay(t.Context(), consumer, pod); err != nil {
				t.Fatal(err)
			}
		}
		break
	}
	if _, err := restarted.MapRelay(t.Context(), consumer, next); err != nil {
		t.Errorf("after one address was freed: %v", err)
	}
}

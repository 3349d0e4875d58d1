// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/ipamguard"
)

// TestGuardLeavesNothingOpen checks that what the guard opens closes by itself: an address may pass to another pod.
func TestGuardLeavesNothingOpen(t *testing.T) {
	if got := leased([]netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}); got.Lifetime != ipamguard.Lifetime || got.Port != 6000 {
		t.Errorf("port %d is open for %s, want port 6000 for %s", got.Port, got.Lifetime, ipamguard.Lifetime)
	}
}

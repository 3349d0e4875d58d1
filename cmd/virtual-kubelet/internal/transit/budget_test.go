// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"net/netip"
	"testing"
	"time"
)

func TestEndpointBudget(t *testing.T) {
	b, now := newEndpointBudget(3), time.Now()
	at := func(hosts ...byte) (addresses []netip.Addr) {
		for _, host := range hosts {
			addresses = append(addresses, netip.AddrFrom4([4]byte{10, 91, 0, host}))
		}
		return addresses
	}
	admit := func(reason, slice string, want int, hosts ...byte) {
		t.Helper()
		if tooMany := b.admitAddresses("consumer", slice, at(hosts...), now); len(tooMany) != want {
			t.Errorf("%s: %d are too many, want %d", reason, len(tooMany), want)
		}
	}
	admit("within the bound", "ns/a", 0, 1, 2)
	admit("an address in two slices counts once", "ns/b", 0, 2, 3, 3)
	admit("the bound is reached", "ns/c", 2, 1, 4, 5)
	if tooMany := b.admitAddresses("other", "twin/x", at(1, 2, 3), now); len(tooMany) != 0 {
		t.Error("what one cluster uses is not another's")
	}
	admit("the same slice again uses nothing more", "ns/a", 0, 1, 2)
	admit("an address that has left goes on to count, or a slice that changes would use up all", "ns/b", 1, 2, 6)
	now = now.Add(endpointHold)
	admit("after some time it does not", "ns/b", 0, 2, 6)
	b.forgetSlice("ns/", now)
	admit("addresses that are known stay within the bound", "new/a", 0, 1, 2, 6)
	b.forgetSlice("new/a", now)
	now = now.Add(endpointHold)
	admit("the slices of a namespace that is gone do not count", "new/b", 0, 7, 8, 9)
	if uses := len(b.addresses["consumer"]); uses != 3 {
		t.Errorf("%d addresses are remembered, want 3", uses)
	}
}

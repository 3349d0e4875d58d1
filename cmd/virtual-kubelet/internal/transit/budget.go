// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// endpointHold is how long an address counts after it has left the last slice. Its
// relay address is not free at once, so that a slice that changes all the time would
// use up all that there are.
const endpointHold = time.Hour

// endpointBudget bounds of how many endpoint addresses of each cluster relay addresses
// are made. It is safe for concurrent use.
type endpointBudget struct {
	limit int

	mu sync.Mutex
	// addresses are those that count.
	addresses map[cluster.ID]map[netip.Addr]*endpointUse
	// slices are the addresses of each slice that count.
	slices map[string]map[netip.Addr]*endpointUse
}

// endpointUse is by how many slices an address is used, and when it was used last.
type endpointUse struct {
	slices int
	last   time.Time
}

func newEndpointBudget(limit int) *endpointBudget {
	return &endpointBudget{
		limit: limit, addresses: map[cluster.ID]map[netip.Addr]*endpointUse{}, slices: map[string]map[netip.Addr]*endpointUse{},
	}
}

// admitAddresses replaces the addresses of a slice, and returns those that are too many.
func (b *endpointBudget) admitAddresses(
	owner cluster.ID, slice string, addresses []netip.Addr, now time.Time,
) (tooMany map[netip.Addr]struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(slice, now)
	if b.addresses[owner] == nil {
		b.addresses[owner] = map[netip.Addr]*endpointUse{}
	}
	used, held := b.addresses[owner], map[netip.Addr]*endpointUse{}
	cleaned := false
	for _, address := range addresses {
		if held[address] != nil {
			continue
		}
		use := used[address]
		if use == nil && len(used) >= b.limit && !cleaned {
			clean(used, now)
			cleaned = true
		}
		switch {
		case use == nil && len(used) >= b.limit:
			if tooMany == nil {
				tooMany = map[netip.Addr]struct{}{}
			}
			tooMany[address] = struct{}{}
			continue
		case use == nil:
			use = &endpointUse{}
			used[address] = use
		}
		use.slices++
		held[address] = use
	}
	b.slices[slice] = held
	return tooMany
}

// forgetSlice notes that slices are gone: one, or those of a namespace if it ends in a slash.
func (b *endpointBudget) forgetSlice(key string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.HasSuffix(key, "/") {
		b.release(key, now)
		return
	}
	for slice := range b.slices {
		if strings.HasPrefix(slice, key) {
			b.release(slice, now)
		}
	}
}

// release is called with the lock held.
func (b *endpointBudget) release(slice string, now time.Time) {
	for _, use := range b.slices[slice] {
		use.slices--
		use.last = now
	}
	delete(b.slices, slice)
}

// clean forgets the addresses that do not count any more.
func clean(used map[netip.Addr]*endpointUse, now time.Time) {
	for address, use := range used {
		if use.slices == 0 && now.Sub(use.last) >= endpointHold {
			delete(used, address)
		}
	}
}

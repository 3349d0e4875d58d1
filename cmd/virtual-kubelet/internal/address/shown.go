// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"
	"sync"
)

// shownPods remembers under which address each pod of the foreign cluster is shown here
// that is not in the foreign cluster's own pod CIDR: from such an address nobody can
// compute what the foreign cluster calls the pod. It forgets addresses that no pod has any
// more. The zero value is ready for use, also concurrently.
type shownPods struct {
	mu sync.Mutex
	// held are the addresses of the pods as the foreign cluster reports them.
	held map[string]netip.Addr
	// holders counts the pods that have a reported address.
	holders map[netip.Addr]int
	// here and there lead from a reported address to the shown one and back.
	here, there map[netip.Addr]netip.Addr
}

// hold notes the address of a pod; one that is not valid is none.
func (s *shownPods) hold(pod string, reported netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held, s.holders = map[string]netip.Addr{}, map[netip.Addr]int{}
		s.here, s.there = map[netip.Addr]netip.Addr{}, map[netip.Addr]netip.Addr{}
	}
	before, had := s.held[pod]
	if before == reported {
		return
	}
	delete(s.held, pod)
	if reported.IsValid() {
		s.held[pod] = reported
		s.holders[reported]++
	}
	if had {
		s.drop(before)
	}
}

// show notes under which address a pod is shown here. One that nobody holds is not noted.
func (s *shownPods) show(reported, shown netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders[reported] == 0 {
		return
	}
	delete(s.there, s.here[reported])
	delete(s.here, s.there[shown])
	s.here[reported], s.there[shown] = shown, reported
}

// reported returns what the foreign cluster calls the pod that is shown under an address.
func (s *shownPods) reported(shown netip.Addr) (netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	address, ok := s.there[shown]
	return address, ok
}

// drop notes that a pod has a reported address no more; it is called with the lock held.
func (s *shownPods) drop(reported netip.Addr) {
	if s.holders[reported]--; s.holders[reported] > 0 {
		return
	}
	delete(s.holders, reported)
	delete(s.there, s.here[reported])
	delete(s.here, reported)
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"
	"testing"
)

// TestShownPods finds pods by the addresses under which they are shown.
func TestShownPods(t *testing.T) {
	a, b, shown, other := netip.MustParseAddr("10.90.0.7"), netip.MustParseAddr("10.90.0.8"), netip.MustParseAddr("10.202.0.1"),
		netip.MustParseAddr("10.202.0.2")
	cases := map[string]struct {
		reason string
		do     func(*shownPods)
		want   map[netip.Addr]netip.Addr
	}{
		"Shown":  {"a pod is known by its address", func(s *shownPods) { s.hold("1", a); s.show(a, shown) }, map[netip.Addr]netip.Addr{shown: a}},
		"Nobody": {"an address that no pod has leads nowhere", func(s *shownPods) { s.show(a, shown) }, nil},
		"Gone":   {"nor that of a pod that is gone", func(s *shownPods) { s.hold("1", a); s.show(a, shown); s.hold("1", netip.Addr{}) }, nil},
		"Successor": {"two objects can have an address while one of them goes", func(s *shownPods) {
			s.hold("1", a)
			s.show(a, shown)
			s.hold("2", a)
			s.hold("1", netip.Addr{})
		}, map[netip.Addr]netip.Addr{shown: a}},
		"Twice": {"a pod counts once", func(s *shownPods) {
			s.hold("1", a)
			s.hold("1", a)
			s.show(a, shown)
			s.hold("1", netip.Addr{})
		}, nil},
		"Moved": {
			"a pod with another address", func(s *shownPods) { s.hold("1", a); s.show(a, shown); s.hold("1", b); s.show(b, other) },
			map[netip.Addr]netip.Addr{other: b},
		},
		"OtherPath": {
			"a pod is shown under one address at a time", func(s *shownPods) { s.hold("1", a); s.show(a, shown); s.show(a, other) },
			map[netip.Addr]netip.Addr{other: a},
		},
		"PassedOn": {
			"an address is one pod's", func(s *shownPods) { s.hold("1", a); s.hold("2", b); s.show(a, shown); s.show(b, shown) },
			map[netip.Addr]netip.Addr{shown: b},
		},
		"NeverHeld": {"to forget what is not known does nothing", func(s *shownPods) { s.hold("1", netip.Addr{}) }, nil},
		"ShownBefore": {"what was forgotten is learnt again", func(s *shownPods) {
			s.hold("1", a)
			s.show(a, shown)
			s.hold("1", netip.Addr{})
			s.hold("1", a)
			s.show(a, shown)
		}, map[netip.Addr]netip.Addr{shown: a}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pods shownPods
			tc.do(&pods)
			for _, address := range []netip.Addr{shown, other} {
				got, ok := pods.reported(address)
				want, known := tc.want[address]
				if got != want || ok != known {
					t.Errorf("%s: %s is %v, %t, want %v, %t", tc.reason, address, got, ok, want, known)
				}
			}
			if len(pods.here) != len(tc.want) || len(pods.there) != len(tc.want) {
				t.Errorf("%s: remembered are %v and %v, want %v", tc.reason, pods.here, pods.there, tc.want)
			}
		})
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"net"
	"net/http"
	"net/netip"
	"testing"
)

func TestSources(t *testing.T) {
	addr := netip.MustParseAddr
	cases := map[string]struct {
		reason string
		a, b   Source
		same   bool
	}{
		"Network":      {"Neighbours count together.", Network(addr("192.0.2.1")), Network(addr("192.0.2.254")), true},
		"OtherNetwork": {"Others do not.", Network(addr("192.0.2.1")), Network(addr("192.0.3.1")), false},
		"Mapped":       {"An address has several forms.", Network(addr("::ffff:192.0.2.1")), Network(addr("192.0.2.9")), true},
		"IPv6":         {"A host may have all of a /64.", Network(addr("2001:db8::1")), Network(addr("2001:db8::ffff:1")), true},
		"OtherIPv6":    {"The next one is another's.", Network(addr("2001:db8::1")), Network(addr("2001:db8:0:1::1")), false},
		"Zone":         {"A zone is none of the address.", Network(addr("fe80::1%eth0")), Network(addr("fe80::1")), true},
		"Address":      {"An address counts alone.", Address(addr("192.0.2.1")), Address(addr("192.0.2.2")), false},
		"SameHost":     {"A host of IPv6 has a /64.", Address(addr("2001:db8::1")), Address(addr("2001:db8::2:0:0:1")), true},
		"OtherHost":    {"Not more than that.", Address(addr("2001:db8::1")), Address(addr("2001:db8:0:1::1")), false},
		"SameAddress":  {"In all its forms.", Address(addr("192.0.2.1")), Address(addr("::ffff:192.0.2.1")), true},
		"Peer":         {"A peer counts as a whole.", Peer("a"), Peer("a"), true},
		"OtherPeer":    {"And alone.", Peer("a"), Peer("b"), false},
		"Caller":       {"Who has a name counts for it.", Caller("a"), Caller("a"), true},
		"CallerOrPeer": {"A name may be that of a peer, and is something else.", Caller("a"), Peer("a"), false},
		"None":         {"Who has no address counts with all who have none.", Network(netip.Addr{}), Source{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if (tc.a == tc.b) != tc.same {
				t.Errorf("%s\n%+v and %+v are the same: %t, want %t", tc.reason, tc.a, tc.b, !tc.same, tc.same)
			}
		})
	}
}

func TestAddressOf(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := AddressOf(c); got != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("AddressOf() = %s", got)
	}
	if a, b := net.Pipe(); AddressOf(a).IsValid() || AddressOf(b).IsValid() {
		t.Error("a pipe has an address")
	}
}

func TestAddressOfRequest(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[fe80::1%eth0]:80": "fe80::1", "@": "invalid IP", "": "invalid IP",
	} {
		if got := AddressOfRequest(&http.Request{RemoteAddr: remote}).String(); got != want {
			t.Errorf("AddressOfRequest() = %s for %q, want %s", got, remote, want)
		}
	}
}

func TestLimit(t *testing.T) {
	a, b, c := Peer("a"), Peer("b"), Peer("c")
	l := NewLimit(3, 2)
	leave, ok := l.Enter(a)
	if !ok {
		t.Fatal("nobody is there, and there is no place")
	}
	for _, step := range []struct {
		reason string
		from   Source
		want   bool
	}{
		{"One may have several.", a, true},
		{"And not more than its share.", a, false},
		{"Others have theirs.", b, true},
		{"All together have a bound.", c, false},
	} {
		if _, ok := l.Enter(step.from); ok != step.want {
			t.Errorf("%s\nEnter() = %t", step.reason, ok)
		}
	}
	leave()
	leave()
	if _, ok := l.Enter(c); !ok {
		t.Error("a place that was left is not free")
	}
	if _, ok := l.Enter(b); ok {
		t.Error("a place that was left twice is free twice")
	}
}

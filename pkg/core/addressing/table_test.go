// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package addressing_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

func view(tb testing.TB, own, seen string) addressing.View {
	tb.Helper()
	v, err := addressing.NewView(own, seen)
	if err != nil {
		tb.Fatalf("NewView(%q, %q): %v", own, seen, err)
	}
	return v
}

func TestNewView(t *testing.T) {
	cases := map[string]struct {
		reason    string
		own, seen string
		wantSeen  string
		wantErr   bool
	}{
		"NotRemapped": {reason: "Liqo writes None where nothing is remapped", own: "10.200.0.0/16", seen: "None", wantSeen: "10.200.0.0/16"},
		"Empty":       {reason: "an absent remap means the same", own: "10.200.0.0/16", wantSeen: "10.200.0.0/16"},
		"Remapped":    {reason: "the remap is the seen side", own: "10.200.0.0/16", seen: "10.81.0.0/16", wantSeen: "10.81.0.0/16"},
		"HostBits": {
			reason: "host bits in a prefix are dropped, or Contains and rebase would disagree", own: "10.200.3.4/16", seen: "10.81.9.9/16",
			wantSeen: "10.81.0.0/16",
		},
		"DifferentLengths": {reason: "host bits cannot be kept", own: "10.200.0.0/16", seen: "10.81.0.0/24", wantErr: true},
		"DifferentFamily":  {reason: "host bits cannot be kept", own: "10.200.0.0/16", seen: "fd00::/16", wantErr: true},
		"Garbage":          {reason: "a peer's prefix is hostile until parsed", own: "10.200.0.0", wantErr: true},
		"GarbageRemap":     {reason: "a peer's prefix is hostile until parsed", own: "10.200.0.0/16", seen: "x", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := addressing.NewView(tc.own, tc.seen)
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s: error = %v, want error %t", tc.reason, err, tc.wantErr)
			}
			if err == nil && v.Seen.String() != tc.wantSeen {
				t.Errorf("%s: seen = %s, want %s", tc.reason, v.Seen, tc.wantSeen)
			}
		})
	}
}

// The addresses are those of the lab: consumer and provider-a have the same pod
// CIDR, and every cluster remaps.
func TestResolve(t *testing.T) {
	const a, b = cluster.ID("provider-a"), cluster.ID("provider-b")
	broker := view(t, "10.201.0.0/16", "10.83.0.0/16")
	routes := []addressing.Route{
		{Provider: b, Pods: view(t, "10.200.0.0/16", "10.90.0.0/16")},
		{Provider: a, Pods: view(t, "10.200.0.0/16", "None")},
	}
	tableOf := func(routes []addressing.Route, pods addressing.View, connected bool) *addressing.Table {
		return newTable(t, broker, routes, map[cluster.ID]addressing.Peer{a: {Pods: pods, Connected: connected}})
	}
	remapped := view(t, "10.200.0.0/16", "10.201.0.0/16")
	table := tableOf(routes, remapped, true)
	disconnected := tableOf(routes, remapped, false)
	elsewhere := tableOf(routes, view(t, "10.222.0.0/16", "None"), true)
	opaque := tableOf(nil, remapped, true)
	six := tableOf([]addressing.Route{{Provider: a, Pods: view(t, "fd00:1::/36", "fd00:90::/36")}},
		view(t, "fd00:1::/36", "fd00:77::/36"), true)

	cases := map[string]struct {
		reason   string
		table    *addressing.Table
		reported string
		path     addressing.Path
		want     string
	}{
		"BrokersOwnPod": {
			reason: "a pod of the broker is translated as stock Liqo does", table: table, reported: "10.201.0.13", path: addressing.PathBroker,
			want: "10.83.0.13",
		},
		"Direct": {
			reason: "peered with the provider: past the broker", table: table, reported: "10.200.0.13", path: addressing.PathDirect,
			want: "10.201.0.13",
		},
		"NotPeered": {reason: "no tunnel of our own to the provider", table: table, reported: "10.90.0.13", path: addressing.PathRelay},
		"TunnelDown": {
			reason: "a tunnel that carries nothing is no path", table: disconnected, reported: "10.200.0.13", path: addressing.PathRelay,
		},
		"OtherPrefix": {
			reason: "the provider announces another pod CIDR here: never guess", table: elsewhere, reported: "10.200.0.13",
			path: addressing.PathRelay,
		},
		"OpaqueBroker": {
			reason: "without routes everything is asked of the broker", table: opaque, reported: "10.200.0.13", path: addressing.PathRelay,
		},
		"SixToSix": {
			reason: "the arithmetic knows no family", table: six, reported: "fd00:90::1:2", path: addressing.PathDirect, want: "fd00:77::1:2",
		},
		"OutsideEverything": {
			reason: "the broker must judge an address nobody knows", table: table, reported: "192.0.2.1", path: addressing.PathRelay,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path, got := tc.table.Resolve(netip.MustParseAddr(tc.reported))
			if path != tc.path {
				t.Fatalf("%s: path = %s, want %s", tc.reason, path, tc.path)
			}
			if tc.want != "" && got.String() != tc.want {
				t.Errorf("%s: address = %s, want %s", tc.reason, got, tc.want)
			}
			if tc.want == "" && got.IsValid() {
				t.Errorf("%s: address = %s, want none", tc.reason, got)
			}
			if back, ok := tc.table.Reported(got); tc.want != "" && (!ok || back.String() != tc.reported) {
				t.Errorf("%s: %s is reported at %s, want %s", tc.reason, got, back, tc.reported)
			}
		})
	}
}

func TestReportedOfNoPod(t *testing.T) {
	const a = cluster.ID("provider-a")
	broker := view(t, "10.201.0.0/16", "10.83.0.0/16")
	routes := []addressing.Route{{Provider: a, Pods: view(t, "10.200.0.0/17", "10.90.0.0/17")}}
	cases := map[string]struct {
		reason    string
		connected bool
		address   string
	}{
		"Unknown":     {reason: "nobody is reached there", connected: true, address: "192.0.2.1"},
		"NotReported": {reason: "the broker knows a smaller prefix of the provider", connected: true, address: "10.84.200.1"},
		"TunnelDown":  {reason: "a tunnel that carries nothing reaches nobody", address: "10.84.0.1"},
		"NoAddress":   {reason: "no address is nobody's", connected: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			table := newTable(t, broker, routes, map[cluster.ID]addressing.Peer{
				a: {Pods: view(t, "10.200.0.0/16", "10.84.0.0/16"), Connected: tc.connected},
			})
			address, _ := netip.ParseAddr(tc.address)
			if got, ok := table.Reported(address); ok || got.IsValid() {
				t.Errorf("%s: %s is reported at %s", tc.reason, tc.address, got)
			}
		})
	}
}

func newTable(
	tb testing.TB, broker addressing.View, routes []addressing.Route, peers map[cluster.ID]addressing.Peer,
) *addressing.Table {
	tb.Helper()
	table, err := addressing.NewTable(broker, routes, peers)
	if err != nil {
		tb.Fatalf("NewTable: %v", err)
	}
	return table
}

func TestNewTableRefusesOverlap(t *testing.T) {
	broker := view(t, "10.201.0.0/16", "10.83.0.0/16")
	cases := map[string]struct {
		reason string
		broker addressing.View
		routes []addressing.Route
	}{
		"NoBroker": {reason: "without the broker's prefix its own pods look like a provider's"},
		"RouteInBroker": {reason: "one reported address, two pods", broker: broker,
			routes: []addressing.Route{{Provider: "a", Pods: view(t, "10.200.0.0/24", "10.201.7.0/24")}}},
		"TwoRoutes": {reason: "one reported address, two pods", broker: broker, routes: []addressing.Route{
			{Provider: "a", Pods: view(t, "10.200.0.0/16", "None")}, {Provider: "b", Pods: view(t, "10.200.0.0/16", "None")}}},
		"RouteInRoute": {reason: "one reported address, two pods", broker: broker, routes: []addressing.Route{
			{Provider: "a", Pods: view(t, "10.90.128.0/24", "None")}, {Provider: "b", Pods: view(t, "10.90.0.0/24", "None")},
			{Provider: "c", Pods: view(t, "10.90.0.0/16", "None")}}},
		"UnknownRoute": {reason: "a zero prefix contains nothing", broker: broker, routes: []addressing.Route{{Provider: "a"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := addressing.NewTable(tc.broker, tc.routes, nil); err == nil {
				t.Errorf("%s: NewTable accepted the routes", tc.reason)
			}
		})
	}
}

// FuzzView checks that a translation and back is the identity, keeps the host
// bits, and stays inside the prefixes.
func FuzzView(f *testing.F) {
	f.Add(uint32(0x0ac80000), uint32(0x0a530000), uint8(16), uint32(13))
	f.Add(uint32(0), uint32(0xffffffff), uint8(0), uint32(0xffffffff))
	f.Add(uint32(0x0ac80000), uint32(0x0a530000), uint8(32), uint32(1))
	f.Add(uint32(0x0ac80000), uint32(0x0a530000), uint8(21), uint32(2047))
	f.Fuzz(func(t *testing.T, own, seen uint32, bits uint8, host uint32) {
		length := int(bits % 33)
		v := addressing.View{
			Own:  netip.PrefixFrom(ipv4(own), length).Masked(),
			Seen: netip.PrefixFrom(ipv4(seen), length).Masked(),
		}
		hostMask := uint32(uint64(1)<<(32-length) - 1)
		addr := ipv4(binary.BigEndian.Uint32(v.Own.Addr().AsSlice()) | host&hostMask)

		there, err := v.ToObserver(addr)
		if err != nil {
			t.Fatalf("ToObserver(%s) of %v: %v", addr, v, err)
		}
		if !v.Seen.Contains(there) {
			t.Fatalf("%s is not in %s", there, v.Seen)
		}
		if got := binary.BigEndian.Uint32(there.AsSlice()) & hostMask; got != host&hostMask {
			t.Fatalf("host bits %x became %x", host&hostMask, got)
		}
		back, err := v.ToOwner(there)
		if err != nil || back != addr {
			t.Fatalf("there and back: %s became %s (%v)", addr, back, err)
		}
		if _, err := v.ToObserver(ipv4(^binary.BigEndian.Uint32(addr.AsSlice()))); length > 0 && !errors.Is(err, addressing.ErrOutside) {
			t.Fatalf("an address outside %s was translated: %v", v.Own, err)
		}
	})
}

func ipv4(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

func BenchmarkResolve(b *testing.B) {
	var routes []addressing.Route
	peers := map[cluster.ID]addressing.Peer{}
	for i := range 100 {
		id := cluster.ID(ipv4(uint32(i)).String())
		own := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(i), 0, 0}), 16).String()
		routes = append(routes, addressing.Route{Provider: id, Pods: view(b, own, "None")})
		peers[id] = addressing.Peer{Pods: view(b, own, "None"), Connected: true}
	}
	table := newTable(b, view(b, "10.201.0.0/16", "10.83.0.0/16"), routes, peers)
	reported := netip.MustParseAddr("100.99.3.4")
	b.ReportAllocs()
	for b.Loop() {
		if path, _ := table.Resolve(reported); path != addressing.PathDirect {
			b.Fatal(path)
		}
	}
	if allocated := testing.AllocsPerRun(100, func() { table.Resolve(reported) }); allocated != 0 {
		b.Errorf("a translation allocates %.0f times", allocated)
	}
}

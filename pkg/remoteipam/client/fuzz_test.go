// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
)

// maxError is how long an error may be that says what a broker wrote.
const maxError = 2048

func encoded(f *testing.F, message proto.Message) []byte {
	f.Helper()
	raw, err := proto.Marshal(message)
	if err != nil {
		f.Fatal(err)
	}
	return raw
}

// FuzzRoutes holds that a consumer can live with whatever routes a broker tells.
func FuzzRoutes(f *testing.F) {
	long := strings.Repeat("x", 1<<16)
	for _, route := range []*pb.Route{
		{ProviderId: "p", OwnPrefix: "10.1.0.0/16", SeenPrefix: "10.2.0.0/16"},
		{ProviderId: "p", OwnPrefix: "10.1.0.0/16", SeenPrefix: "fd00::/16"},
		{ProviderId: "p", OwnPrefix: "::ffff:10.1.0.0/112", SeenPrefix: "None"},
		{ProviderId: "p", OwnPrefix: "0.0.0.0/0"},
		{ProviderId: long, OwnPrefix: long, SeenPrefix: long},
		{},
	} {
		f.Add(
			encoded(f, &pb.Routes{
				BrokerId: "b", Routes: []*pb.Route{route, {ProviderId: "q", OwnPrefix: "10.1.0.0/16", SeenPrefix: "10.3.0.0/16"}},
			}),
		)
	}
	pods, err := addressing.NewView("10.200.0.0/16", "10.90.0.0/16")
	if err != nil {
		f.Fatal(err)
	}
	peer, err := addressing.NewView("10.1.0.0/16", "10.91.0.0/16")
	if err != nil {
		f.Fatal(err)
	}
	peers := map[cluster.ID]addressing.Peer{"p": {Pods: peer, Connected: true}, "q": {Pods: peer, Connected: true}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var message pb.Routes
		if proto.Unmarshal(raw, &message) != nil {
			t.Skip("gRPC hands on nothing that is no message")
		}
		routes, err := parseRoutes(&message)
		if err != nil {
			if len(err.Error()) > maxError {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		table, err := addressing.NewTable(pods, routes, peers)
		if err != nil {
			return
		}
		for _, route := range routes {
			for _, at := range []netip.Addr{route.Pods.Seen.Addr(), route.Pods.Own.Addr(), netip.MustParseAddr("10.200.0.1"), netip.IPv6Loopback()} {
				// A direct address is one of the peer's own.
				if path, address := table.Resolve(at); path == addressing.PathDirect && !peer.Seen.Contains(address) {
					t.Errorf("%s is reached at %s", at, address)
				}
			}
		}
	})
}

// FuzzMapping holds that an answer of a broker is a refusal, or an address that a pod can have.
func FuzzMapping(f *testing.F) {
	for _, mapping := range []*pb.RelayMapping{
		{RelayAddress: "10.90.0.1"}, {RelayAddress: "fd00::1"}, {RelayAddress: "fe80::1%eth0"}, {RelayAddress: "::ffff:10.0.0.1"},
		{RelayAddress: "0.0.0.0"},
		{RelayAddress: "127.0.0.1"}, {RelayAddress: "169.254.169.254"}, {RelayAddress: "224.0.0.1"}, {RelayAddress: "255.255.255.255"}, {},
		{Refusal: strings.Repeat("\n", 1<<16)}, {RelayAddress: strings.Repeat("1", 1<<16)},
	} {
		f.Add(encoded(f, mapping))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var mapping pb.RelayMapping
		if proto.Unmarshal(raw, &mapping) != nil {
			t.Skip("gRPC hands on nothing that is no message")
		}
		got := parseMapping(&mapping)
		if got.err != nil {
			if text := got.err.Error(); len(text) > maxError || strings.Contains(text, "\n") {
				t.Errorf("the error has %d bytes: %.100q", len(text), text)
			}
			return
		}
		if a := got.relay; !a.IsValid() || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() || a != a.Unmap() ||
			a.Zone() != "" {
			t.Errorf("%q is taken as %s", mapping.GetRelayAddress(), a)
		}
	})
}

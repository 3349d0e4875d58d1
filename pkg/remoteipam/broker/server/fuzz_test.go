// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
)

// world is all that the server asks, for one consumer and one provider, and what it was told.
type world struct {
	pod      netip.Addr
	prefixes map[cluster.ID]netip.Prefix
	took     map[cluster.ID]time.Duration
}

var taken = netip.MustParsePrefix("10.202.0.0/16")

func (*world) Name(*tls.ConnectionState) (cluster.ID, error)                 { return "consumer", nil }
func (*world) Check(context.Context, cluster.ID, *tls.ConnectionState) error { return nil }
func (*world) IsConsumer(id cluster.ID) bool                                 { return id == "consumer" }
func (*world) Taken(cluster.ID) []netip.Prefix                               { return []netip.Prefix{taken} }
func (*world) Changes() <-chan struct{}                                      { return nil }
func (*world) Routes(cluster.ID) []addressing.Route {
	return []addressing.Route{{Provider: "provider"}}
}
func (w *world) MapRelay(_ context.Context, _ cluster.ID, a netip.Addr) (netip.Addr, error) {
	if a != w.pod {
		return netip.Addr{}, errors.New("not a pod of the caller")
	}
	return netip.MustParseAddr("10.90.0.1"), nil
}

func (w *world) RecordTunnels(_ context.Context, _ cluster.ID, prefixes map[cluster.ID]netip.Prefix) error {
	w.prefixes = prefixes
	return nil
}

func (w *world) RecordRoundTrips(_ context.Context, _ cluster.ID, took map[cluster.ID]time.Duration) error {
	w.took = took
	return nil
}

// FuzzCalls holds that whatever a consumer sends, only what can be is passed on, and that lines of the log and refusals are short.
func FuzzCalls(f *testing.F) {
	long := strings.Repeat("x", 4096)
	for _, message := range []proto.Message{
		&pb.MapRelayRequest{Addresses: []string{"10.1.2.3", "::ffff:10.1.2.3", "fe80::1%" + long, "", long, "\x00"}},
		&pb.MapRelayRequest{Addresses: make([]string, remoteipam.MaxBatch+1)},
		&pb.ReportTunnelsRequest{
			Tunnels: []*pb.Tunnel{{ProviderId: "provider", PodPrefix: "10.97.0.0/16"}, {ProviderId: "provider", PodPrefix: long}, nil},
		},
		&pb.ReportTunnelsRequest{Tunnels: []*pb.Tunnel{{ProviderId: "provider", PodPrefix: "10.202.3.0/24"}, {ProviderId: long}}},
		&pb.ReportTunnelsRequest{Tunnels: []*pb.Tunnel{{ProviderId: "provider", PodPrefix: "::ffff:10.97.0.0/112"}}},
		&pb.ReportRoundTripsRequest{
			RoundTrips: []*pb.RoundTrip{{ProviderId: "provider", Microseconds: 1 << 31}, {ProviderId: "provider", Microseconds: 7}},
		},
		&pb.ReportRoundTripsRequest{RoundTrips: []*pb.RoundTrip{{ProviderId: "provider", Microseconds: 7}, {ProviderId: "provider"}}},
	} {
		raw, err := proto.Marshal(message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		w := &world{pod: netip.MustParseAddr("10.1.2.3")}
		log := funcr.New(func(_, line string) {
			if len(line) > 2048 {
				t.Errorf("a line of %d bytes is logged", len(line))
			}
		}, funcr.Options{})
		s, err := New(Config{
			Broker: "broker", Inventory: w, Relay: w, Reports: w, Callers: w, Credentials: insecure.NewCredentials(),
			MaxConnections: 1, Log: log,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: credentials.TLSInfo{}})
		var relay pb.MapRelayRequest
		var tunnels pb.ReportTunnelsRequest
		var trips pb.ReportRoundTripsRequest
		var errs []error
		if proto.Unmarshal(raw, &relay) == nil {
			response, err := s.MapRelay(ctx, &relay)
			errs = append(errs, err)
			for i, mapping := range response.GetMappings() {
				if got := mapping.GetRelayAddress(); got != "" && relay.GetAddresses()[i] != w.pod.String() || len(mapping.GetRefusal()) > 256 {
					t.Errorf("%.100q is mapped to %q: %.300q", relay.GetAddresses()[i], got, mapping.GetRefusal())
				}
			}
		}
		if proto.Unmarshal(raw, &tunnels) == nil {
			_, err := s.ReportTunnels(ctx, &tunnels)
			errs = append(errs, err)
		}
		if proto.Unmarshal(raw, &trips) == nil {
			_, err := s.ReportRoundTrips(ctx, &trips)
			errs = append(errs, err)
		}
		for _, err := range errs {
			if code := status.Code(err); err != nil && code != codes.InvalidArgument && code != codes.PermissionDenied ||
				err != nil && len(err.Error()) > 256 {
				t.Errorf("%.300v", err)
			}
		}
		for id, prefix := range w.prefixes {
			if id != "provider" || prefix != prefix.Masked() || prefix.Overlaps(taken) || !prefix.Addr().IsPrivate() &&
				!netip.MustParsePrefix("100.64.0.0/10").Overlaps(prefix) {
				t.Errorf("recorded that %q sees %s", id, prefix)
			}
		}
		for id, took := range w.took {
			if id != "provider" || took <= 0 || took > kpi.MaxRoundTrip {
				t.Errorf("recorded that %q is %s away", id, took)
			}
		}
	})
}

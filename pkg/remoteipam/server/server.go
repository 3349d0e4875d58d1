// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves the remote IPAM of a broker over gRPC.
//
// It checks who calls and what the caller may ask, and translates between the
// wire and the two things it is given: an [Inventory], which knows the
// federation, and a [RelayMapper], which makes relay addresses. It knows
// nothing of Kubernetes and nothing of how addresses are computed.
package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/capacitorset/liqo-broker/pkg/addressing"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
)

// Inventory tells what the broker knows of its federation. Its methods are
// called concurrently and must answer from memory.
type Inventory interface {
	// IsConsumer reports whether the cluster is a consumer of this broker.
	IsConsumer(id cluster.ID) bool
	// Routes returns the providers that the consumer may reach past the broker,
	// in a stable order; none if the broker is opaque to it.
	Routes(consumer cluster.ID) []addressing.Route
	// Changes returns a channel that is closed at the next change of anything
	// that Routes depends on.
	Changes() <-chan struct{}
}

// RelayMapper makes the addresses under which a consumer reaches a pod through
// the broker.
type RelayMapper interface {
	// MapRelay returns the relay address of a pod for the consumer that offloaded
	// it, and refuses any other address. It is idempotent.
	MapRelay(ctx context.Context, consumer cluster.ID, address netip.Addr) (netip.Addr, error)
}

// TunnelRecorder remembers what consumers tell of their own tunnels.
type TunnelRecorder interface {
	// Record replaces what is known about a consumer: the prefixes under which
	// providers see its pods, by provider.
	Record(ctx context.Context, consumer cluster.ID, prefixes map[cluster.ID]netip.Prefix) error
}

// RoundTripRecorder remembers how far providers are from consumers.
type RoundTripRecorder interface {
	// RecordRoundTrips replaces what is known about a consumer, by provider.
	RecordRoundTrips(ctx context.Context, consumer cluster.ID, took map[cluster.ID]time.Duration) error
}

// Config is what a [Server] needs; every field is required.
type Config struct {
	// Broker is the cluster that serves.
	Broker    cluster.ID
	Inventory Inventory
	Relay     RelayMapper
	Tunnels   TunnelRecorder
	// RoundTrips gets only what its consumer may know, and what can be.
	RoundTrips RoundTripRecorder
	// Credentials must verify the client's certificate.
	Credentials credentials.TransportCredentials
	Log         logr.Logger
}

// Server is the remote IPAM.
type Server struct {
	pb.UnimplementedRemoteIPAMServer

	config Config
}

// New returns a server that [Server.Serve] starts.
func New(config Config) (*Server, error) {
	switch {
	case config.Broker == "":
		return nil, fmt.Errorf("remote IPAM server: the ID of the broker cluster is missing")
	case config.Inventory == nil:
		return nil, fmt.Errorf("remote IPAM server: the inventory is missing")
	case config.Relay == nil:
		return nil, fmt.Errorf("remote IPAM server: the relay mapper is missing")
	case config.Tunnels == nil:
		return nil, fmt.Errorf("remote IPAM server: the recorder of tunnels is missing")
	case config.RoundTrips == nil:
		return nil, fmt.Errorf("remote IPAM server: the recorder of round-trip times is missing")
	case config.Credentials == nil:
		return nil, fmt.Errorf("remote IPAM server: the credentials are missing")
	}
	return &Server{config: config}, nil
}

// Serve answers on the listener until the context ends or the listener fails,
// and returns after the last call has ended.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(
		grpc.Creds(s.config.Credentials),
		// A consumer that is cut off is noticed within half a minute, so that its
		// stream does not stay for ever.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(maxRequestBytes),
	)
	pb.RegisterRemoteIPAMServer(server, s)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); err != nil {
			return fmt.Errorf("serve the remote IPAM on %s: %w", listener.Addr(), err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		// Streams end only when their consumer hangs up: do not wait for them.
		server.Stop()
		return nil
	})
	return group.Wait()
}

// Watch implements the call of the same name.
func (s *Server) Watch(_ *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.Routes]) error {
	consumer, err := s.caller(stream.Context())
	if err != nil {
		return err
	}
	log := s.config.Log.WithValues("consumer", consumer)
	log.Info("Consumer watches the routes")
	defer log.Info("Consumer stopped to watch the routes")
	for {
		changes := s.config.Inventory.Changes()
		if !s.config.Inventory.IsConsumer(consumer) {
			return status.Errorf(codes.PermissionDenied, "cluster %s is not a consumer of this broker any more", consumer)
		}
		if err := stream.Send(s.routes(consumer)); err != nil {
			return err
		}
		select {
		case <-changes:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

func (s *Server) routes(consumer cluster.ID) *pb.Routes {
	message := &pb.Routes{BrokerId: string(s.config.Broker)}
	for _, route := range s.config.Inventory.Routes(consumer) {
		message.Routes = append(message.Routes, &pb.Route{
			ProviderId: string(route.Provider),
			OwnPrefix:  route.Pods.Own.String(),
			SeenPrefix: route.Pods.Seen.String(),
		})
	}
	return message
}

// MapRelay implements the call of the same name.
func (s *Server) MapRelay(ctx context.Context, request *pb.MapRelayRequest) (*pb.MapRelayResponse, error) {
	consumer, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(request.GetAddresses()); n > remoteipam.MaxBatch {
		return nil, status.Errorf(codes.InvalidArgument, "%d addresses in one call; %d at most", n, remoteipam.MaxBatch)
	}
	response := &pb.MapRelayResponse{}
	for _, text := range request.GetAddresses() {
		mapping := &pb.RelayMapping{Address: text}
		relay, err := s.mapRelay(ctx, consumer, text)
		switch {
		case err == nil:
			mapping.RelayAddress = relay.String()
		case ctx.Err() != nil:
			return nil, status.FromContextError(ctx.Err()).Err()
		default:
			mapping.Refusal = err.Error()
			s.config.Log.Info("Relay address refused", "consumer", consumer, "address", text, "reason", err.Error())
		}
		response.Mappings = append(response.Mappings, mapping)
	}
	return response, nil
}

func (s *Server) mapRelay(ctx context.Context, consumer cluster.ID, text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", text)
	}
	return s.config.Relay.MapRelay(ctx, consumer, address)
}

// ReportTunnels implements the call of the same name.
func (s *Server) ReportTunnels(ctx context.Context, request *pb.ReportTunnelsRequest) (*pb.ReportTunnelsResponse, error) {
	consumer, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	allowed := s.providersOf(consumer)
	prefixes := make(map[cluster.ID]netip.Prefix, len(request.GetTunnels()))
	for _, tunnel := range request.GetTunnels() {
		provider := cluster.ID(tunnel.GetProviderId())
		if !allowed[provider] {
			return nil, status.Errorf(codes.PermissionDenied, "cluster %q is not among the routes of cluster %s", provider, consumer)
		}
		prefix, err := netip.ParsePrefix(tunnel.GetPodPrefix())
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "prefix %q of the tunnel to %s: %v", tunnel.GetPodPrefix(), provider, err)
		}
		prefixes[provider] = prefix.Masked()
	}
	if err := s.config.Tunnels.Record(ctx, consumer, prefixes); err != nil {
		s.config.Log.Error(err, "Cannot record the tunnels of a consumer", "consumer", consumer)
		return nil, status.Error(codes.Unavailable, "the broker cannot write the tunnels down at the moment")
	}
	return &pb.ReportTunnelsResponse{}, nil
}

// longestRoundTrip is the longest round-trip time that is believed.
const longestRoundTrip = time.Minute

// ReportRoundTrips implements the call of the same name.
func (s *Server) ReportRoundTrips(ctx context.Context, request *pb.ReportRoundTripsRequest) (*pb.ReportRoundTripsResponse, error) {
	consumer, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	allowed := s.providersOf(consumer)
	took := make(map[cluster.ID]time.Duration, len(request.GetRoundTrips()))
	for _, measured := range request.GetRoundTrips() {
		provider, trip := cluster.ID(measured.GetProviderId()), time.Duration(measured.GetMicroseconds())*time.Microsecond
		if !allowed[provider] {
			return nil, status.Errorf(codes.PermissionDenied, "cluster %q is not among the routes of cluster %s", provider, consumer)
		}
		if trip <= 0 || trip > longestRoundTrip {
			return nil, status.Errorf(codes.InvalidArgument, "a round trip of %s to %s: more than 0 and at most %s", trip, provider, longestRoundTrip)
		}
		took[provider] = trip
	}
	if err := s.config.RoundTrips.RecordRoundTrips(ctx, consumer, took); err != nil {
		s.config.Log.Error(err, "Cannot record the round-trip times of a consumer", "consumer", consumer)
		return nil, status.Error(codes.Unavailable, "the broker cannot write the round-trip times down at the moment")
	}
	return &pb.ReportRoundTripsResponse{}, nil
}

// providersOf returns the providers that the broker tells a consumer of.
func (s *Server) providersOf(consumer cluster.ID) map[cluster.ID]bool {
	providers := map[cluster.ID]bool{}
	for _, route := range s.config.Inventory.Routes(consumer) {
		providers[route.Provider] = true
	}
	return providers
}

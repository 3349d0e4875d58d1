// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves the remote IPAM of a broker over gRPC.
//
// It checks who calls, how often, and what the caller may ask, and translates between the
// wire and the two things it is given: an [Inventory], which knows the
// federation, and a [RelayMapper], which makes relay addresses. It knows
// nothing of Kubernetes and nothing of how addresses are computed.
package server

import (
	"context"
	"errors"
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
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// Inventory tells what the broker knows of its federation. Its methods are
// called concurrently and must answer from memory.
type Inventory interface {
	// IsConsumer reports whether the cluster is a consumer of this broker.
	IsConsumer(id cluster.ID) bool
	// Routes returns the providers that the consumer may reach past the broker,
	// in a stable order; none if the broker is opaque to it.
	Routes(consumer cluster.ID) []addressing.Route
	// Taken returns the prefixes that have a meaning of their own in the network of a
	// provider.
	Taken(provider cluster.ID) []netip.Prefix
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

// Recorder writes down what consumers report.
type Recorder interface {
	// RecordTunnels replaces what is known of the tunnels of a consumer: the prefixes under
	// which providers see its pods, by provider. One that another consumer has told already
	// is left out; then the error is [remoteipam.ErrPrefixTaken].
	RecordTunnels(ctx context.Context, consumer cluster.ID, prefixes map[cluster.ID]netip.Prefix) error
	// RecordRoundTrips replaces what is known of how far providers are from a consumer, by
	// provider.
	RecordRoundTrips(ctx context.Context, consumer cluster.ID, took map[cluster.ID]time.Duration) error
}

// Config is what a [Server] needs; every field but Source and Told is required.
type Config struct {
	// Broker is the cluster that serves.
	Broker    cluster.ID
	Inventory Inventory
	Relay     RelayMapper
	// Reports gets only what its consumer may know, and what can be.
	Reports Recorder
	// Credentials must verify the client's certificate.
	Credentials credentials.TransportCredentials
	Callers     Callers
	// Source tells for whom a connection counts until its caller is known; nil for its
	// network.
	Source source.Func
	// MaxConnections is how many connections one caller may have.
	MaxConnections int
	// Told are the errors of Relay whose texts callers are told. Others are logged.
	Told []error
	Log  logr.Logger
}

// Server is the remote IPAM.
type Server struct {
	pb.UnimplementedRemoteIPAMServer

	config  Config
	paces   paces
	watches watches
	told    told
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
	case config.Reports == nil:
		return nil, fmt.Errorf("remote IPAM server: the recorder of reports is missing")
	case config.Credentials == nil:
		return nil, fmt.Errorf("remote IPAM server: the credentials are missing")
	case config.Callers == nil:
		return nil, fmt.Errorf("remote IPAM server: the identification of callers is missing")
	case config.MaxConnections < 1:
		return nil, fmt.Errorf("remote IPAM server: %d connections: must be positive", config.MaxConnections)
	}
	if config.Source == nil {
		config.Source = source.Network
	}
	return &Server{config: config}, nil
}

const (
	// Liqo tells a node from a dead one after 20 s; a connection is given no more.
	keepaliveTime    = 20 * time.Second
	keepaliveTimeout = 10 * time.Second

	// A full batch of IPv6 addresses takes 41 KiB.
	maxRequestBytes = 64 << 10
)

// Serve answers on the listener until the context ends or the listener fails,
// and returns after the last call has ended.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(
		grpc.Creds(bounded{
			s.config.Credentials, source.NewLimit(maxHandshakes, maxHandshakesOfOne), s.config.Source, newConnections(s.config.MaxConnections),
		}),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ReadBufferSize(bufferBytes),
		grpc.WriteBufferSize(bufferBytes),
		grpc.SharedWriteBuffer(true),
		grpc.MaxHeaderListSize(maxHeaderBytes),
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

// Watch implements the call of the same name. A second one on the same connection ends the
// first.
func (s *Server) Watch(_ *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.Routes]) error {
	consumer, err := s.caller(stream.Context())
	if err != nil {
		return err
	}
	if err := s.wait(stream.Context(), consumer, s.paces.paceOf(consumer).calls, 1); err != nil {
		return err
	}
	ctx, leave := s.watches.enter(stream.Context(), connectionOf(stream.Context()))
	defer leave()
	s.refused(consumer, "watch", "Consumer started to watch routes")
	for send := true; ; {
		changes := s.config.Inventory.Changes()
		if send {
			if err := stream.Send(s.routes(consumer)); err != nil {
				return err
			}
		}
		select {
		case <-changes:
			send = true
		case <-time.After(checkAgain):
			send = false
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
		// Who cannot be checked at the moment was who it is until now.
		if _, err := s.caller(ctx); err != nil && status.Code(err) != codes.Unavailable {
			return err
		}
	}
}

// checkAgain is how often it is checked that who watches still may.
const checkAgain = time.Minute

// connectionOf names the connection of a call.
func connectionOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

func (s *Server) routes(consumer cluster.ID) *pb.Routes {
	message := &pb.Routes{BrokerId: string(s.config.Broker)}
	for _, route := range s.config.Inventory.Routes(consumer) {
		message.Routes = append(message.Routes, &pb.Route{
			ProviderId:   string(route.Provider),
			ProviderName: excerpt.Of(route.Name, maxText),
			OwnPrefix:    route.Pods.Own.String(),
			SeenPrefix:   route.Pods.Seen.String(),
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
	n := len(request.GetAddresses())
	if n > remoteipam.MaxBatch {
		return nil, status.Errorf(codes.InvalidArgument, "%d addresses in one call; %d at most", n, remoteipam.MaxBatch)
	}
	if err := s.wait(ctx, consumer, s.paces.paceOf(consumer).calls, 1+n/addressesInCall); err != nil {
		return nil, err
	}
	response := &pb.MapRelayResponse{}
	for _, text := range request.GetAddresses() {
		mapping := s.mapRelay(ctx, consumer, text)
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		response.Mappings = append(response.Mappings, mapping)
	}
	return response, nil
}

func (s *Server) mapRelay(ctx context.Context, consumer cluster.ID, text string) *pb.RelayMapping {
	mapping := &pb.RelayMapping{Address: text}
	address, err := netip.ParseAddr(text)
	if err != nil {
		mapping.Refusal = notAnAddress
		s.refused(consumer, notAnAddress, "Refused a relay address", "address", excerpt.Of(text, maxText), "reason", notAnAddress)
		return mapping
	}
	relay, err := s.config.Relay.MapRelay(ctx, consumer, address)
	if err != nil {
		mapping.Refusal = s.refusal(err)
		s.refused(consumer, mapping.GetRefusal(), "Refused a relay address", "address", excerpt.Of(text, maxText), "reason", err.Error())
		return mapping
	}
	mapping.RelayAddress = relay.String()
	return mapping
}

// ReportTunnels implements the call of the same name. A prefix that cannot be right is left
// out, and the others are recorded.
func (s *Server) ReportTunnels(ctx context.Context, request *pb.ReportTunnelsRequest) (*pb.ReportTunnelsResponse, error) {
	consumer, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.wait(ctx, consumer, s.paces.paceOf(consumer).tunnels, 1); err != nil {
		return nil, err
	}
	// A cluster that is none of the caller's routes ends the call; a prefix that cannot be right is only left out.
	allowed := s.providersOf(consumer)
	prefixes, wrong := make(map[cluster.ID]netip.Prefix, len(allowed)), false
	for _, tunnel := range request.GetTunnels() {
		provider := cluster.ID(tunnel.GetProviderId())
		if !allowed[provider] {
			return nil, status.Error(codes.PermissionDenied, "a cluster is not among the routes of the caller")
		}
		prefix, err := netip.ParsePrefix(tunnel.GetPodPrefix())
		if err == nil {
			prefix = prefix.Masked()
			err = addressing.CheckReport(prefix, s.config.Inventory.Taken(provider)...)
		}
		if err != nil {
			wrong = true
			s.refused(consumer, "prefix", "Refused the prefix of a tunnel", "provider", provider, "reason", excerpt.Of(err.Error(), maxText))
			continue
		}
		prefixes[provider] = prefix
	}
	// What is right counts, also if something else is wrong.
	err = s.config.Reports.RecordTunnels(ctx, consumer, prefixes)
	switch {
	case errors.Is(err, remoteipam.ErrPrefixTaken):
		s.refused(consumer, "taken", "Refused the prefix of a tunnel", "reason", err.Error())
		return nil, status.Error(codes.InvalidArgument, wrongPrefix)
	case err != nil:
		s.failedCall(ctx, consumer, err, "Cannot record the tunnels of a consumer")
		return nil, status.Error(codes.Unavailable, "the broker cannot record the tunnels at the moment")
	case wrong:
		return nil, status.Error(codes.InvalidArgument, wrongPrefix)
	}
	return &pb.ReportTunnelsResponse{}, nil
}

// wrongPrefix is what a caller is told of whose tunnels one is left out.
const wrongPrefix = "a prefix cannot be the one under which its provider sees the pods of the caller; the others are recorded"

// ReportRoundTrips implements the call of the same name.
func (s *Server) ReportRoundTrips(ctx context.Context, request *pb.ReportRoundTripsRequest) (*pb.ReportRoundTripsResponse, error) {
	consumer, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.wait(ctx, consumer, s.paces.paceOf(consumer).roundTrips, 1); err != nil {
		return nil, err
	}
	allowed := s.providersOf(consumer)
	took := make(map[cluster.ID]time.Duration, len(request.GetRoundTrips()))
	for _, measured := range request.GetRoundTrips() {
		provider, trip := cluster.ID(measured.GetProviderId()), time.Duration(measured.GetMicroseconds())*time.Microsecond
		if !allowed[provider] {
			return nil, status.Error(codes.PermissionDenied, "a cluster is not among the routes of the caller")
		}
		if trip <= 0 || trip > kpi.MaxRoundTrip {
			return nil, status.Errorf(codes.InvalidArgument, "a round trip of %s: more than 0 and at most %s", trip, kpi.MaxRoundTrip)
		}
		took[provider] = trip
	}
	if err := s.config.Reports.RecordRoundTrips(ctx, consumer, took); err != nil {
		s.failedCall(ctx, consumer, err, "Cannot record the round-trip times of a consumer")
		return nil, status.Error(codes.Unavailable, "the broker cannot record the round-trip times at the moment")
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

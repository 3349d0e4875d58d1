// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourceplugin serves Liqo's resource plugin: Liqo asks it what to
// offer to each consumer, and is notified when that changes. Many changes at once
// make few notifications, the last of which is always of the last state.
//
// It knows neither how offers are counted nor Liqo's wire format, and it
// never answers with less than what is known: before the caches are filled it
// makes the caller wait, because Liqo would take a zero for an answer.
package resourceplugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/resourcereader"
	"github.com/capacitorset/liqo-broker/pkg/wake"
)

const (
	// maxMessage bounds what a caller can make us read. A request holds one ID.
	maxMessage = 16 << 10 // bytes
	// maxStreams bounds the subscriptions of one connection. Liqo keeps one.
	maxStreams = 64
	// pingAfter and pingTimeout find subscribers that vanished without a word, so
	// that their streams end.
	pingAfter   = 30 * time.Second
	pingTimeout = 10 * time.Second
	// stopTimeout is how long calls may take to finish when the server stops.
	stopTimeout = 3 * time.Second
)

// DefaultPause is how long a subscriber that was notified is left alone. A burst of
// pods changes the offers of all consumers with each pod, and Liqo writes a
// ResourceOffer for each notification.
const DefaultPause = time.Second

// Offers are what to offer to each consumer at one moment. They do not change.
type Offers interface {
	// NodeOffers returns what a consumer is offered on each of its nodes, in their order. What it was offered before is there as zero.
	NodeOffers(consumer cluster.ID) []capacity.NodeOffer
}

// Source returns what to offer at this moment. It is called concurrently.
type Source func(ctx context.Context) (Offers, error)

// Peers tells which clusters this one knows. It answers from memory, once the caches
// are filled.
type Peers interface {
	// IsPeer reports whether a cluster is a peer of this one.
	IsPeer(ctx context.Context, id cluster.ID) (bool, error)
}

// Synced waits until the source knows the state of the cluster. It returns false if
// ctx ends before.
type Synced func(ctx context.Context) bool

// Server is the resource plugin. It may be used concurrently.
type Server struct {
	source Source
	peers  Peers
	synced Synced
	pause  time.Duration
	stop   chan struct{} // Closed when Run ends.

	mu          sync.Mutex
	subscribers map[wake.Signal]bool
}

var _ resourcereader.Reader = (*Server)(nil)

// New returns a Server that notifies a subscriber of a change at once, and of the
// next ones after a pause.
func New(source Source, peers Peers, synced Synced, pause time.Duration) *Server {
	return &Server{
		source:      source,
		peers:       peers,
		synced:      synced,
		pause:       pause,
		stop:        make(chan struct{}),
		subscribers: map[wake.Signal]bool{},
	}
}

// Run serves on listener until ctx ends, and returns when all calls have ended.
// It is called once.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	g := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.StatsHandler(sessions{}),
		grpc.WaitForHandlers(true),
	)
	resourcereader.Register(g, s)
	healthv1.RegisterHealthServer(g, health.NewServer())

	served := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-served:
		}
		close(s.stop)
		kill := time.AfterFunc(stopTimeout, g.Stop)
		defer kill.Stop()
		g.GracefulStop()
	}()
	err := g.Serve(listener)
	close(served)
	<-stopped
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve the resource plugin on %s: %w", listener.Addr(), err)
	}
	return nil
}

// Changed tells the subscribers that offers may have changed. It does not block.
func (s *Server) Changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for signal := range s.subscribers {
		signal.Set()
	}
}

// Subscribers returns how many subscribers there are.
func (s *Server) Subscribers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.subscribers)
}

// Read returns what to offer to a consumer, which must be a peer of this cluster.
func (s *Server) Read(ctx context.Context, consumer cluster.ID) ([]resourcereader.Pool, error) {
	if consumer == "" {
		return nil, status.Error(codes.InvalidArgument, "the cluster ID is missing")
	}
	if err := s.checkConsumer(ctx, consumer); err != nil {
		return nil, err
	}
	// Known from the beginning, the consumer is notified of a change that comes
	// while its answer is on the way.
	caller := sessionOf(ctx)
	if caller.begin(consumer) {
		defer s.Changed()
	}
	offers, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	offered := offers.NodeOffers(consumer)
	caller.tellOffers(consumer, offered)
	pools := make([]resourcereader.Pool, len(offered))
	for i, p := range offered {
		pools[i] = resourcereader.Pool{Name: p.Node, Resources: p.Offered}
	}
	return pools, nil
}

// checkConsumer fails unless a cluster is a peer. Its errors are gRPC statuses.
func (s *Server) checkConsumer(ctx context.Context, id cluster.ID) error {
	if !s.synced(ctx) {
		return status.Error(codes.Unavailable, "the broker does not know its peers yet")
	}
	known, err := s.peers.IsPeer(ctx, id)
	switch {
	case err != nil:
		return status.Errorf(codes.Internal, "find a cluster: %v", err)
	case !known:
		return status.Error(codes.NotFound, "the broker has no such peer")
	}
	return nil
}

// Remove makes the caller's subscription forget a consumer.
func (s *Server) Remove(ctx context.Context, consumer cluster.ID) error {
	sessionOf(ctx).forgetConsumer(consumer)
	return nil
}

// Subscribe notifies at once for all consumers, because offers may have changed
// while nobody listened. From then on it notifies for each consumer whose offer
// is no longer the one that was told on the same connection, at most once in a pause.
// Consumers are named one by one because Liqo drops small changes, of less than a whole unit too,
// when it is notified for all of them
// (liqo/pkg/liqo-controller-manager/resource-request-controller/offerUpdater.go@v0.9.4):
// also those of which it has asked for the first time, for it may have asked only to compare.
func (s *Server) Subscribe(ctx context.Context, notify func(cluster.ID) error) error {
	signal, caller := wake.New(), sessionOf(ctx)
	s.mu.Lock()
	s.subscribers[signal] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subscribers, signal)
	}()

	if err := notify(""); err != nil {
		return err
	}
	// After each change, who was told something else is named, and who is no peer any more is forgotten.
	for {
		if err := wait(ctx, s.stop, signal.Taken()); err != nil {
			return err
		}
		offers, err := s.open(ctx)
		if err != nil {
			return err
		}
		for consumer, told := range caller.answers() {
			if known, err := s.peers.IsPeer(ctx, consumer); err == nil && !known {
				caller.forgetConsumer(consumer)
				continue
			}
			if first := caller.name(consumer); !first && capacity.EqualNodeOffers(told, offers.NodeOffers(consumer)) {
				continue
			}
			if err := notify(consumer); err != nil {
				return err
			}
		}
		// What changes in the meantime leaves its signal.
		if err := wait(ctx, s.stop, time.After(s.pause)); err != nil {
			return err
		}
	}
}

// wait waits for an event. It fails if ctx ends or the server stops before.
func wait[T any](ctx context.Context, stop <-chan struct{}, event <-chan T) error {
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-stop:
		return status.Error(codes.Unavailable, "the broker is stopping")
	case <-event:
		return nil
	}
}

// open returns the offers once the caches are filled. Its errors are gRPC statuses.
func (s *Server) open(ctx context.Context) (Offers, error) {
	if !s.synced(ctx) {
		return nil, status.Error(codes.Unavailable, "the broker does not know its providers yet")
	}
	offers, err := s.source(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "read the offers: %v", err)
	}
	return offers, nil
}

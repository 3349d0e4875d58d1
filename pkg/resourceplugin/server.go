// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourceplugin serves Liqo's resource plugin: Liqo asks it what to
// offer to each consumer, and is notified when that changes.
//
// It knows neither where the offers come from nor Liqo's wire format, and it
// never answers with less than what is known: before the caches are filled it
// makes the caller wait, because Liqo would take a zero for an answer.
package resourceplugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/offer"
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

// Offers tells what to offer to a consumer.
type Offers interface {
	Offered(ctx context.Context, consumer cluster.ID) (corev1.ResourceList, error)
}

// Synced waits until Offers knows the state of the cluster. It returns false if
// ctx ends before.
type Synced func(ctx context.Context) bool

// Server is the resource plugin. It may be used concurrently.
type Server struct {
	offers Offers
	synced Synced
	stop   chan struct{} // Closed when Run ends.

	mu          sync.Mutex
	told        map[cluster.ID]corev1.ResourceList // What each consumer's last answer was.
	subscribers map[chan struct{}]bool             // Each has room for one signal.
}

var _ liqo.ResourceReader = (*Server)(nil)

// New returns a Server.
func New(offers Offers, synced Synced) *Server {
	return &Server{
		offers:      offers,
		synced:      synced,
		stop:        make(chan struct{}),
		told:        map[cluster.ID]corev1.ResourceList{},
		subscribers: map[chan struct{}]bool{},
	}
}

// Run serves on listener until ctx ends, and returns when all calls have ended.
// It is called once.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	g := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.WaitForHandlers(true),
	)
	liqo.RegisterResourceReader(g, s)
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
		select {
		case signal <- struct{}{}:
		default: // A signal is waiting already and stands for this one too.
		}
	}
}

// Subscribers returns how many subscribers there are.
func (s *Server) Subscribers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.subscribers)
}

// Read returns what to offer to a consumer.
func (s *Server) Read(ctx context.Context, consumer cluster.ID) (corev1.ResourceList, error) {
	if consumer == "" {
		return nil, status.Error(codes.InvalidArgument, "the cluster ID is missing")
	}
	// Known from the beginning, the consumer is notified of a change that comes
	// while its answer is on the way.
	s.mu.Lock()
	if _, known := s.told[consumer]; !known {
		s.told[consumer] = nil
	}
	s.mu.Unlock()
	offered, err := s.offered(ctx, consumer)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[consumer] = offered
	return offered, nil
}

// Remove forgets a consumer.
func (s *Server) Remove(_ context.Context, consumer cluster.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.told, consumer)
	return nil
}

// Subscribe notifies at once for all consumers, because offers may have changed
// while nobody listened. From then on it notifies for each consumer whose offer
// is no longer the one that it was told. Consumers are named one by one because
// Liqo drops small changes when it is notified for all of them.
func (s *Server) Subscribe(ctx context.Context, notify func(cluster.ID) error) error {
	signal := make(chan struct{}, 1)
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
	for {
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-s.stop:
			return status.Error(codes.Unavailable, "the broker is stopping")
		case <-signal:
		}
		for consumer, told := range s.answers() {
			offered, err := s.offered(ctx, consumer)
			if err != nil {
				return err
			}
			if offer.Equal(told, offered) {
				continue
			}
			if err := notify(consumer); err != nil {
				return err
			}
		}
	}
}

// answers returns what each consumer was told.
func (s *Server) answers() map[cluster.ID]corev1.ResourceList {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.told)
}

// offered asks Offers once the caches are filled. Its errors are gRPC statuses.
func (s *Server) offered(ctx context.Context, consumer cluster.ID) (corev1.ResourceList, error) {
	if !s.synced(ctx) {
		return nil, status.Error(codes.Unavailable, "the broker does not know its providers yet")
	}
	offered, err := s.offers.Offered(ctx, consumer)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "read the offers for %s: %v", consumer, err)
	}
	return offered, nil
}

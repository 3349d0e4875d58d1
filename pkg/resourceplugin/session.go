// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceplugin

import (
	"context"
	"maps"
	"sync"

	"google.golang.org/grpc/stats"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// session is what one connection was told. Another caller's questions must not make a
// subscriber miss a change.
type session struct {
	mu   sync.Mutex
	told map[cluster.ID][]capacity.NodeOffer // What each consumer's last answer was.
	// named are the consumers for which the subscriber was notified by their IDs.
	named map[cluster.ID]bool
}

func newSession() *session {
	return &session{told: map[cluster.ID][]capacity.NodeOffer{}, named: map[cluster.ID]bool{}}
}

type sessionKey struct{}

// sessions gives each connection of a gRPC server its session.
type sessions struct{}

var _ stats.Handler = sessions{}

// TagConn implements stats.Handler.
func (sessions) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return withSession(ctx)
}

// TagRPC implements stats.Handler.
func (sessions) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (sessions) HandleRPC(context.Context, stats.RPCStats) {}

// HandleConn implements stats.Handler.
func (sessions) HandleConn(context.Context, stats.ConnStats) {}

func withSession(ctx context.Context) context.Context {
	return context.WithValue(ctx, sessionKey{}, newSession())
}

// sessionOf returns the session of a call; one of its own if it comes over no connection.
func sessionOf(ctx context.Context) *session {
	if s, ok := ctx.Value(sessionKey{}).(*session); ok {
		return s
	}
	return newSession()
}

// tellOffers notes an answer.
func (s *session) tellOffers(consumer cluster.ID, offered []capacity.NodeOffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[consumer] = offered
}

// begin notes that an answer is on the way, and reports whether it is the first one for the consumer.
func (s *session) begin(consumer cluster.ID) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.told[consumer]
	if !known {
		s.told[consumer] = nil
	}
	return !known
}

// name notes that the subscriber is notified for a consumer, and reports whether it is for the first time.
func (s *session) name(consumer cluster.ID) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = !s.named[consumer]
	s.named[consumer] = true
	return first
}

func (s *session) forgetConsumer(consumer cluster.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.told, consumer)
	delete(s.named, consumer)
}

// answers returns what each consumer was told.
func (s *session) answers() map[cluster.ID][]capacity.NodeOffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.told)
}

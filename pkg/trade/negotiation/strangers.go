// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// connectionKey is under which a request's context has its connection.
type connectionKey struct{}

// connection is that of a request.
type connection struct {
	net.Conn

	// known is whether it has turned out to be a party's.
	known atomic.Bool
}

// WithConnection returns a context for the requests of a connection: one that turns out to be a party's counts for that party from then on,
// and no more for its network. It is for httpserver.Server.ConnContext.
func WithConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{Conn: c})
}

// errPaced means that strangers have asked too often from a network.
var errPaced = errors.New("requests of strangers from this network")

// strangers returns how fast who is not known may ask from the network of a request.
func (s *Server) strangers(r *http.Request) *rate.Limiter {
	return s.pace.Of(source.Network(source.AddressOfRequest(r))).requests
}

// crowded returns the refusal of a request from a network from which too many strangers ask, before anything is looked up for it. What
// parties ask on connections that are known is not refused.
func (s *Server) crowded(r *http.Request) error {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok && c.known.Load() {
		return nil
	}
	if s.strangers(r).TokensAt(s.cfg.Clock.Now()) < 1 {
		return errPaced
	}
	return nil
}

// met notes who calls: a party, whose connection is known then, or a stranger.
func (s *Server) met(r *http.Request, who party.ID) {
	if who == "" {
		s.strangers(r).AllowN(s.cfg.Clock.Now(), 1)
		return
	}
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok && !c.known.Load() &&
		httpserver.Claim(c.Conn, s.connections, source.Caller(string(who))) {
		c.known.Store(true)
	}
}

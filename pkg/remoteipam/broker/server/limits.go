// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// DefaultMaxConnections is how many connections one consumer may have. Each of its virtual
// nodes that stands for this broker or one of its providers has a virtual kubelet, with one
// connection.
const DefaultMaxConnections = 256

const (
	// maxStreams bounds the calls at a time on one connection. A virtual kubelet watches,
	// asks for addresses in one call at a time, and reports two things.
	maxStreams = 16
	// maxHandshakes and maxHandshakesOfOne bound the connections of those who have not
	// said yet who they are, in all and of each for whom they count.
	maxHandshakes, maxHandshakesOfOne = 256, 32
	// handshakeTimeout is how long they may take for it.
	handshakeTimeout = 10 * time.Second
	// bufferBytes are read and written at once. A call takes more only with hundreds of
	// addresses.
	bufferBytes = 4 << 10
	// maxHeaderBytes bounds the headers of a call.
	maxHeaderBytes = 16 << 10
)

// How often a consumer may call. All virtual kubelets of a consumer share its identity, and
// call at once when the broker comes back: as many as it has nodes, a few times each. From
// then on, one asks for the addresses of a hundred pods in a call, and tells of its tunnels
// when they change and of round trips once a minute.
const (
	callsPerSecond, callsAtOnce     = 50, 1000
	reportsPerSecond, reportsAtOnce = 5, 300
	// addressesInCall is how many addresses count as one call.
	addressesInCall = 100
	// maxDelay is how long a call waits that comes too early. One that would have to wait
	// longer is refused.
	maxDelay = 3 * time.Second
)

// pace is how often one consumer may call.
type pace struct{ calls, tunnels, roundTrips *rate.Limiter }

// paces are those of all consumers that have called.
type paces struct {
	mu sync.Mutex
	of map[cluster.ID]*pace
}

func (p *paces) paceOf(id cluster.ID) *pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[cluster.ID]*pace{}
	}
	if p.of[id] == nil {
		p.of[id] = &pace{
			calls:      rate.NewLimiter(callsPerSecond, callsAtOnce),
			tunnels:    rate.NewLimiter(reportsPerSecond, reportsAtOnce),
			roundTrips: rate.NewLimiter(reportsPerSecond, reportsAtOnce),
		}
	}
	return p.of[id]
}

// wait waits until the caller may make a call that counts as several. Its errors are gRPC
// statuses.
func (s *Server) wait(ctx context.Context, id cluster.ID, limiter *rate.Limiter, count int) error {
	reservation := limiter.ReserveN(time.Now(), count)
	delay := reservation.Delay()
	if !reservation.OK() || delay > maxDelay {
		reservation.Cancel()
		s.refused(id, "pace", "Refused calls of a consumer that makes too many")
		return status.Error(codes.ResourceExhausted, "too many calls")
	}
	if delay == 0 {
		// No timer for almost every call. (A timer of zero crashes the race detector of
		// Go 1.26 when goroutines of a synctest bubble start several at a time: they share
		// one race context, runtime/time.go maybeRunChan.)
		return nil
	}
	select {
	case <-time.After(delay):
		return nil
	case <-ctx.Done():
		reservation.Cancel()
		return status.FromContextError(ctx.Err()).Err()
	}
}

// errTooMany closes a connection that is one too many.
var errTooMany = errors.New("too many connections")

// bounded are credentials that bound the connections of those who have not said yet who
// they are, and of each who has.
type bounded struct {
	credentials.TransportCredentials
	strangers   *source.Limit
	of          source.Func
	connections *connections
}

// ServerHandshake implements credentials.TransportCredentials.
func (b bounded) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	leave, ok := b.strangers.Enter(b.of(source.AddressOf(raw)))
	if !ok {
		return nil, nil, errTooMany
	}
	defer leave()
	secure, info, err := b.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	name := ""
	if shown, ok := info.(credentials.TLSInfo); ok && len(shown.State.PeerCertificates) > 0 {
		name = shown.State.PeerCertificates[0].Subject.CommonName
	}
	if !b.connections.enter(name) {
		return nil, nil, errors.Join(errTooMany, secure.Close())
	}
	return &counted{Conn: secure, leave: sync.OnceFunc(func() { b.connections.leave(name) })}, info, nil
}

// Clone implements credentials.TransportCredentials.
func (b bounded) Clone() credentials.TransportCredentials {
	return bounded{b.TransportCredentials.Clone(), b.strangers, b.of, b.connections}
}

// counted is a connection that says when it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}

// connections counts those of each caller.
type connections struct {
	most int

	mu sync.Mutex
	of map[string]int
}

func newConnections(most int) *connections { return &connections{most: most, of: map[string]int{}} }

// enter counts a connection of a caller; false if it is one too many.
func (c *connections) enter(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[name] >= c.most {
		return false
	}
	c.of[name]++
	return true
}

// leave is the inverse of enter.
func (c *connections) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[name]--; c.of[name] == 0 {
		delete(c.of, name)
	}
}

// watches has one Watch for each connection: the last one.
type watches struct {
	mu sync.Mutex
	// end ends the Watch of each connection.
	end map[string]*func()
}

// enter ends the other Watch of the same connection, and returns what ends this one too.
func (w *watches) enter(ctx context.Context, connection string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	mine := func() { cancel() }
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end == nil {
		w.end = map[string]*func(){}
	}
	if other := w.end[connection]; other != nil {
		(*other)()
	}
	w.end[connection] = &mine
	return ctx, func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.end[connection] == &mine {
			delete(w.end, connection)
		}
	}
}

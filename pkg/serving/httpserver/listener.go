// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// Bounds say who may connect to a port, and how often at the same time.
type Bounds struct {
	// Admits reports whether an address may connect; nil for all. It is called for each
	// connection and must not block.
	Admits func(netip.Addr) bool
	// Of tells for whom an address counts; nil for itself, or its /64 of IPv6.
	Of source.Func
	// All and Each bound the connections in all, and of each for whom they count.
	All, Each int
}

// Bound returns a listener that closes at once the connections that the bounds do not
// allow, so that they cost no more than their acceptance.
func Bound(l net.Listener, b Bounds) net.Listener {
	if b.Of == nil {
		b.Of = source.Address
	}
	return &listener{Listener: l, bounds: b, open: source.NewLimit(b.All, b.Each)}
}

type listener struct {
	net.Listener
	bounds Bounds
	open   *source.Limit
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := source.AddressOf(c)
		if from.IsValid() && (l.bounds.Admits == nil || l.bounds.Admits(from)) {
			if leave, ok := l.open.Enter(l.bounds.Of(from)); ok {
				return &conn{Conn: c, leave: leave}, nil
			}
		}
		if tcp, is := c.(*net.TCPConn); is {
			_ = tcp.SetLinger(0) // Nothing of the connection stays in the kernel.
		}
		_ = c.Close()
	}
}

// Known counts a connection of a [Bound] listener no more, under TLS or without, because it
// has turned out whose it is: the bounds are left to those of whom that is not known.
func Known(c net.Conn) {
	if bounded := boundedOf(c); bounded != nil {
		bounded.move(func() {})
	}
}

// Claim is Known for a connection that counts in a limit from now on, until it is closed. It
// reports false, and changes nothing, if that has no room.
func Claim(c net.Conn, limit *source.Limit, by source.Source) bool {
	bounded := boundedOf(c)
	if bounded == nil {
		return true
	}
	leave, ok := limit.Enter(by)
	if ok {
		bounded.move(leave)
	}
	return ok
}

// boundedOf returns the connection of a Bound listener, under TLS or without; nil if it is none.
func boundedOf(c net.Conn) *conn {
	if secure, is := c.(*tls.Conn); is {
		c = secure.NetConn()
	}
	bounded, _ := c.(*conn)
	return bounded
}

// conn is a connection that is counted until it is closed, or counts elsewhere.
type conn struct {
	net.Conn

	mu     sync.Mutex // of leave and closed
	leave  func()
	closed bool
}

// move has a connection count elsewhere.
func (c *conn) move(leave func()) {
	c.mu.Lock()
	before, closed := c.leave, c.closed
	if !closed {
		c.leave = leave
	}
	c.mu.Unlock()
	if closed {
		before = leave
	}
	before()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	leave := c.leave
	c.closed = true
	c.mu.Unlock()
	defer leave()
	return c.Conn.Close()
}

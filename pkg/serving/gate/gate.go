// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate lets only some addresses speak to a server whose protocol knows no
// callers. It decides by the peer address of each connection.
//
// It does not know whose the addresses are, nor what the server serves.
package gate

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

const (
	// maxOpen bounds the connections of those who may speak.
	maxOpen = 64
	// maxWaiting bounds the connections of those of whom it is not known yet; the one
	// that waits longest makes way.
	maxWaiting = 256
	// maxWaitingOfOne bounds those that count for the same.
	maxWaitingOfOne = 8
)

// Gate decides whose bytes reach a server. It is safe for concurrent use.
//
// A connection is accepted at once, and what the server says first reaches its peer.
// What the peer says does not reach the server before its address is allowed; if that
// takes longer than the gate's patience, the connection is closed. So is an open one
// whose address is not allowed any more.
type Gate struct {
	always   []netip.Prefix
	of       source.Func
	patience time.Duration

	mu sync.Mutex
	// allowed is nil until somebody has told. Until then connections wait for it.
	allowed map[netip.Addr]bool
	open    map[*connection]bool
	// waiting are those of unknown addresses, in the order of their arrival.
	waiting []*connection
}

// New returns a gate that lets the prefixes and the loopback interface pass, and what
// [Gate.Allow] says. An address that is not allowed yet has until the end of the patience
// to become so; what waits of it counts for whom of says.
func New(always []netip.Prefix, of source.Func, patience time.Duration) *Gate {
	return &Gate{always: always, of: of, patience: patience, open: map[*connection]bool{}}
}

// Allow replaces the addresses that may speak, besides those that always may.
func (g *Gate) Allow(addresses []netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := g.allowed == nil
	g.allowed = make(map[netip.Addr]bool, len(addresses))
	for _, address := range addresses {
		g.allowed[address] = true
	}
	for c := range g.open {
		if !g.passes(c.from) {
			g.drop(c)
		}
	}
	for _, c := range append([]*connection(nil), g.waiting...) {
		switch {
		case g.passes(c.from):
			g.admitConnection(c)
		case first:
			g.expire(c)
		}
	}
}

// Listener returns the listener behind the gate.
func (g *Gate) Listener(behind net.Listener) net.Listener { return &listener{behind, g} }

// passes is called with the lock held, as is what follows.
func (g *Gate) passes(address netip.Addr) bool {
	if address.IsLoopback() || g.allowed[address] {
		return true
	}
	for _, prefix := range g.always {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// admitConnection opens a connection, unless there are too many.
func (g *Gate) admitConnection(c *connection) {
	g.forgetConnection(c)
	if len(g.open) >= maxOpen {
		c.end()
		return
	}
	g.open[c] = true
	close(c.admitted)
}

// expire closes a connection that is still waiting when the patience has ended.
func (g *Gate) expire(c *connection) {
	time.AfterFunc(g.patience, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.open[c] {
			g.drop(c)
		}
	})
}

// queue lets a connection wait.
func (g *Gate) queue(c *connection) {
	same := 0
	for _, other := range g.waiting {
		if other.of == c.of {
			same++
		}
	}
	if same >= maxWaitingOfOne {
		c.end()
		return
	}
	if len(g.waiting) >= maxWaiting {
		g.drop(g.waiting[0])
	}
	g.waiting = append(g.waiting, c)
	if g.allowed != nil {
		g.expire(c)
	}
}

func (g *Gate) drop(c *connection) {
	g.forgetConnection(c)
	c.end()
}

func (g *Gate) forgetConnection(c *connection) {
	delete(g.open, c)
	for i, other := range g.waiting {
		if other == c {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return
		}
	}
}

// listener passes connections through a gate.
type listener struct {
	net.Listener
	gate *Gate
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from := source.AddressOf(raw)
	c := &connection{Conn: raw, gate: l.gate, from: from, of: l.gate.of(from), admitted: make(chan struct{}), closed: make(chan struct{})}
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	if l.gate.passes(c.from) {
		l.gate.admitConnection(c)
	} else {
		l.gate.queue(c)
	}
	return c, nil
}

// Close implements net.Listener. Who waits at that moment is not heard any more: the server
// could not end before.
func (l *listener) Close() error {
	err := l.Listener.Close()
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	for _, c := range append([]*connection(nil), l.gate.waiting...) {
		l.gate.drop(c)
	}
	return err
}

// connection reads nothing before it is admitted.
type connection struct {
	net.Conn
	gate *Gate
	from netip.Addr
	of   source.Source

	admitted chan struct{}
	once     sync.Once
	closed   chan struct{}
}

// Read implements net.Conn.
func (c *connection) Read(into []byte) (int, error) {
	select {
	case <-c.admitted:
		return c.Conn.Read(into)
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.gate.mu.Lock()
	c.gate.forgetConnection(c)
	c.gate.mu.Unlock()
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// end closes the connection and nothing more.
func (c *connection) end() {
	c.once.Do(func() { close(c.closed) })
	_ = c.Conn.Close() // Its peer has no business here, whatever becomes of it.
}

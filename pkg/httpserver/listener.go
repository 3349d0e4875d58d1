// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net"
	"net/netip"
	"sync"
)

// Bounds say who may connect to a port, and how often at the same time.
type Bounds struct {
	// Admits tells whether an address may connect; nil for all. It is called for each
	// connection and must not block.
	Admits func(netip.Addr) bool
	// All and Each bound the connections in all, and of one address.
	All, Each int
}

// Bound returns a listener that closes at once the connections that the bounds do not
// allow, so that they cost no more than their acceptance.
func Bound(l net.Listener, b Bounds) net.Listener {
	return &listener{Listener: l, bounds: b, open: map[netip.Addr]int{}}
}

type listener struct {
	net.Listener
	bounds Bounds

	mu   sync.Mutex
	all  int
	open map[netip.Addr]int
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, ok := addressOf(c)
		if ok && (l.bounds.Admits == nil || l.bounds.Admits(from)) && l.take(from) {
			return &conn{Conn: c, closed: sync.OnceFunc(func() { l.free(from) })}, nil
		}
		if tcp, is := c.(*net.TCPConn); is {
			_ = tcp.SetLinger(0) // Nothing of the connection stays in the kernel.
		}
		_ = c.Close()
	}
}

func addressOf(c net.Conn) (netip.Addr, bool) {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	return tcp.AddrPort().Addr().Unmap().WithZone(""), true
}

// take counts a connection, unless there are too many.
func (l *listener) take(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.bounds.All || l.open[from] >= l.bounds.Each {
		return false
	}
	l.all++
	l.open[from]++
	return true
}

func (l *listener) free(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
}

// conn is a connection that is counted until it is closed.
type conn struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

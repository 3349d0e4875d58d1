// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

const patience = 3 * time.Second

var (
	caller   = netip.MustParseAddr("10.200.0.7")
	stranger = netip.MustParseAddr("10.90.0.9")
)

// network is a listener to which a test connects from any address.
type network struct{ accepts chan net.Conn }

func (n *network) Accept() (net.Conn, error) {
	c, ok := <-n.accepts
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (n *network) Close() error { close(n.accepts); return nil }
func (*network) Addr() net.Addr { return &net.TCPAddr{} }

// end is the server's end of a connection from an address.
type end struct {
	net.Conn
	from netip.Addr
}

func (e end) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(e.from, 40000))
}

// server greets, and echoes what it is told, behind a gate.
type server struct {
	*network
	gate *Gate
	done chan struct{}
}

func newServer(always ...netip.Prefix) *server { return newServerOf(source.Address, always...) }

// newServerOf is a server for which addresses count for others.
func newServerOf(of source.Func, always ...netip.Prefix) *server {
	s := &server{network: &network{accepts: make(chan net.Conn)}, gate: New(always, of, patience), done: make(chan struct{})}
	listener := s.gate.Listener(s.network)
	go func() {
		defer close(s.done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := c.Write([]byte("hello")); err == nil {
					_, _ = io.Copy(c, c)
				}
			}()
		}
	}()
	return s
}

// stop ends the server.
func (s *server) stop() {
	_ = s.Close()
	<-s.done
}

// dial connects from an address, and returns the connection once the server has greeted.
func (s *server) dial(t *testing.T, from netip.Addr) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	s.accepts <- end{theirs, from}
	greeting := make([]byte, len("hello"))
	if _, err := io.ReadFull(ours, greeting); err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("no greeting: %v", err)
	}
	return ours
}

// answered reports whether the server answers on a connection, and after what time that
// is known.
func answered(c net.Conn) (bool, time.Duration) {
	began := time.Now()
	go func() { _, _ = c.Write([]byte("?")) }()
	_, err := io.ReadFull(c, make([]byte, 1))
	return err == nil, time.Since(began)
}

func TestWhoSpeaks(t *testing.T) {
	cases := map[string]struct {
		reason  string
		from    netip.Addr
		prepare func(*Gate)
		// after is done a second after the connection was made.
		after func(*Gate)
		want  bool
		took  time.Duration
	}{
		"Known": {reason: "its address is known", from: caller, prepare: func(g *Gate) { g.Allow([]netip.Addr{caller}) }, want: true},
		"Stranger": {
			reason: "it may be new, and is not", from: stranger, prepare: func(g *Gate) { g.Allow([]netip.Addr{caller}) }, took: patience,
		},
		"New": {reason: "a pod connects before its address is in its status", from: caller, prepare: func(g *Gate) { g.Allow(nil) },
			after: func(g *Gate) { g.Allow([]netip.Addr{stranger, caller}) }, want: true, took: time.Second},
		"BeforeAnythingIsKnown": {reason: "the server starts before it has read the pods", from: caller,
			after: func(g *Gate) { g.Allow([]netip.Addr{caller}) }, want: true, took: time.Second},
		"StrangerBeforeAnythingIsKnown": {reason: "it has the same time as others, from when the pods are known", from: stranger,
			after: func(g *Gate) { g.Allow([]netip.Addr{caller}) }, took: time.Second + patience},
		"Loopback": {reason: "the pod itself, and kubectl port-forward", from: netip.MustParseAddr("127.0.0.1"), want: true},
		"Prefix":   {reason: "the operator says so", from: netip.MustParseAddr("192.0.2.7"), want: true},
		"MappedIPv4": {reason: "the listener is one for both families", from: netip.MustParseAddr("::ffff:10.200.0.7"),
			prepare: func(g *Gate) { g.Allow([]netip.Addr{caller}) }, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(netip.MustParsePrefix("192.0.2.0/24"))
				defer s.stop()
				if tc.prepare != nil {
					tc.prepare(s.gate)
				}
				c := s.dial(t, tc.from)
				defer c.Close()
				if tc.after != nil {
					time.AfterFunc(time.Second, func() { tc.after(s.gate) })
				}
				got, took := answered(c)
				if got != tc.want || took != tc.took {
					t.Errorf("%s: answered %t after %s, want %t after %s", tc.reason, got, took, tc.want, tc.took)
				}
			})
		})
	}
}

// TestAddressPassesOn gives the address of a pod that is gone to another one.
func TestAddressPassesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		defer s.stop()
		s.gate.Allow([]netip.Addr{caller})
		c := s.dial(t, caller)
		defer c.Close()
		if got, _ := answered(c); !got {
			t.Fatal("the caller is not answered")
		}
		s.gate.Allow(nil)
		if got, took := answered(c); got || took != 0 {
			t.Errorf("answered %t after %s, on a connection of an address that is not allowed any more", got, took)
		}
	})
}

// TestStrangersTakeNobodysPlace floods the gate from one address and from many, and then
// connects as a pod that is not known yet.
func TestStrangersTakeNobodysPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		defer s.stop()
		s.gate.Allow(nil)
		var flood []net.Conn
		from := stranger
		for range maxWaiting {
			for range maxWaitingOfOne + 1 {
				flood = append(flood, s.dial(t, from))
			}
			from = from.Next()
		}
		waiting := func() int {
			s.gate.mu.Lock()
			defer s.gate.mu.Unlock()
			return len(s.gate.waiting)
		}
		synctest.Wait()
		if got := waiting(); got != maxWaiting {
			t.Errorf("%d connections of strangers wait, want %d", got, maxWaiting)
		}
		c := s.dial(t, caller)
		time.AfterFunc(time.Second, func() { s.gate.Allow([]netip.Addr{caller}) })
		if got, took := answered(c); !got || took != time.Second {
			t.Errorf("beside the strangers, the caller is answered %t after %s", got, took)
		}
		time.Sleep(patience)
		synctest.Wait()
		if got := waiting(); got != 0 {
			t.Errorf("%d connections of strangers are left", got)
		}
		for _, c := range append(flood, c) {
			_ = c.Close()
		}
	})
}

// TestPeersHaveOneShare floods the gate from many addresses of one peer.
func TestPeersHaveOneShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServerOf(func(a netip.Addr) source.Source {
			if a == caller {
				return source.Network(a)
			}
			return source.Peer("peer")
		})
		defer s.stop()
		s.gate.Allow(nil)
		var flood []net.Conn
		for from := stranger; len(flood) < maxWaiting; from = from.Next() {
			flood = append(flood, s.dial(t, from))
		}
		flood = append(flood, s.dial(t, caller))
		synctest.Wait()
		s.gate.mu.Lock()
		got := len(s.gate.waiting)
		s.gate.mu.Unlock()
		if want := maxWaitingOfOne + 1; got != want {
			t.Errorf("%d connections of a peer and of one more wait, want %d", got, want)
		}
		time.Sleep(patience)
		for _, c := range flood {
			_ = c.Close()
		}
	})
}

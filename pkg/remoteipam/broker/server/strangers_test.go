// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"google.golang.org/grpc/credentials"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// pending are credentials with which a handshake lasts until done is closed.
type pending struct {
	credentials.TransportCredentials
	begun chan struct{}
	done  chan struct{}
}

var errPending = errors.New("the handshake has ended")

func (p pending) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	p.begun <- struct{}{}
	<-p.done
	return nil, nil, errPending
}

// from is a connection from an address.
type from struct {
	net.Conn
	address netip.Addr
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(f.address, 40000))
}

// TestHandshakes begins handshakes from as many addresses as a peer has, and then one of another peer.
func TestHandshakes(t *testing.T) {
	flooding := netip.MustParsePrefix("10.60.0.0/16")
	handshakes := pending{begun: make(chan struct{}), done: make(chan struct{})}
	b := bounded{handshakes, source.NewLimit(maxHandshakes, maxHandshakesOfOne), func(a netip.Addr) source.Source {
		if flooding.Contains(a) {
			return source.Peer("flooding")
		}
		return source.Network(a)
	}, newConnections(1)}
	answers := make(chan error)
	refused := 0
	begin := func(a netip.Addr) {
		go func() {
			_, _, err := b.ServerHandshake(from{address: a})
			answers <- err
		}()
		select {
		case <-handshakes.begun:
		case err := <-answers:
			refused++
			if !errors.Is(err, errTooMany) {
				t.Errorf("ServerHandshake(): %v", err)
			}
		}
	}
	address := flooding.Addr()
	for range maxHandshakes {
		address = address.Next()
		begin(address)
	}
	if want := maxHandshakes - maxHandshakesOfOne; refused != want {
		t.Errorf("of %d handshakes of a peer %d are refused, want %d", maxHandshakes, refused, want)
	}
	refused = 0
	begin(netip.MustParseAddr("10.70.0.1"))
	if refused > 0 {
		t.Error("a peer keeps another one out")
	}
	close(handshakes.done)
	for range maxHandshakesOfOne + 1 {
		<-answers
	}
	if _, ok := b.strangers.Enter(source.Peer("flooding")); !ok {
		t.Error("handshakes that have ended are counted")
	}
}

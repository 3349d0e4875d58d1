// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// disguised is a listener whose connections come from another address.
type disguised struct {
	net.Listener
	from netip.Addr
}

func (d disguised) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return end{c, d.from}, nil
}

// TestGRPC connects as Liqo's controller manager does: it waits 3 s until the connection is
// ready, and exits if it is not (NewExternalMonitor in
// liqo/pkg/liqo-controller-manager/resource-request-controller/resource-monitors@v0.9.4).
func TestGRPC(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate := New(nil, source.Network, time.Minute)
	server := grpc.NewServer()
	healthv1.RegisterHealthServer(server, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(gate.Listener(disguised{listener, caller})) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	connection.Connect()
	for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
		if !connection.WaitForStateChange(ctx, state) {
			t.Fatalf("the connection is not ready although it was accepted: %s", state)
		}
	}
	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, err := healthv1.NewHealthClient(connection).Check(short, &healthv1.HealthCheckRequest{}); err == nil {
		t.Error("the server heard a call from an address that nobody has allowed")
	}
	gate.Allow([]netip.Addr{caller})
	if _, err := healthv1.NewHealthClient(connection).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("the server does not answer when the address is allowed: %v", err)
	}
}

// TestStop ends a server while somebody waits and nobody has told yet who may speak.
func TestStop(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate, server := New(nil, source.Network, time.Minute), grpc.NewServer()
	served := make(chan error, 1)
	go func() { served <- server.Serve(gate.Listener(disguised{listener, stranger})) }()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err != nil { // What the server says first.
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		server.Stop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		t.Fatal("the server waits for somebody that it does not hear")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servertest runs registries for tests of their clients.
package servertest

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/server"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

// Registry is a registry on SQLite, on a port of loopback, that lets everybody in. It can be ended and begun again at the same address and
// with what it knew. It beats every 50 ms, and its leases last a second.
type Registry struct {
	// Address is where it is, and Fingerprint is that of its key.
	Address, Fingerprint string
	// Server is the one that runs now.
	Server *server.Server
	// End ends it. It may be called again.
	End func()

	dsn string
	key party.Key
}

// New returns a registry that runs, until the test ends at the latest.
func New(tb testing.TB) *Registry {
	tb.Helper()
	r := &Registry{dsn: "sqlite:" + filepath.Join(tb.TempDir(), "registry.db"), Address: "127.0.0.1:0", key: registrytest.Key(tb)}
	r.Fingerprint = r.key.Fingerprint()
	r.Begin(tb)
	tb.Cleanup(func() { r.End() })
	return r
}

// Begin runs the registry, which has ended.
func (r *Registry) Begin(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	s, err := store.Open(ctx, r.dsn)
	if err != nil {
		tb.Fatal(err)
	}
	limits := server.DefaultLimits()
	limits.PerSecond, limits.Offers = 1000, 1000
	r.Server, err = server.New(ctx, server.Config{
		Store: s, Log: logr.Discard(), AutoApprove: true, Limits: limits, Lease: 10 * time.Second,
		Timing: server.Timing{Heartbeat: 50 * time.Millisecond},
	})
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.Address)
	if err != nil {
		tb.Fatal(err)
	}
	r.Address = listener.Addr().String()
	done := make(chan error, 1)
	serve := r.Server
	go func() { done <- serve.Run(ctx, listener, party.ServerConfig(r.key)) }()
	r.End = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			tb.Error(err)
		}
	})
}

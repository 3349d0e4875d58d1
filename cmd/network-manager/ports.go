// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
)

// port is a port of the sidecar, with what serves it until the context ends.
type port struct {
	flag, address string
	serve         func(context.Context, net.Listener) error
}

// addPorts opens the ports, but those with the address 0, and has a manager serve them.
func addPorts(ctx context.Context, mgr ctrl.Manager, ports []port) error {
	for _, p := range ports {
		if p.address == "0" {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
		if err != nil {
			return fmt.Errorf("%s=%s: %w", p.flag, p.address, err)
		}
		serve := func(ctx context.Context) error { return p.serve(ctx, listener) }
		if err := mgr.Add(manager.RunnableFunc(serve)); err != nil {
			return fmt.Errorf("set up the manager: %w", err)
		}
	}
	return nil
}

// metricsPort serves the metrics.
func metricsPort(
	readers *delegatedauth.Reviewer, certificate *selfsigned.Certificate, admits func(netip.Addr) bool,
) func(context.Context, net.Listener) error {
	served := diagnostics.Metrics{
		Gatherer: ctrlmetrics.Registry, Readers: readers, Admits: admits,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.Get},
	}
	return served.Serve
}

// healthPort serves the probes: ready is who knows the federation.
func healthPort(ready <-chan struct{}, admits func(netip.Addr) bool) func(context.Context, net.Listener) error {
	probes := diagnostics.Probes{Admits: admits, Ready: func(context.Context) bool {
		select {
		case <-ready:
			return true
		default:
			return false
		}
	}}
	return probes.Serve
}

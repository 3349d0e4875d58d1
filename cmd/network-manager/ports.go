// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"net"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/inventory"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
)

// ports returns the ports of the sidecar. The probes answer from the first moment.
func (s *sidecar) ports() []ports.Port {
	return ports.Opened([]ports.Port{
		{Flag: "--listen", Address: s.cfg.listen, Ready: s.isServing, Serve: s.serve},
		{Flag: "--metrics-address", Address: s.cfg.metricsAddress, Ready: s.isServing, Serve: s.serveMetrics},
		{Flag: "--health-address", Address: s.cfg.healthAddress, Serve: s.serveHealth},
	})
}

// isServing waits until there is something that serves. It returns false if ctx ends before.
func (s *sidecar) isServing(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-s.serving:
		return true
	}
}

// serve serves the remote IPAM, once the federation is known.
func (s *sidecar) serve(ctx context.Context, listener net.Listener) error {
	err := inventory.Watch(ctx, s.mgr.GetCache(), s.store, s.cfg.log.WithName("inventory"))
	select {
	case <-ctx.Done(): // The program ends.
		return nil
	default:
	}
	if err != nil {
		return err
	}
	close(s.known)
	s.cfg.log.Info("Serving the remote IPAM", "address", listener.Addr().String(), "broker", s.cfg.cluster())
	return s.api.Serve(ctx, listener)
}

// serveMetrics serves the metrics, and not to peers.
func (s *sidecar) serveMetrics(ctx context.Context, listener net.Listener) error {
	served := diagnostics.Metrics{
		Gatherer: ctrlmetrics.Registry, Readers: s.readers, Admits: s.peers.Excludes,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate.Get},
	}
	return served.Serve(ctx, listener)
}

// serveHealth serves the probes: ready is who knows the federation. The kubelet is heard also
// before the peers are known.
func (s *sidecar) serveHealth(ctx context.Context, listener net.Listener) error {
	probes := diagnostics.Probes{Admits: s.peers.ExcludesKnown, Ready: func(context.Context) bool {
		select {
		case <-s.known:
			return true
		default:
			return false
		}
	}}
	return probes.Serve(ctx, listener)
}

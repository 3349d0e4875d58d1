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
		{Flag: "--listen", Address: s.cfg.listen, Serve: ports.After(s.parts.Get, s.serve)},
		{Flag: "--metrics-address", Address: s.cfg.metricsAddress, Serve: ports.After(s.parts.Get, s.serveMetrics)},
		{Flag: "--health-address", Address: s.cfg.healthAddress, Serve: s.serveHealth},
	})
}

// serve serves the remote IPAM, once the federation is known.
func (s *sidecar) serve(p *parts, ctx context.Context, listener net.Listener) error {
	err := inventory.Watch(ctx, p.mgr.GetCache(), s.store, s.cfg.log.WithName("inventory"))
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
	return p.api.Serve(ctx, listener)
}

// serveMetrics serves the metrics, and not to peers.
func (s *sidecar) serveMetrics(p *parts, ctx context.Context, listener net.Listener) error {
	served := diagnostics.Metrics{
		Gatherer: ctrlmetrics.Registry, Readers: p.readers, Admits: s.peers.Excludes,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: p.certificate.Get},
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

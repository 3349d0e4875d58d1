// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/serving/gate"
	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

const (
	// callerPatience is how long the address of a caller may be unknown. A pod can connect a second or two before its address is in its
	// status.
	callerPatience = 5 * time.Second
	// maxConnections bounds the connections of who is not known yet, and maxConnectionsEach those from one network: several can stand behind
	// one address. Those of parties are bounded by negotiation.Limits.
	maxConnections, maxConnectionsEach = 512, 128
	// answerTimeout is how long a negotiation may take beside its long poll.
	answerTimeout = 15 * time.Second
	// buyerIdle is how long the connection of a buyer waits for its next request: a client of negotiations closes it before.
	buyerIdle = 15 * time.Second
)

// ports returns the ports of the daemon. The resource plugin answers from the first moment: Liqo's controller manager exits if it does not.
func (c *connector) ports() []ports.Port {
	all := []ports.Port{
		{Flag: "--address", Address: c.options.address, Serve: ports.After(c.leads, (*parts).serveBuyers)},
		{Flag: "--metrics-address", Address: c.options.metricsAddress, Serve: ports.After(c.parts.Synced, c.serveMetrics)},
		{Flag: "--health-address", Address: c.options.healthAddress, Serve: c.serveHealth},
	}
	if c.plugin != nil {
		all = append(all, ports.Port{Flag: "--resource-plugin-address", Address: c.options.pluginAddress, Serve: c.servePlugin})
	}
	return ports.Opened(all)
}

// serveBuyers serves negotiations to everybody who has proved a key; who that is, is found out for each request.
func (p *parts) serveBuyers(ctx context.Context, listener net.Listener) error {
	bounded := httpserver.Bound(listener, httpserver.Bounds{Of: source.Network, All: maxConnections, Each: maxConnectionsEach})
	return httpserver.Server{
		Name: "negotiations", Handler: p.negotiation, TLS: party.TLS{Current: p.identity.Key}.Server(),
		Timeout: negotiation.MaxWait + answerTimeout, ConnContext: negotiation.WithConnection, Direct: true, Idle: buyerIdle,
	}.Run(ctx, bounded)
}

// serveMetrics serves the metrics, and not to peers.
func (c *connector) serveMetrics(p *parts, ctx context.Context, listener net.Listener) error {
	served := diagnostics.Metrics{
		Gatherer: metrics.Registry, Readers: p.readers, Admits: c.peers.Excludes,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: p.certificate.Get},
	}
	return served.Serve(ctx, listener)
}

// serveHealth serves the probes: ready is who knows the cluster.
func (c *connector) serveHealth(ctx context.Context, listener net.Listener) error {
	probes := diagnostics.Probes{Admits: c.peers.ExcludesKnown, Ready: c.parts.Ready}
	return probes.Serve(ctx, listener)
}

// servePlugin serves the resource plugin to Liqo's controller manager and to nobody else. While the API server cannot be asked who that is,
// callers are connected and not heard.
func (c *connector) servePlugin(ctx context.Context, listener net.Listener) error {
	clientset, err := kubernetes.NewForConfig(c.rest)
	if err != nil {
		return errors.Join(fmt.Errorf("reach the API server %s: %w", c.rest.Host, err), listener.Close())
	}
	callers := gate.New(c.options.pluginAllow, c.peers.Source, callerPatience)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return resourceplugin.WatchCallers(ctx, clientset, c.options.liqoNamespace, callers.Allow)
	})
	group.Go(func() error { return c.plugin.Run(ctx, callers.Listener(listener)) })
	return group.Wait()
}

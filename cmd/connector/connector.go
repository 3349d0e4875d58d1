// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

const (
	// leaseName is the name of the replicas' lease, and component the source of the connector's events.
	leaseName, component = "liqo-broker-connector", "liqo-broker-connector"
	// The connector's calls to the API server per second.
	callsPerSecond, callsAtOnce = 50, 100
	// memoryPercent is how much more memory than what is in use may be garbage: less than usual, since most of what is in use, the catalog,
	// stays.
	memoryPercent = 40
)

// connector is the daemon, as it is before it has reached an API server.
type connector struct {
	options options
	rest    *rest.Config
	log     logr.Logger
	scheme  *runtime.Scheme
	peers   *peernet.Peers         // Who peers are is not known until the parts are made.
	plugin  *resourceplugin.Server // Nil if the connector serves none.
	parts   daemon.Parts[*parts]
}

// parts are those of the daemon that need an API server.
type parts struct {
	mgr         ctrl.Manager
	identity    identity.Identity
	clusters    *clusters // Nil if the connector serves no resource plugin.
	grants      *sales.Grants
	negotiation *negotiation.Server // Nil if nothing is sold.
	certificate *selfsigned.Certificate
	readers     *delegatedauth.Reviewer
}

// newConnector makes the parts of the daemon that need no API server.
func newConnector(o options, config *rest.Config, log logr.Logger) (*connector, error) {
	scheme, err := daemon.Kinds(v1alpha1.AddToScheme, connectorv1alpha1.AddToScheme, v09.AddToScheme)
	if err != nil {
		return nil, err
	}
	calls := daemon.Calls(config, callsPerSecond, callsAtOnce, scheme, log)
	calls.Wrap(paged)
	made := daemon.NewParts[*parts]()
	var plugin *resourceplugin.Server
	if !o.broker && o.pluginAddress != "0" {
		plugin = resourceplugin.New(sold{made}.granted, sold{made}, made.Ready, resourceplugin.DefaultPause)
	}
	return &connector{options: o, rest: calls, log: log, scheme: scheme, peers: &peernet.Peers{}, plugin: plugin, parts: made}, nil
}

// leads waits until this replica leads and knows the cluster. The error is that ctx ends before.
func (c *connector) leads(ctx context.Context) (*parts, error) {
	p, err := c.parts.Synced(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.mgr.Elected():
		return p, nil
	}
}

// Caches are those of all parts.
func (p *parts) Caches() cache.Cache { return p.mgr.GetCache() }

// sold is what the resource plugin asks of the parts.
type sold struct{ parts daemon.Parts[*parts] }

// granted is a resourceplugin.Source.
func (s sold) granted(ctx context.Context) (resourceplugin.Offers, error) {
	p, err := s.parts.Synced(ctx)
	if err != nil {
		return nil, err
	}
	book, err := p.grants.Book(ctx)
	if err != nil {
		return nil, err
	}
	known, err := p.clusters.get(ctx)
	if err != nil {
		return nil, err
	}
	return grant.Offers{Book: book, LetIn: known}, nil
}

// IsPeer implements resourceplugin.Peers.
func (s sold) IsPeer(ctx context.Context, id cluster.ID) (bool, error) {
	p, err := s.parts.Synced(ctx)
	if err != nil {
		return false, err
	}
	all, err := p.clusters.get(ctx)
	_, known := all[id]
	return known, err
}

// run runs the daemon until ctx ends or one of its parts fails, and returns when all parts have ended. A new key is no failure: the pod
// begins again with it.
func (c *connector) run(ctx context.Context) error {
	debug.SetGCPercent(memoryPercent)
	err := ports.Run(ctx, c.ports(), func(ctx context.Context) error {
		p, err := c.setup(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // The program ends, perhaps before Liqo has come.
		case err != nil:
			return err
		}
		c.parts.Set(p)
		if err := p.mgr.Start(ctx); err != nil {
			return fmt.Errorf("run the controllers: %w", err)
		}
		return nil
	})
	if errors.Is(err, identity.ErrRotated) || errors.Is(err, errMoved) {
		c.log.Info("Ends, to begin again and announce it", "why", err.Error())
		return nil
	}
	return err
}

// setup makes the parts that need an API server.
func (c *connector) setup(ctx context.Context) (*parts, error) {
	// Who this cluster is.
	direct, err := client.New(c.rest, client.Options{Scheme: c.scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", c.rest.Host, err)
	}
	own, err := findSelf(ctx, direct, c.options, c.log)
	if err != nil {
		return nil, err
	}
	c.log.Info("This cluster is a party", "party", own.identity.ID(), "name", own.name, "endpoint", c.options.endpoint)

	// The manager, and what the ports need of it.
	mgr, err := c.newManager()
	if err != nil {
		return nil, err
	}
	if err := c.peers.Watch(ctx, mgr.GetCache(), v09.Line{}); err != nil {
		return nil, err
	}
	if _, err := mgr.GetCache().GetInformer(ctx, &v09.ForeignCluster{}); err != nil {
		return nil, fmt.Errorf("watch the foreign clusters: %w", err)
	}
	var known *clusters
	granted := func() {}
	if c.plugin != nil {
		granted = c.plugin.Changed
		if known, err = followClusters(ctx, mgr.GetCache(), mgr.GetClient(), granted); err != nil {
			return nil, err
		}
	}

	// What each replica does by itself: its certificate, and looking whether the key or the address of Liqo has changed.
	certificate := selfsigned.New("localhost", func(context.Context, []byte) error { return nil })
	keeper := identity.Keeper{Client: direct, Namespace: c.options.namespace, InUse: own.identity, Log: c.log.WithName("identity")}
	for _, run := range []lease.EveryReplica{certificate.Run, keeper.Run, own.keepAuthHost(direct, c.options.liqoNamespace)} {
		if err := mgr.Add(run); err != nil {
			return nil, fmt.Errorf("add what keeps the certificate, the key and the announcement: %w", err)
		}
	}
	measured := newMetrics(mgr.GetClient(), clock.RealClock{})
	if err := measured.register(metrics.Registry, certificate.Get); err != nil {
		return nil, err
	}

	// What is bought, and what is sold.
	t, err := newTrade(mgr, direct, tradeConfig{
		options: c.options, self: own, log: c.log, granted: granted,
		refused: func(reason string) { measured.refused.WithLabelValues(reason).Inc() },
	})
	if err != nil {
		return nil, err
	}
	if err := t.buy(); err != nil {
		return nil, err
	}
	grants, server, err := t.sell(ctx)
	if err != nil {
		return nil, err
	}
	return &parts{
		mgr: mgr, identity: own.identity, clusters: known, grants: grants, negotiation: server,
		certificate: certificate, readers: delegatedauth.New(direct),
	}, nil
}

// newManager returns the manager of all controllers. The connector's own ports serve its metrics and probes.
func (c *connector) newManager() (ctrl.Manager, error) {
	managed := ctrl.Options{Scheme: c.scheme, Logger: c.log, Cache: cacheOptions()}
	own := lease.Lease{Namespace: c.options.namespace, Name: leaseName, Identity: c.options.leaderIdentity}
	if err := own.Elect(&managed, c.rest); err != nil {
		return nil, err
	}
	return daemon.NewManager(c.rest, managed)
}

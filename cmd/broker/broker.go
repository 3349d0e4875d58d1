// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/consumer"
	"github.com/capacitorset/liqo-broker/pkg/controller/giveback"
	"github.com/capacitorset/liqo-broker/pkg/controller/kpis"
	"github.com/capacitorset/liqo-broker/pkg/controller/offering"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy/managed"
	"github.com/capacitorset/liqo-broker/pkg/controller/provider"
	"github.com/capacitorset/liqo-broker/pkg/controller/providerquery"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/callers"
	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

const (
	// component is the source of the broker's events.
	component = "liqo-broker"
	// leaseName is the name of the replicas' lease.
	leaseName = "liqo-broker"
	// The broker's calls to the API server per second. The most calls come from
	// draining: a quarter of all pods of a provider, then the next.
	callsPerSecond, callsAtOnce = 50, 100
)

// brokerConfig is what the broker is made from.
type brokerConfig struct {
	options

	strategy liqo.MappingStrategy
	rest     *rest.Config
	log      logr.Logger
	asker    promquery.Asker
}

// broker is the daemon.
type broker struct {
	cfg    brokerConfig
	scheme *runtime.Scheme
	plugin *resourceplugin.Server // Nil if the daemon is only a catalog.

	// watching is closed when what follows is set and all caches are registered.
	watching chan struct{}
	mgr      ctrl.Manager
	reader   *snapshot.Reader
	capacity *snapshot.CapacityCache
	planner  *twin.Planner // Nil if the daemon is only a catalog.
	peers    peernet.Peers
	api      *httpapi.API
	own      cluster.Identity // Of the broker's cluster; empty if the daemon is only a catalog.

	authorities *callers.Authorities // Who sign the certificates of consumers; nil if the daemon is only a catalog.

	certificate certificate
	// webhookCertificate returns what the API server is shown.
	webhookCertificate diagnostics.GetCertificate
	metricsReaders     *delegatedauth.Reviewer
}

// newBroker makes the parts of the daemon that need no API server.
func newBroker(cfg brokerConfig) (*broker, error) {
	scheme, err := daemon.Kinds(v1alpha1.AddToScheme, liqo.AddToScheme)
	if err != nil {
		return nil, err
	}
	cfg.rest = daemon.Calls(cfg.rest, callsPerSecond, callsAtOnce, scheme, cfg.log)
	b := &broker{cfg: cfg, scheme: scheme, watching: make(chan struct{})}
	if cfg.brokers() {
		b.plugin = resourceplugin.New(b.offers, b, b.synced, resourceplugin.DefaultPause)
	}
	return b, nil
}

// synced waits until the caches are filled. It returns false if ctx ends before.
func (b *broker) synced(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-b.watching:
		return b.mgr.GetCache().WaitForCacheSync(ctx)
	}
}

// offers is a resourceplugin.Source. It may be called once synced has returned true.
func (b *broker) offers(ctx context.Context) (resourceplugin.Offers, error) {
	return b.capacity.Capacity(ctx)
}

// setup makes the parts that need an API server, after it passed the preflight.
func (b *broker) setup(ctx context.Context) error {
	// May it do all that it needs to?
	direct, err := client.New(b.cfg.rest, client.Options{Scheme: b.scheme})
	if err != nil {
		return fmt.Errorf("reach the API server %s: %w", b.cfg.rest.Host, err)
	}
	resources, err := discovery.NewDiscoveryClientForConfig(b.cfg.rest)
	if err != nil {
		return fmt.Errorf("reach the API server %s: %w", b.cfg.rest.Host, err)
	}
	if err := preflight(ctx, resources, direct, needs(&b.cfg.options)); err != nil {
		return err
	}

	// The manager, with what it caches and under which certificates it is called.
	cached, err := cacheOptions()
	if err != nil {
		return err
	}
	if b.certificate, err = newAPICertificate(&b.cfg.options, direct); err != nil {
		return err
	}
	b.metricsReaders = newReaders(direct)
	certificate, announcer := newCertificate(direct)
	b.webhookCertificate = certificate.Get
	if err := register(metrics.Registry, b.programMetrics()...); err != nil {
		return err
	}
	managed := ctrl.Options{
		Scheme:                 b.scheme,
		Logger:                 b.cfg.log,
		Cache:                  cached,
		Client:                 client.Options{Cache: uncached()},
		Metrics:                metricsserver.Options{BindAddress: "0"}, // They are served, as the probes are, by the daemon's own ports.
		HealthProbeBindAddress: "0",
		WebhookServer:          newWebhooks(&b.cfg.options, certificate, &b.peers),
	}
	if b.cfg.leaderElect {
		if err := (lease.Lease{Namespace: b.cfg.leaderNamespace, Name: leaseName, Identity: b.cfg.leaderIdentity}).Elect(&managed, b.cfg.rest); err != nil {
			return err
		}
	}
	if b.mgr, err = ctrl.NewManager(b.cfg.rest, managed); err != nil {
		return fmt.Errorf("make the manager for %s: %w", b.cfg.rest.Host, err)
	}

	// What the API server and Liqo ask, and what watches.
	if err := b.peers.Watch(ctx, b.mgr.GetCache()); err != nil {
		return err
	}
	if err := setupWebhooks(b.mgr, certificate, announcer, b.plugin != nil); err != nil {
		return err
	}
	if b.plugin != nil {
		if err := b.setupBrokering(ctx, direct); err != nil {
			return err
		}
		setupBrokeringWebhooks(b.mgr, b.reader, &b.cfg)
	}
	if _, err := b.mgr.GetCache().GetInformer(ctx, &liqo.ForeignCluster{}); err != nil {
		return fmt.Errorf("watch the foreign clusters: %w", err)
	}

	// What people ask.
	if err := b.setupAPI(ctx, direct); err != nil {
		return err
	}
	close(b.watching)
	return nil
}

// setupAPI makes what answers people.
func (b *broker) setupAPI(ctx context.Context, direct client.Client) (err error) {
	config := httpapi.Config{
		Client: b.mgr.GetClient(), Reviewer: b.cfg.reviewer(direct), Source: b.peers.Source, Log: b.cfg.log.WithName("api"),
		Catalog: b.cfg.catalog, Orchestrator: b.cfg.orchestrator, Aggregator: b.cfg.aggregator,
		AnonymousToggle: b.cfg.anonymousToggle, AnonymousCatalog: b.cfg.anonymousCatalog, Origins: b.cfg.apiOrigins, Own: b.own,
	}
	if b.plugin != nil {
		consumers, authorities, err := b.watchCallers(ctx, direct)
		if err != nil {
			return err
		}
		config.Identify, config.Known, b.authorities = consumers.identify, consumers.callers.Known, authorities
	}
	if b.planner != nil {
		config.Explainer = &twin.Explainer{Client: b.mgr.GetClient(), Reader: b.reader, Planner: b.planner, MaxNamespaces: b.cfg.maxNamespaces}
	}
	if b.api, err = httpapi.New(config); err != nil { //nolint:contextcheck // It prepares answers, each with the context of its request.
		return err
	}
	if err := b.api.Watch(ctx, b.mgr.GetCache()); err != nil {
		return err
	}
	if err := errors.Join(b.mgr.Add(lease.EveryReplica(b.certificate.run)), b.mgr.Add(lease.EveryReplica(b.api.Start))); err != nil {
		return fmt.Errorf("add the HTTP API: %w", err)
	}
	return nil
}

// setupBrokering adds what an orchestrator or an aggregator has and a catalog has not.
func (b *broker) setupBrokering(ctx context.Context, direct client.Reader) error {
	if err := snapshot.AddIndexes(ctx, b.mgr.GetFieldIndexer()); err != nil {
		return err
	}
	own, err := liqo.OwnIdentity(ctx, direct, b.cfg.liqoNamespace)
	if err != nil {
		return err
	}
	b.own = own
	modes := consumer.Modes{Orchestrator: b.cfg.orchestrator, Aggregator: b.cfg.aggregator}
	b.reader = snapshot.New(b.mgr.GetClient(), own.ID, modes.Serves)
	b.capacity = snapshot.NewCapacityCache(b.reader)
	if err := b.watchAccounts(ctx); err != nil {
		return err
	}
	m := newBrokerMetrics(b.mgr.GetClient(), b.plugin)
	if err := m.register(metrics.Registry); err != nil {
		return err
	}
	return b.setupControllers(own, modes, m)
}

// setupControllers adds the controllers of an orchestrator or an aggregator.
func (b *broker) setupControllers(own cluster.Identity, modes consumer.Modes, m *brokerMetrics) error {
	objects, recorder, now := b.mgr.GetClient(), b.mgr.GetEventRecorderFor(component), clock.RealClock{}
	b.planner = twin.NewPlanner(recorder, now)
	errs := []error{
		provider.Setup(b.mgr, provider.Config{Client: objects, Reader: b.reader, Clock: now, Plans: b.planner, FromConsumers: b.cfg.provideFromConsumers}),
		offering.Setup(b.mgr, offering.Config{Client: objects, Live: b.mgr.GetAPIReader(), Recorder: recorder, Namespace: b.cfg.liqoNamespace}),
		consumer.Setup(b.mgr, consumer.Config{Client: objects, Reader: b.reader, Capacity: b.capacity.Capacity, Modes: modes}),
		kpis.Setup(b.mgr, kpis.Config{Client: objects, Live: b.mgr.GetAPIReader(), Reader: b.reader, Clock: now}),
		providerquery.Setup(b.mgr, providerquery.Config{Client: objects, Recorder: recorder, Clock: now, Asker: b.cfg.asker}),
		managed.Setup(b.mgr, managed.Config{Client: objects, Reader: b.reader, Recorder: recorder, Clock: now, Asker: b.cfg.asker, Decisions: m.decisions.WithLabelValues(aboutPolicy)}),
		twin.Setup(b.mgr, b.twinConfig(own, m)),
	}
	if b.cfg.giveBackAfter > 0 {
		errs = append(errs, giveback.Setup(b.mgr, b.giveBackConfig(m)))
	}
	return errors.Join(errs...)
}

// giveBackConfig returns what the controller needs that gives pods back.
func (b *broker) giveBackConfig(m *brokerMetrics) giveback.Config {
	return giveback.Config{
		Client:   b.mgr.GetClient(),
		Recorder: b.mgr.GetEventRecorderFor(component),
		Reader:   b.reader,
		After:    b.cfg.giveBackAfter,
		Given:    m.given,
		Clock:    clock.RealClock{},
	}
}

// twinConfig returns what the controller of twin namespaces needs.
func (b *broker) twinConfig(own cluster.Identity, m *brokerMetrics) twin.Config {
	return twin.Config{
		Client:        b.mgr.GetClient(),
		Live:          b.mgr.GetAPIReader(),
		Reader:        b.reader,
		Recorder:      b.mgr.GetEventRecorderFor(component),
		Planner:       b.planner,
		Own:           own,
		Strategy:      b.cfg.strategy,
		MaxNamespaces: b.cfg.maxNamespaces,
		Metrics:       m.twin,
		Clock:         clock.RealClock{},
	}
}

// watchAccounts tells the capacity, and then the resource plugin, of all that changes
// what is offered: who has, uses and reserved what.
func (b *broker) watchAccounts(ctx context.Context) error {
	changed := func() { b.capacity.Changed(); b.plugin.Changed() }
	for _, object := range []client.Object{
		&v1alpha1.Provider{}, &v1alpha1.Consumer{}, &corev1.Pod{}, &corev1.Node{}, &corev1.Namespace{},
		&liqo.ResourceOffer{}, &liqo.ForeignCluster{}, &v1alpha1.PlacementPolicy{}, &v1alpha1.PlacementDecision{},
	} {
		informer, err := b.mgr.GetCache().GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			DeleteFunc: func(any) { changed() },
			UpdateFunc: func(before, after any) {
				if snapshot.AccountChanged(before, after) {
					changed()
				}
			},
		}); err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	return nil
}

// run runs the daemon until ctx ends or one of its parts fails, and returns when all
// parts have ended.
func (b *broker) run(ctx context.Context) error {
	return ports.Run(ctx, b.ports(), func(ctx context.Context) error {
		if err := b.setup(ctx); err != nil {
			return err
		}
		if err := b.mgr.Start(ctx); err != nil {
			return fmt.Errorf("run the controllers: %w", err)
		}
		return nil
	})
}

// reviewer returns what knows the callers of the HTTP API. A token for the API server does not
// count there: who sees it on its way could do more with it.
func (c *brokerConfig) reviewer(creator delegatedauth.Creator) *delegatedauth.Reviewer {
	return delegatedauth.New(creator, c.apiAudiences...)
}

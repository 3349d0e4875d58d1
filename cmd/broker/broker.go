// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/consumer"
	"github.com/capacitorset/liqo-broker/pkg/controller/giveback"
	"github.com/capacitorset/liqo-broker/pkg/controller/grants"
	"github.com/capacitorset/liqo-broker/pkg/controller/inventory"
	"github.com/capacitorset/liqo-broker/pkg/controller/kpis"
	"github.com/capacitorset/liqo-broker/pkg/controller/liqonamespace"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy/managed"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy/whatif"
	"github.com/capacitorset/liqo-broker/pkg/controller/provider"
	"github.com/capacitorset/liqo-broker/pkg/controller/providerquery"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/callers"
	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/wake"
	"github.com/capacitorset/liqo-broker/pkg/webhook/audit"
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

	mapping liqo.Mapping // Of namespaces on providers.
	rest    *rest.Config
	log     logr.Logger
	asker   promquery.Asker
}

// broker is the daemon, as it is before it has reached an API server.
type broker struct {
	cfg    brokerConfig
	scheme *runtime.Scheme
	peers  *peernet.Peers         // Who peers are is not known until the parts are made.
	plugin *resourceplugin.Server // What Liqo 0.9 asks; nil if the daemon is only a catalog.
	line   *wake.Later[line.Line] // Which line of Liqo runs.
	parts  daemon.Parts[*parts]
}

// parts are those of the daemon that need an API server.
type parts struct {
	mgr         ctrl.Manager
	brokering   *brokering // Nil if the daemon is only a catalog.
	api         *httpapi.API
	authorities *callers.Authorities // Who sign the certificates of consumers; nil if the daemon is only a catalog.
	certificate certificate
	readers     *delegatedauth.Reviewer // Of the metrics.
}

// newBroker makes the parts of the daemon that need no API server.
func newBroker(cfg brokerConfig) (*broker, error) {
	scheme, err := daemon.Kinds(v1alpha1.AddToScheme, lines.AddToScheme)
	if err != nil {
		return nil, err
	}
	cfg.rest = daemon.Calls(cfg.rest, callsPerSecond, callsAtOnce, scheme, cfg.log)
	made := daemon.NewParts[*parts]()
	var plugin *resourceplugin.Server
	if cfg.brokers() {
		plugin = resourceplugin.New(offered{made}.offers, offered{made}, made.Ready, resourceplugin.DefaultPause)
	}
	return &broker{cfg: cfg, scheme: scheme, peers: &peernet.Peers{}, plugin: plugin, line: wake.NewLater[line.Line](), parts: made}, nil
}

// Caches are those of all parts.
func (p *parts) Caches() cache.Cache { return p.mgr.GetCache() }

// offered is what the resource plugin asks of the parts.
type offered struct{ parts daemon.Parts[*parts] }

// offers is a resourceplugin.Source.
func (o offered) offers(ctx context.Context) (resourceplugin.Offers, error) {
	p, err := o.parts.Synced(ctx)
	if err != nil {
		return nil, err
	}
	return p.brokering.capacity.Capacity(ctx)
}

// IsPeer implements resourceplugin.Peers.
func (o offered) IsPeer(ctx context.Context, id cluster.ID) (bool, error) {
	p, err := o.parts.Synced(ctx)
	if err != nil {
		return false, err
	}
	peer, err := p.brokering.reader.Peer(ctx, id)
	return peer != nil, err
}

// setup makes the parts that need an API server, after it passed the preflight.
func (b *broker) setup(ctx context.Context) (*parts, error) {
	// May it do all that it needs to?
	direct, err := client.New(b.cfg.rest, client.Options{Scheme: b.scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", b.cfg.rest.Host, err)
	}
	resources, err := discovery.NewDiscoveryClientForConfig(b.cfg.rest)
	if err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", b.cfg.rest.Host, err)
	}
	liqo, err := lines.Find(resources, b.scheme)
	if err != nil {
		return nil, err
	}
	b.line.Set(liqo)
	if err := preflight(ctx, resources, direct, needs(&b.cfg.options, liqo)); err != nil {
		return nil, err
	}
	b.cfg.log.Info("Found Liqo", "line", liqo.Name())

	// The manager, and under which certificates it is called.
	shown, err := newAPICertificate(&b.cfg.options, direct)
	if err != nil {
		return nil, err
	}
	webhooks, announcer := newCertificate(direct)
	if err := register(metrics.Registry, programMetrics(shown.get, webhooks.Get)...); err != nil {
		return nil, err
	}
	mgr, err := b.newManager(liqo, webhooks)
	if err != nil {
		return nil, err
	}

	// What the API server and Liqo ask, and what watches.
	if err := b.peers.Watch(ctx, mgr.GetCache(), liqo); err != nil {
		return nil, err
	}
	if b.cfg.isAsked(liqo) {
		if err := setupWebhooks(mgr, webhooks, announcer, b.cfg.brokers()); err != nil {
			return nil, err
		}
	}
	var own *brokering
	if b.cfg.brokers() {
		if own, err = b.newBrokering(ctx, liqo, mgr, direct); err != nil {
			return nil, err
		}
		own.setupWebhooks()
	}
	if _, err := mgr.GetCache().GetInformer(ctx, liqo.Kinds().Record); err != nil {
		return nil, fmt.Errorf("watch the peers: %w", err)
	}

	// What people ask.
	api, authorities, err := b.setupAPI(ctx, liqo, mgr, direct, own)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mgr.Add(lease.EveryReplica(shown.run)), mgr.Add(lease.EveryReplica(api.Start))); err != nil {
		return nil, fmt.Errorf("add the HTTP API: %w", err)
	}
	return &parts{mgr: mgr, brokering: own, api: api, authorities: authorities, certificate: shown, readers: newReaders(direct)}, nil
}

// newManager returns the manager of all controllers and webhooks. Metrics and probes are served by the daemon's own ports.
func (b *broker) newManager(liqo line.Line, webhooks *selfsigned.Certificate) (ctrl.Manager, error) {
	managed := ctrl.Options{
		Scheme: b.scheme, Logger: b.cfg.log,
		Cache: cacheOptions(liqo, b.cfg.brokers(), b.cfg.inventoryNamespace), Client: client.Options{Cache: uncached()},
		WebhookServer: newWebhooks(&b.cfg.options, webhooks, b.peers),
	}
	if b.cfg.leaderElect {
		own := lease.Lease{Namespace: b.cfg.leaderNamespace, Name: leaseName, Identity: b.cfg.leaderIdentity}
		if err := own.Elect(&managed, b.cfg.rest); err != nil {
			return nil, err
		}
	}
	return daemon.NewManager(b.cfg.rest, managed)
}

// setupAPI returns what answers people, and the authorities of consumers' certificates; own is nil if the daemon is only a catalog.
func (b *broker) setupAPI(
	ctx context.Context, liqo line.Line, mgr ctrl.Manager, direct client.Client, own *brokering,
) (*httpapi.API, *callers.Authorities, error) {
	config := httpapi.Config{
		Client: mgr.GetClient(), Line: liqo, Reviewer: b.cfg.reviewer(direct), Source: b.peers.Source, Log: b.cfg.log.WithName("api"),
		Catalog: b.cfg.catalog, Orchestrator: b.cfg.orchestrator, Aggregator: b.cfg.aggregator,
		AnonymousToggle: b.cfg.anonymousToggle, AnonymousCatalog: b.cfg.anonymousCatalog, Origins: b.cfg.apiOrigins,
	}
	var authorities *callers.Authorities
	if own != nil {
		consumers, known, err := b.watchCallers(ctx, liqo, mgr, direct)
		if err != nil {
			return nil, nil, err
		}
		config.Changed = own.rescheduled
		config.Own, config.Identify, config.Known, authorities = own.own, consumers.identify, consumers.callers.Known, known
		config.Explainer = own.explainer()
	}
	trier, err := whatif.New(liqo, mgr.GetClient(), nil)
	if err != nil {
		return nil, nil, err
	}
	config.TryPolicy = func(ctx context.Context, text string) (apiv1.PolicyTrial, error) {
		return trier.Try(ctx, time.Now(), text)
	}
	if b.cfg.page {
		if config.Page, config.Hosts, err = newPage(&b.cfg.options); err != nil {
			return nil, nil, err
		}
	}
	api, err := httpapi.New(config) //nolint:contextcheck // It prepares answers, each with the context of its request.
	if err != nil {
		return nil, nil, err
	}
	return api, authorities, api.Watch(ctx, mgr.GetCache())
}

// brokering is what an orchestrator or an aggregator has and a catalog has not.
type brokering struct {
	cfg      *brokerConfig
	mgr      ctrl.Manager
	own      cluster.Identity // Of the broker's cluster.
	reader   *snapshot.Reader
	capacity *snapshot.CapacityCache
	planner  *planning.Planner
	metrics  *brokerMetrics
	plugin   *resourceplugin.Server // Nil if Liqo does not ask what to offer.
	told     *reports.Reports       // Nil if it does.
	changes  *audit.Log             // Of who changes what people decide.
}

// newBrokering has all controllers registered, and returns what they share.
func (b *broker) newBrokering(ctx context.Context, liqo line.Line, mgr ctrl.Manager, direct client.Reader) (*brokering, error) {
	if err := line.AddIndexes(ctx, mgr.GetFieldIndexer(), snapshot.Indexes(liqo)); err != nil {
		return nil, err
	}
	own, err := liqo.OwnIdentity(ctx, direct, b.cfg.liqoNamespace)
	if err != nil {
		return nil, err
	}
	modes := consumer.Modes{Orchestrator: b.cfg.orchestrator, Aggregator: b.cfg.aggregator}
	reader := snapshot.New(liqo, mgr.GetClient(), own.ID, modes.Serves)
	o := &brokering{
		cfg: &b.cfg, mgr: mgr, own: own, reader: reader, capacity: snapshot.NewCapacityCache(reader),
	}
	changed := o.capacity.Changed
	if liqo.HasPlugin() {
		o.plugin, changed = b.plugin, func() { o.capacity.Changed(); b.plugin.Changed() }
	} else {
		o.told = reports.New(o.reportsConfig())
	}
	o.planner = planning.NewPlanner(mgr.GetEventRecorderFor(component), clock.RealClock{}, o.views(ctx))
	o.metrics = newBrokerMetrics(mgr.GetClient(), o.plugin)
	o.changes = audit.NewLog(audit.Config{
		Client: mgr.GetClient(), Component: component, Changes: o.metrics.changes, Clock: clock.RealClock{}, Log: b.cfg.log.WithName("audit"),
	})
	if err := mgr.Add(lease.EveryReplica(o.changes.Run)); err != nil {
		return nil, fmt.Errorf("add what records changes: %w", err)
	}
	if err := watchAccounts(ctx, mgr.GetCache(), reader, changed); err != nil {
		return nil, err
	}
	return o, errors.Join(o.metrics.register(metrics.Registry), o.setupControllers(modes))
}

// explainer returns what explains plans, and says what drains lead to.
func (o *brokering) explainer() *planning.Explainer {
	return &planning.Explainer{
		Client: o.mgr.GetClient(), Reader: o.reader, Planner: o.planner, MaxNamespaces: o.cfg.maxNamespaces,
	}
}

// rescheduled tells what somebody has had the HTTP API change. The API server takes it for the daemon's own change.
func (o *brokering) rescheduled(change httpapi.Rescheduled) {
	kind, err := apiutil.GVKForObject(change.Object, o.mgr.GetScheme())
	if err != nil {
		o.cfg.log.Error(err, "Cannot tell who has changed an object", "object", change.Object.GetName())
		return
	}
	o.changes.Tell(audit.Change{
		User: change.By, Deed: audit.Changed,
		Object: corev1.ObjectReference{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: change.Object.GetName(), UID: change.Object.GetUID(),
		},
		Fields: []audit.Field{{Path: "spec.scheduling", Old: change.From, New: change.To}},
	})
}

// setupControllers registers the controllers.
func (o *brokering) setupControllers(modes consumer.Modes) error {
	objects, live, recorder, now := o.mgr.GetClient(), o.mgr.GetAPIReader(), o.mgr.GetEventRecorderFor(component), clock.RealClock{}
	errs := []error{
		provider.Setup(o.mgr, provider.Config{
			Client: objects, Reader: o.reader, Clock: now, Live: o.liveLinks(), Plans: o.planner, FromConsumers: o.cfg.provideFromConsumers,
		}),
		consumer.Setup(o.mgr, o.consumerConfig(modes)),
		kpis.Setup(o.mgr, kpis.Config{Client: objects, Live: live, Reader: o.reader, Clock: now}),
		providerquery.Setup(o.mgr, providerquery.Config{Client: objects, Recorder: recorder, Clock: now, Asker: o.cfg.asker}),
		managed.Setup(o.mgr, managed.Config{
			Client: objects, Reader: o.reader, Recorder: recorder, Clock: now, Asker: o.cfg.asker,
			Decisions: o.metrics.decisions.WithLabelValues(aboutPolicy),
		}),
		twin.Setup(o.mgr, o.twinConfig()),
	}
	// How consumers are told what they are offered. With Liqo 0.9 besides, its own namespace is offloaded.
	if o.reader.Line().HasPlugin() {
		errs = append(errs, liqonamespace.Setup(o.mgr, liqonamespace.Config{
			Client: objects, Live: live, Recorder: recorder, Namespace: o.cfg.liqoNamespace,
		}))
	} else {
		errs = append(errs, grants.Setup(o.mgr, o.grantsConfig()), reports.Setup(o.mgr, o.reportsConfig()))
	}
	if o.cfg.giveBackAfter > 0 {
		errs = append(errs, giveback.Setup(o.mgr, o.giveBackConfig()))
	}
	if o.cfg.inventoryNamespace != "" {
		errs = append(errs, inventory.Setup(o.mgr, inventory.Config{
			Client: objects, Reader: o.mgr.GetCache(), Namespace: o.cfg.inventoryNamespace,
		}))
	}
	return errors.Join(errs...)
}

// liveLinks returns what asks the API server itself how the tunnels are; nil where no gateway says so again and again.
func (o *brokering) liveLinks() func(context.Context) ([]liqo.Link, error) {
	if of := o.reader.Line(); !of.HasPlugin() {
		return of.Reader(o.mgr.GetAPIReader(), o.own.ID).Links
	}
	return nil
}

// grantsConfig returns what the controller needs that answers what consumers ask for.
func (o *brokering) grantsConfig() grants.Config {
	return grants.Config{
		Client: o.mgr.GetClient(), Reader: o.reader, Capacity: o.capacity.Capacity, Recorder: o.mgr.GetEventRecorderFor(component),
		Clock: clock.RealClock{}, Views: o.told.Views,
	}
}

// consumerConfig returns what the controller of consumers needs, which have agents where Liqo does not ask what to offer.
func (o *brokering) consumerConfig(modes consumer.Modes) consumer.Config {
	cfg := consumer.Config{
		Client: o.mgr.GetClient(), Reader: o.reader, Capacity: o.capacity.Capacity, Modes: modes, Clock: clock.RealClock{},
	}
	if o.told != nil {
		cfg.Heard = o.told.Heard
	}
	return cfg
}

// views returns what tells by the reports of consumers which providers they reach; nil where they make none. Of what cannot be read at
// present nothing is known.
func (o *brokering) views(ctx context.Context) func(cluster.ID) grant.Views {
	if o.told == nil {
		return nil
	}
	return func(consumer cluster.ID) grant.Views {
		views, err := o.told.Views(ctx, consumer)
		if err != nil {
			o.cfg.log.Error(err, "Cannot read which providers a consumer reaches", "consumer", consumer)
			return grant.Views{Asked: true}
		}
		return views
	}
}

// reportsConfig returns what is needed to read the reports of consumers. The client of the manager reads no ConfigMap from the cache, but
// these are there.
func (o *brokering) reportsConfig() reports.Config {
	return reports.Config{
		Client: o.mgr.GetClient(), Told: o.mgr.GetCache(), Reader: o.reader, Recorder: o.mgr.GetEventRecorderFor(component),
		Clock: clock.RealClock{},
	}
}

// giveBackConfig returns what the controller needs that gives pods back.
func (o *brokering) giveBackConfig() giveback.Config {
	return giveback.Config{
		Client: o.mgr.GetClient(), Recorder: o.mgr.GetEventRecorderFor(component), Reader: o.reader,
		After: o.cfg.giveBackAfter, Given: o.metrics.given, Clock: clock.RealClock{},
	}
}

// twinConfig returns what the controller of twin namespaces needs.
func (o *brokering) twinConfig() twin.Config {
	config := twin.Config{
		Client: o.mgr.GetClient(), Live: o.mgr.GetAPIReader(), Reader: o.reader, Recorder: o.mgr.GetEventRecorderFor(component),
		Planner: o.planner, Own: o.own, Mapping: o.cfg.mapping, MaxNamespaces: o.cfg.maxNamespaces,
		Metrics: o.metrics.twin, Clock: clock.RealClock{},
	}
	if o.told != nil {
		config.ViewsChanged, config.SeenChanged = reports.ViewsChanged(clock.RealClock{}), reports.SeenChanged()
	}
	return config
}

// watchAccounts tells of all that changes what is offered: who has, uses and reserved what.
func watchAccounts(ctx context.Context, informers cache.Informers, reader *snapshot.Reader, changed func()) error {
	liqo := reader.Line().Kinds()
	for _, object := range append([]client.Object{
		&v1alpha1.Provider{}, &v1alpha1.Consumer{}, &corev1.Pod{}, &corev1.Node{}, &corev1.Namespace{},
		liqo.Offer, liqo.Record, &v1alpha1.PlacementPolicy{}, &v1alpha1.PlacementDecision{},
	}, liqo.Peering...) {
		informer, err := informers.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			DeleteFunc: func(any) { changed() },
			UpdateFunc: func(before, after any) {
				if reader.AccountChanged(before, after) {
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
		p, err := b.setup(ctx)
		if err != nil {
			return err
		}
		b.parts.Set(p)
		if err := p.mgr.Start(ctx); err != nil {
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

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	podcapacity "github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/catalog"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/guarded"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/kpisource"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/offers"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering/outofband"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/prices"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/purchases"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/requests"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const (
	// leaseName is the name of the replicas' lease, and component the source of the connector's events.
	leaseName, component = "liqo-broker-connector", "liqo-broker-connector"
	// The connector's calls to the API server per second.
	callsPerSecond, callsAtOnce = 50, 100
	// memoryPercent is how much more memory than what is in use may be garbage: less than usual, since most of what is in use, the catalog, stays.
	memoryPercent = 40
)

// connector is the daemon.
type connector struct {
	options

	rest   *rest.Config
	log    logr.Logger
	scheme *runtime.Scheme
	plugin *resourceplugin.Server // Nil if the connector serves none.

	// watching is closed when what follows is set and all caches are registered.
	watching    chan struct{}
	mgr         ctrl.Manager
	events      conditions.Events
	peers       peernet.Peers
	clusters    clusters
	identity    identity.Identity
	catalog     *catalog.Catalog
	guarded     *guarded.Cluster
	reach       peering.Reach
	negotiation *negotiation.Server // Nil if nothing is sold.
	grants      *sales.Grants
	shop        atomic.Pointer[offers.Reconciler]
	asking      atomic.Pointer[requests.Reconciler]
	shown       chan struct{} // Has an element while registries have shown something that the books have not looked at.
	certificate *selfsigned.Certificate
	readers     *delegatedauth.Reviewer
	measured    *connectorMetrics
}

// newConnector makes the parts of the daemon that need no API server.
func newConnector(o options, config *rest.Config, log logr.Logger) (*connector, error) {
	scheme, err := daemon.Kinds(v1alpha1.AddToScheme, connectorv1alpha1.AddToScheme, liqo.AddToScheme)
	if err != nil {
		return nil, err
	}
	c := &connector{options: o, log: log, scheme: scheme, watching: make(chan struct{}), shown: make(chan struct{}, 1)}
	c.rest = daemon.Calls(config, callsPerSecond, callsAtOnce, scheme, log)
	c.rest.Wrap(paged)
	if !o.broker && o.pluginAddress != "0" {
		c.plugin = resourceplugin.New(c.granted, c, c.synced, resourceplugin.DefaultPause)
	}
	return c, nil
}

// granted is a resourceplugin.Source. It may be called once synced has returned true.
func (c *connector) granted(ctx context.Context) (resourceplugin.Offers, error) {
	book, err := c.grants.Book(ctx)
	if err != nil {
		return nil, err
	}
	known, err := c.clusters.get(ctx, c.mgr.GetClient())
	if err != nil {
		return nil, err
	}
	return grant.Offers{Book: book, LetIn: known}, nil
}

// IsPeer implements resourceplugin.Peers. It may be called once synced has returned true.
func (c *connector) IsPeer(ctx context.Context, id cluster.ID) (bool, error) {
	all, err := c.clusters.get(ctx, c.mgr.GetClient())
	_, known := all[id]
	return known, err
}

// synced waits until the caches are filled. It returns false if ctx ends before.
func (c *connector) synced(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c.watching:
		return c.mgr.GetCache().WaitForCacheSync(ctx)
	}
}

// leads waits until this replica leads and knows the cluster. It returns false if ctx ends before.
func (c *connector) leads(ctx context.Context) bool {
	if !c.synced(ctx) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-c.mgr.Elected():
		return true
	}
}

// run runs the daemon until ctx ends or one of its parts fails, and returns when all parts have ended. A new key is no failure: the pod
// begins again with it.
func (c *connector) run(ctx context.Context) error {
	debug.SetGCPercent(memoryPercent)
	err := ports.Run(ctx, c.ports(), func(ctx context.Context) error {
		if err := c.setup(ctx); err != nil {
			return err
		}
		if err := c.mgr.Start(ctx); err != nil {
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
func (c *connector) setup(ctx context.Context) error {
	// Who this cluster is, as Liqo knows it, and as a party.
	direct, err := client.New(c.rest, client.Options{Scheme: c.scheme})
	if err != nil {
		return fmt.Errorf("reach the API server %s: %w", c.rest.Host, err)
	}
	own, err := liqo.OwnIdentity(ctx, direct, c.liqoNamespace)
	if err != nil {
		return err
	}
	if c.identity, err = identity.Load(ctx, direct, c.namespace); err != nil {
		return err
	}
	if c.name == "" {
		c.name = own.Name
	}
	clusters := []registryv1.Cluster{{ID: string(own.ID), Auth: c.authHost(ctx, direct)}}
	announcement, err := identity.Announce(ctx, direct, c.namespace, c.name, c.endpoint, clusters, time.Now())
	if err != nil {
		return err
	}
	c.log.Info("This cluster is a party", "party", c.identity.ID(), "name", c.name, "endpoint", c.endpoint)

	// The manager, and what the ports need of it.
	managed := ctrl.Options{
		Scheme: c.scheme, Logger: c.log, Cache: cacheOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", // The connector's own ports serve both.
	}
	if err := (lease.Lease{Namespace: c.namespace, Name: leaseName, Identity: c.leaderIdentity}).Elect(&managed, c.rest); err != nil {
		return err
	}
	if c.mgr, err = ctrl.NewManager(c.rest, managed); err != nil {
		return fmt.Errorf("make the manager for %s: %w", c.rest.Host, err)
	}
	c.events = c.mgr.GetEventRecorderFor(component)
	if c.plugin != nil {
		if err := c.clusters.follow(ctx, c.mgr.GetCache(), c.plugin.Changed); err != nil {
			return err
		}
	}
	if err := c.peers.Watch(ctx, c.mgr.GetCache()); err != nil {
		return err
	}
	if _, err := c.mgr.GetCache().GetInformer(ctx, &liqo.ForeignCluster{}); err != nil {
		return fmt.Errorf("watch the foreign clusters: %w", err)
	}
	// What each replica does by itself: its certificate, and looking whether the key or the address of Liqo has changed.
	c.readers = delegatedauth.New(direct)
	c.certificate = selfsigned.New("localhost", func(context.Context, []byte) error { return nil })
	if err := c.mgr.Add(lease.EveryReplica(c.certificate.Run)); err != nil {
		return fmt.Errorf("add the certificate of the metrics: %w", err)
	}
	keeper := identity.Keeper{Client: direct, Namespace: c.namespace, InUse: c.identity, Log: c.log.WithName("identity")}
	if err := c.mgr.Add(lease.EveryReplica(keeper.Run)); err != nil {
		return fmt.Errorf("add the keeper of the key: %w", err)
	}
	if err := c.mgr.Add(lease.EveryReplica(func(ctx context.Context) error { return c.keepAuthHost(ctx, direct, clusters[0].Auth) })); err != nil {
		return fmt.Errorf("add what looks where Liqo authenticates: %w", err)
	}
	c.measured = newMetrics(c.mgr.GetClient(), time.Now)
	if err := c.measured.register(metrics.Registry, c.certificate.Get); err != nil {
		return err
	}

	// What registries show, what is bought, and what is sold.
	c.catalog, err = catalog.Setup(c.mgr, catalog.Config{
		Client: c.mgr.GetClient(), Reader: c.mgr.GetAPIReader(), Namespace: c.namespace, Identity: c.identity, Announcement: announcement,
		Told: c.told, Changed: c.listed, Events: c.events, Clock: clock.RealClock{},
	})
	if err != nil {
		return err
	}
	// Both sides peer by the same driver, and only on a cluster that is guarded.
	driver := outofband.New(direct, c.liqoNamespace)
	c.guarded = guarded.New(direct, c.liqoNamespace, time.Now)
	c.reach = outofband.NewReach(direct, c.liqoNamespace, nil)
	err = errors.Join(c.setupBuyer(own, driver), c.setupSeller(ctx, driver), prices.Setup(c.mgr), outofband.Setup(c.mgr, driver))
	if err != nil {
		return err
	}
	close(c.watching)
	return nil
}

// errMoved means that Liqo authenticates at another host than the one that was announced.
var errMoved = errors.New("liqo authenticates other clusters at another host now")

// authHost returns the host at which Liqo authenticates others; empty if there is none, as on a cluster that only buys.
func (c *connector) authHost(ctx context.Context, direct client.Client) string {
	at, err := liqo.AuthURL(ctx, direct, c.liqoNamespace)
	if err != nil {
		return ""
	}
	parsed, err := url.Parse(at)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// keepAuthHost looks from time to time whether Liqo authenticates others where it was announced, until ctx ends, which is no error, or it does not.
func (c *connector) keepAuthHost(ctx context.Context, direct client.Client, announced string) error {
	err := wait.PollUntilContextCancel(ctx, time.Minute, false, func(ctx context.Context) (bool, error) {
		now := c.authHost(ctx, direct)
		return now != "" && now != announced, nil
	})
	if err == nil {
		return errMoved
	}
	return nil // The context has ended.
}

// setupBuyer makes what buys.
func (c *connector) setupBuyer(own cluster.Identity, driver *outofband.Driver) error {
	asking, err := requests.Setup(c.mgr, requests.Config{
		Client: c.mgr.GetClient(), Reader: c.mgr.GetAPIReader(), Offers: c.candidates, Events: c.events, Clock: clock.RealClock{},
	})
	if err != nil {
		return err
	}
	c.asking.Store(asking)
	return purchases.Setup(c.mgr, purchases.Config{
		Fits:   asking.Fits,
		Client: c.mgr.GetClient(), Reader: c.mgr.GetAPIReader(), Parties: c.catalog, Peering: guarded.NewBuyer(driver, c.guarded), Cluster: own,
		Reach: c.reach, Guarded: c.guarded.Check, Keys: c.identity.Keys, Key: c.identity.Key, Events: c.events, Clock: clock.RealClock{},
	})
}

// candidates returns the plans that pass a filter, the best one first.
func (c *connector) candidates(filter offer.Filter) ([]requests.Candidate, error) {
	found, err := c.catalog.Find(filter)
	if err != nil {
		return nil, err
	}
	candidates := make([]requests.Candidate, 0, len(found))
	for _, f := range found {
		candidates = append(candidates, requests.Candidate{
			Offer: f.Entry.Offer.Key(), Plan: f.Plan().ID, Digest: f.Entry.Offer.Fingerprint(), Price: f.Match.Price, Region: f.Entry.Offer.Region,
			Notice: time.Duration(f.Plan().Notice),
		})
	}
	return candidates, nil
}

// setupSeller makes what sells.
func (c *connector) setupSeller(ctx context.Context, driver *outofband.Driver) error {
	// Contracts are stored as Sales, and what they hold is no longer offered.
	store, err := books.New(books.Config{Client: c.mgr.GetClient(), Reader: c.mgr.GetAPIReader(), Parties: c.catalog})
	if err != nil {
		return err
	}
	c.grants = sales.NewGrants(store)
	shop, err := offers.Setup(c.mgr, c.offersConfig(store))
	if err != nil {
		return err
	}
	c.shop.Store(shop)
	follow := manager.RunnableFunc(func(ctx context.Context) error {
		store.Follow(ctx, c.shown, func(err error) {
			c.log.Error(err, "Cannot write the keys of buyers into their sales; it is tried again")
		})
		return nil
	})
	if err := c.mgr.Add(follow); err != nil {
		return fmt.Errorf("add what follows the keys of buyers: %w", err)
	}
	// What the time and people want of a contract is done by a controller, by the same rules as what its buyer wants.
	waits := contract.Seller{ReserveFor: c.reserveFor, DecideFor: c.decideFor}
	audit := audit{c.log.WithName("contracts")}
	changed := shop.Changed
	if c.plugin != nil {
		changed = func() { shop.Changed(); c.plugin.Changed() }
	}
	// With a broker, its Consumers are granted what was sold, before a buyer is let in.
	var issuer peering.Seller = guarded.NewSeller(driver, c.guarded)
	if c.broker {
		consumers, err := sales.SetupConsumers(c.mgr, driver)
		if err != nil {
			return err
		}
		issuer = consumers.Seller(issuer)
	}
	peerings := sales.NewPeerings(c.mgr.GetAPIReader(), store, issuer)
	err = errors.Join(store.Watch(ctx, c.mgr.GetCache()), sales.Setup(c.mgr, sales.Config{
		Client: c.mgr.GetClient(), Reader: c.mgr.GetAPIReader(), Peerings: peerings, Changed: changed, Retention: sales.DefaultRetention(),
		Applier: negotiation.Applier{Store: store, Offers: shop, Seller: waits, Audit: audit, Now: time.Now},
		Tidy:    store.Tidy,
		Ledger:  store.Lately,
		Events:  c.events,
	}))
	// Buyers are answered last, when all that they are answered by is there.
	if err != nil || c.address == "0" {
		return err
	}
	c.negotiation, err = negotiation.NewServer(negotiation.Config{
		Party: c.identity.ID(), Key: c.identity.Key, Keys: c.identity.Keys, Learn: store.Learn, Identify: identify(c.catalog.Identify, store), Store: store, Offers: shop,
		Admission:   negotiation.Owners{Admission: shop, Owns: owns(c.catalog, store)},
		Credentials: peerings, Reach: buyers{c.reach, c.catalog, c.log.WithName("negotiation")},
		Audit: audit, Seller: waits, Drain: c.drain, Limits: negotiation.DefaultLimits(), Log: c.log.WithName("negotiation"),
		Refused: func(reason string) { c.measured.refused.WithLabelValues(reason).Inc() },
	})
	return err
}

// identify asks who has a key: registries, and else with whom there are contracts. The longest chain of keys counts that either of them has seen.
func identify(shown negotiation.Identify, store *books.Store) negotiation.Identify {
	return func(ctx context.Context, key ed25519.PublicKey) (party.Keys, error) {
		keys, err := shown(ctx, key)
		switch {
		case errors.Is(err, negotiation.ErrStranger):
			return store.Identify(ctx, key)
		case err != nil:
			return party.Keys{}, err
		}
		return store.Longest(ctx, keys)
	}
}

// owns tells which clusters parties have: by registries, or of those that none shows any more, by their contracts.
func owns(registries purchases.Parties, store *books.Store) func(ctx context.Context, id party.ID, of cluster.ID) (owns, known bool, err error) {
	return func(ctx context.Context, id party.ID, of cluster.ID) (owns, known bool, err error) {
		if _, shown := registries.Party(id); shown {
			return registries.Owns(id, of), true, nil
		}
		bought, err := store.Bought(ctx, id, of)
		return bought, bought, err
	}
}

// offersConfig returns what sells the offers of this cluster.
func (c *connector) offersConfig(store *books.Store) offers.Config {
	config := offers.Config{
		Client: c.mgr.GetClient(), Reader: c.mgr.GetAPIReader(), Party: c.identity.ID(), Key: c.identity.Key, Ledger: store.Lately, Registries: c.catalog, Guarded: c.guarded.Check,
		Events: c.events, Clock: clock.RealClock{},
		Kind: connectorv1alpha1.KindCluster, Capacity: capacity.OfCluster(c.mgr.GetClient(), int32(c.share)), //nolint:gosec // It is a percentage.
	}
	if c.broker {
		config.Measured = kpisource.OfBroker(c.mgr.GetClient(), c.identity.ID())
		config.Kind, config.Capacity = connectorv1alpha1.KindBroker, capacity.OfBroker(c.mgr.GetClient(), int32(c.share)) //nolint:gosec // As above.
	}
	return config
}

// told has the offers looked at after a registry was told of them.
func (c *connector) told() {
	if shop := c.shop.Load(); shop != nil {
		shop.Changed()
	}
}

// listed has requests and books look at what registries show, which has changed.
func (c *connector) listed() {
	if asking := c.asking.Load(); asking != nil {
		asking.Changed()
	}
	select {
	case c.shown <- struct{}{}:
	default: // It is told already.
	}
}

// audit logs what becomes of contracts. Their records have it too.
type audit struct{ log logr.Logger }

// Transition implements negotiation.Audit.
func (a audit) Transition(_ context.Context, key contract.Key, t contract.Transition) {
	a.log.Info("Contract", "buyer", key.Buyer, "id", key.ID, "from", t.From, "to", t.To, "why", t.Reason)
}

// cacheOptions keep in memory only what is read of the objects of which there are many.
func cacheOptions() cache.Options {
	return cache.Options{DefaultTransform: daemon.Strip, ByObject: map[client.Object]cache.ByObject{
		&connectorv1alpha1.Sale{}: {Transform: books.Kept},
		&liqo.ForeignCluster{}:    {Transform: daemon.Without(liqo.KeepIdentity)},
		&liqo.TunnelEndpoint{}:    {Transform: daemon.Without(func(tunnel *liqo.TunnelEndpoint) { tunnel.OwnerReferences = nil })},
		&corev1.Node{}:            {Transform: daemon.Without(func(node *corev1.Node) { node.Annotations, node.Status.Images = nil, nil })},
		&corev1.Pod{}: {Transform: func(o any) (any, error) {
			if pod, ok := o.(*corev1.Pod); ok {
				return kept(pod), nil
			}
			return o, nil
		}},
	}}
}

// kept returns of a pod where it is, whether another cluster has brought it, and otherwise what it requests.
func kept(pod *corev1.Pod) *corev1.Pod {
	small := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if manager, ok := pod.Labels[liqo.LabelManagedBy]; ok && manager == liqo.ManagedByShadowPod {
		small.Labels = map[string]string{liqo.LabelManagedBy: manager}
		return small
	}
	small.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: podcapacity.Requests(&pod.Spec)}}}
	return small
}

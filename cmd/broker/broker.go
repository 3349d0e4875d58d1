// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/consumer"
	"github.com/capacitorset/liqo-broker/pkg/controller/provider"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin"
	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/registry"
	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
)

const (
	// leaseName is the name of the replicas' lease.
	leaseName = "liqo-broker"
	// component is the source of the broker's events.
	component = "liqo-broker"
	// The broker's calls to the API server per second. The most calls come from
	// draining: a quarter of all pods of a provider, then the next.
	callsPerSecond, callsAtOnce = 50, 100
	// syncCheckTimeout is how long a readiness probe waits for the caches.
	syncCheckTimeout = 500 * time.Millisecond
)

// brokerConfig is what the broker is made from.
type brokerConfig struct {
	options

	strategy liqo.MappingStrategy
	rest     *rest.Config
	log      logr.Logger
}

// broker is the daemon.
type broker struct {
	cfg    brokerConfig
	direct client.Client // Reads past the cache.
	mgr    ctrl.Manager
	plugin *resourceplugin.Server
	api    *httpapi.API
}

// newBroker puts the daemon together. It calls the API server only to learn
// which resources there are.
func newBroker(ctx context.Context, cfg brokerConfig) (*broker, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), liqo.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register the API types: %w", err)
	}
	config := rest.CopyConfig(cfg.rest)
	config.QPS, config.Burst = callsPerSecond, callsAtOnce
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", config.Host, err)
	}
	cached, err := cacheOptions()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        cfg.log,
		Cache:                         cached,
		Metrics:                       metricsserver.Options{BindAddress: cfg.metricsAddress},
		HealthProbeBindAddress:        cfg.healthAddress,
		LeaderElection:                cfg.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       cfg.leaderNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager for %s: %w", config.Host, err)
	}
	b := &broker{cfg: cfg, direct: direct, mgr: mgr}
	if err := b.setupHealth(); err != nil {
		return nil, err
	}
	api := httpapi.Config{
		Client: mgr.GetClient(), Log: cfg.log.WithName("api"), Catalog: cfg.catalog, Orchestrator: cfg.orchestrator,
	}
	if !cfg.anonymousToggle {
		api.Gate = httpapi.KubernetesGate{Client: mgr.GetClient()}
	}
	if b.api, err = httpapi.New(api); err != nil {
		return nil, err
	}
	if cfg.brokers() {
		return b, b.setupBrokering(ctx)
	}
	return b, nil
}

// setupHealth adds the probes: alive is who answers, ready is who knows the cluster.
func (b *broker) setupHealth() error {
	synced := func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), syncCheckTimeout)
		defer cancel()
		if !b.mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled")
		}
		return nil
	}
	if err := errors.Join(b.mgr.AddHealthzCheck("ping", healthz.Ping), b.mgr.AddReadyzCheck("caches", synced)); err != nil {
		return fmt.Errorf("add the health checks: %w", err)
	}
	return nil
}

// setupBrokering adds what an orchestrator or an aggregator has and a catalog has not.
func (b *broker) setupBrokering(ctx context.Context) error {
	providers := registry.New(b.mgr.GetClient())
	b.plugin = resourceplugin.New(providers, b.mgr.GetCache().WaitForCacheSync)
	if err := registry.AddIndexes(ctx, b.mgr.GetFieldIndexer()); err != nil {
		return err
	}
	informer, err := b.mgr.GetCache().GetInformer(ctx, &v1alpha1.Provider{})
	if err != nil {
		return fmt.Errorf("watch the providers: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { b.plugin.Changed() },
		UpdateFunc: func(_, _ any) { b.plugin.Changed() },
		DeleteFunc: func(any) { b.plugin.Changed() },
	}); err != nil {
		return fmt.Errorf("watch the providers: %w", err)
	}

	m := newBrokerMetrics(b.mgr.GetClient(), b.plugin)
	if err := m.register(metrics.Registry); err != nil {
		return err
	}
	if err := provider.Setup(b.mgr); err != nil {
		return err
	}
	modes := consumer.Modes{Orchestrator: b.cfg.orchestrator, Aggregator: b.cfg.aggregator}
	if err := consumer.Setup(b.mgr, modes); err != nil {
		return err
	}
	return twin.Setup(b.mgr, twin.Config{
		Client:   b.mgr.GetClient(),
		Registry: providers,
		Recorder: b.mgr.GetEventRecorderFor(component),
		Strategy: b.cfg.strategy,
		Remade:   m.remade,
	})
}

// run runs the daemon until ctx ends or one of its parts fails, and returns when
// all parts have ended. The resource plugin answers from the first moment: Liqo's
// controller manager exits if it does not. All else waits for the preflight.
func (b *broker) run(ctx context.Context) error {
	api, err := (&net.ListenConfig{}).Listen(ctx, "tcp", b.cfg.apiAddress)
	if err != nil {
		return fmt.Errorf("--api-address: %w", err)
	}
	defer api.Close() //nolint:errcheck // Closed already, unless the daemon ends before it serves.
	group, ctx := errgroup.WithContext(ctx)
	if b.plugin != nil {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", b.cfg.pluginAddress)
		if err != nil {
			return fmt.Errorf("--resource-plugin-address: %w", err)
		}
		group.Go(func() error { return b.plugin.Run(ctx, listener) })
	}
	group.Go(func() error {
		if err := preflight(ctx, b.direct, needs(&b.cfg.options)); err != nil {
			return err
		}
		if err := b.mgr.Start(ctx); err != nil {
			return fmt.Errorf("run the controllers: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		if !b.mgr.GetCache().WaitForCacheSync(ctx) {
			return nil
		}
		return b.api.Run(ctx, api)
	})
	return group.Wait()
}

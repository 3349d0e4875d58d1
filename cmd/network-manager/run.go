// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/announce"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/callers"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/inventory"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/relay"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/reports"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/server"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
)

// The API server is asked once for each relay address that is made. They are made one
// after the other, so that this is no burden; and thousands of pods may start at once.
const (
	callsPerSecond = 100
	callsAtOnce    = 200
)

// run serves the remote IPAM until ctx ends or one of its parts fails.
func run(ctx context.Context, c config, broker cluster.ID, log logr.Logger) error {
	// The clusters' objects, and Liqo's IPAM.
	logging.Capture(log)
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the Kubernetes API: %w", err)
	}
	restConfig.QPS, restConfig.Burst = callsPerSecond, callsAtOnce
	mgr, err := newManager(restConfig, log)
	if err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return fmt.Errorf("set up the connection to the Kubernetes API: %w", err)
	}
	authorities, err := callers.NewAuthorities(ctx, clientset, mgr, log.WithName("callers"))
	if err != nil {
		return err
	}
	ipam, err := liqo.NewIPAM(c.ipamServer)
	if err != nil {
		return err
	}
	defer func() {
		if err := ipam.Close(); err != nil {
			log.Error(err, "Cannot close the connection to Liqo's IPAM")
		}
	}()

	// Whom to serve, and under which certificate.
	issued := callers.FromLiqo(mgr.GetClient(), mgr.GetAPIReader())
	announcements := announce.New(mgr.GetClient(), broker, issued)
	if err := announcements.Setup(mgr); err != nil {
		return fmt.Errorf("set up the announcer: %w", err)
	}
	certificate := selfsigned.New(remoteipam.ServerName, announcements.Publish)

	// What to answer.
	recorder := reports.NewRecorder(mgr.GetClient(), clock.RealClock{})
	if err := recorder.Setup(mgr); err != nil {
		return fmt.Errorf("set up the recorder of reports: %w", err)
	}
	store, ready := inventory.NewStore(), make(chan struct{})
	relays, err := newRelays(mgr, ipam, store, ready, c.maxRelays)
	if err != nil {
		return err
	}
	peers := &peernet.Peers{}
	api, err := server.New(server.Config{
		Broker:         broker,
		Inventory:      store,
		Relay:          relays,
		Reports:        recorder,
		Credentials:    credentials.NewTLS(server.TLSConfig(certificate, authorities.Pool)),
		Callers:        callers.New(authorities, issued),
		Source:         peers.Source,
		MaxConnections: c.maxConnections,
		Told:           []error{relay.ErrNotOffloaded, relay.ErrTaken, relay.ErrTooMany, liqo.ErrExternalCIDRFull},
		Log:            log.WithName("remote-ipam"),
	})
	if err != nil {
		return err
	}

	// Listen before the caches are read, so that an address in use is told at once.
	serve := func(ctx context.Context, listener net.Listener) error {
		if err := inventory.Watch(ctx, mgr.GetCache(), store, log.WithName("inventory")); err != nil {
			return err
		}
		close(ready)
		log.Info("Serving the remote IPAM", "address", listener.Addr().String(), "broker", broker)
		return api.Serve(ctx, listener)
	}

	// Who may reach which port.
	readers := delegatedauth.New(mgr.GetClient())
	if err := peers.Watch(ctx, mgr.GetCache()); err != nil {
		return err
	}
	noPeer := func(a netip.Addr) bool { return !peers.Includes(a) }
	if err := addPorts(ctx, mgr, []port{
		{"--listen", c.listen, serve},
		{"--metrics-address", c.metricsAddress, metricsPort(readers, certificate, peers.Excludes)},
		{"--health-address", c.healthAddress, healthPort(ready, noPeer)},
	}); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(certificate.Run)); err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// newManager returns a manager with a cache of what the remote IPAM reads.
func newManager(restConfig *rest.Config, log logr.Logger) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), liqo.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	lenient.Wrap(restConfig, scheme, log.WithName("objects"))
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Logger: log,
		// They are served, as the probes are, by ports of our own.
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Cache:                  cache.Options{ByObject: inventory.CacheOptions()},
		Client: client.Options{Cache: &client.CacheOptions{
			// Few of ours; a cache would hold every one of the cluster.
			DisableFor: []client.Object{&corev1.ConfigMap{}, &rbacv1.RoleBinding{}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the Kubernetes API: %w", err)
	}
	return mgr, nil
}

// newRelays returns what makes relay addresses, and has them freed once the store is ready.
func newRelays(
	mgr ctrl.Manager, ipam *liqo.IPAM, store *inventory.Store, ready <-chan struct{}, limit int,
) (*observedRelays, error) {
	mappings := relay.NatMappings{Reader: mgr.GetClient()}
	allocator := relay.NewAllocator(ipam, store, mappings, relay.NatMappings{Reader: mgr.GetAPIReader()}, limit)
	if err := relay.NewCollector(allocator, mgr.GetClient(), ready).Setup(mgr); err != nil {
		return nil, fmt.Errorf("set up the collector of relay addresses: %w", err)
	}
	relays := newObservedRelays(allocator, mappings, mgr.GetEventRecorderFor("remote-ipam"))
	return relays, relays.register(ctrlmetrics.Registry)
}

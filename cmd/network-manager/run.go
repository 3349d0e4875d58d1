// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/announcer"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/direct"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/inventory"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/relay"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/roundtrip"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/server"
	"github.com/capacitorset/liqo-broker/pkg/selfsigned"
)

// clientCA is where kube-apiserver publishes the CA of its clients
// (k8s.io/apiserver, the ConfigMap that extension servers read).
var clientCA = client.ObjectKey{Namespace: "kube-system", Name: "extension-apiserver-authentication"}

const clientCAKey = "client-ca-file"

// The API server is asked once for each relay address that is made. They are made one
// after the other, so that this is no burden; and thousands of pods may start at once.
const (
	callsPerSecond = 100
	callsAtOnce    = 200
)

func run(ctx context.Context, c config, broker cluster.ID, log logr.Logger) error {
	logging.Capture(log)
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the Kubernetes API: %w", err)
	}
	restConfig.QPS, restConfig.Burst = callsPerSecond, callsAtOnce
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), liqo.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register API types: %w", err)
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:                 scheme,
		Logger:                 log,
		Metrics:                metricsserver.Options{BindAddress: c.metricsAddress},
		HealthProbeBindAddress: c.healthAddress,
		Cache:                  cache.Options{ByObject: inventory.CacheOptions()},
		Client: client.Options{Cache: &client.CacheOptions{
			// Few of ours; a cache would hold every one of the cluster.
			DisableFor: []client.Object{&corev1.ConfigMap{}, &rbacv1.RoleBinding{}},
		}},
	})
	if err != nil {
		return fmt.Errorf("set up the connection to the Kubernetes API: %w", err)
	}

	pool, err := readClientCAs(ctx, mgr.GetAPIReader())
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

	announcements := announcer.New(mgr.GetClient(), broker)
	if err := announcements.Setup(mgr); err != nil {
		return fmt.Errorf("set up the announcer: %w", err)
	}
	tunnels := direct.NewRecorder(mgr.GetClient())
	if err := tunnels.Setup(mgr); err != nil {
		return fmt.Errorf("set up the recorder of tunnels: %w", err)
	}
	certificate := selfsigned.New(remoteipam.ServerName, announcements.Publish)
	store := inventory.NewStore()
	mappings := relay.NatMappings{Reader: mgr.GetClient()}
	keeper := relay.NewKeeper(ipam, store, mappings, relay.NatMappings{Reader: mgr.GetAPIReader()}, c.maxRelays)
	relays := newObservedRelays(keeper, mappings, mgr.GetEventRecorderFor("remote-ipam"))
	if err := relays.register(ctrlmetrics.Registry); err != nil {
		return err
	}
	api, err := server.New(server.Config{
		Broker:      broker,
		Inventory:   store,
		Relay:       relays,
		Tunnels:     tunnels,
		RoundTrips:  roundtrip.NewRecorder(mgr.GetClient(), clock.RealClock{}),
		Credentials: credentials.NewTLS(server.TLSConfig(certificate, pool)),
		Log:         log.WithName("remote-ipam"),
	})
	if err != nil {
		return err
	}
	ready := make(chan struct{})
	if err := relay.NewCollector(keeper, mgr.GetClient(), ready).Setup(mgr); err != nil {
		return fmt.Errorf("set up the collector of relay addresses: %w", err)
	}
	// Listen before the caches are read, so that an address in use is told at once.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.listen)
	if err != nil {
		return fmt.Errorf("--listen=%s: %w", c.listen, err)
	}

	serve := func(ctx context.Context) error {
		if err := inventory.Watch(ctx, mgr.GetCache(), store, log.WithName("inventory")); err != nil {
			return err
		}
		close(ready)
		log.Info("Serving the remote IPAM", "address", listener.Addr().String(), "broker", broker)
		return api.Serve(ctx, listener)
	}
	if err := errors.Join(
		mgr.Add(manager.RunnableFunc(serve)),
		mgr.Add(manager.RunnableFunc(certificate.Run)),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("inventory", isClosed(ready)),
	); err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

func readClientCAs(ctx context.Context, reader client.Reader) (*x509.CertPool, error) {
	var configMap corev1.ConfigMap
	if err := reader.Get(ctx, clientCA, &configMap); err != nil {
		return nil, fmt.Errorf("read the CA of the cluster's clients from ConfigMap %s: %w", clientCA, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(configMap.Data[clientCAKey])) {
		return nil, fmt.Errorf("ConfigMap %s has no certificate under %s: this cluster does not authenticate its clients by certificates", clientCA, clientCAKey)
	}
	return pool, nil
}

func isClosed(channel <-chan struct{}) healthz.Checker {
	return func(*http.Request) error {
		select {
		case <-channel:
			return nil
		default:
			return errors.New("not read yet")
		}
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/ipamclient"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/announce"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/callers"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/inventory"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/relay"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/reports"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/server"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// The API server is asked once for each relay address that is made. They are made one
// after the other, so that this is no burden; and thousands of pods may start at once.
const (
	callsPerSecond = 100
	callsAtOnce    = 200
)

// sidecarConfig is what the sidecar is made from.
type sidecarConfig struct {
	options

	rest *rest.Config
	log  logr.Logger
}

// sidecar serves the remote IPAM.
type sidecar struct {
	cfg    sidecarConfig
	scheme *runtime.Scheme
	ipam   *ipamclient.Client
	store  *inventory.Store
	known  chan struct{}  // Closed when the store has the federation.
	peers  *peernet.Peers // Who peers are is not known until the parts are made.
	parts  *wake.Later[*parts]
}

// parts are those of the sidecar that need an API server.
type parts struct {
	mgr         ctrl.Manager
	certificate *selfsigned.Certificate
	readers     *delegatedauth.Reviewer
	api         *server.Server
}

// newSidecar makes the parts of the sidecar that need no API server. It must be run, or else
// closed.
func newSidecar(cfg sidecarConfig) (*sidecar, error) {
	scheme, err := daemon.Kinds(v1alpha1.AddToScheme, v09.AddToScheme)
	if err != nil {
		return nil, err
	}
	cfg.rest = daemon.Calls(cfg.rest, callsPerSecond, callsAtOnce, scheme, cfg.log)
	ipam, err := ipamclient.New(cfg.ipamServer)
	if err != nil {
		return nil, err
	}
	return &sidecar{
		cfg: cfg, scheme: scheme, ipam: ipam, store: inventory.NewStore(), known: make(chan struct{}), peers: &peernet.Peers{},
		parts: wake.NewLater[*parts](),
	}, nil
}

// managerOptions returns what a manager caches: what the remote IPAM reads.
func managerOptions(scheme *runtime.Scheme, log logr.Logger) ctrl.Options {
	return ctrl.Options{
		Scheme: scheme,
		Logger: log,
		Cache:  cached.Options(inventory.CacheOptions()),
		Client: client.Options{Cache: &client.CacheOptions{
			// Few of ours; a cache would hold every one of the cluster.
			DisableFor: []client.Object{&corev1.ConfigMap{}, &rbacv1.RoleBinding{}},
		}},
	}
}

// setup makes the parts that need an API server.
func (s *sidecar) setup(ctx context.Context) (*parts, error) {
	// The clusters' objects.
	mgr, err := daemon.NewManager(s.cfg.rest, managerOptions(s.scheme, s.cfg.log))
	if err != nil {
		return nil, err
	}

	// Who is believed to be whom, where they call from, and under which certificate they are served.
	clientset, err := kubernetes.NewForConfig(s.cfg.rest)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the Kubernetes API: %w", err)
	}
	authorities, err := callers.NewAuthorities(ctx, clientset, mgr, s.cfg.log.WithName("callers"))
	if err != nil {
		return nil, err
	}
	if err := s.peers.Watch(ctx, mgr.GetCache(), v09.Line{}); err != nil {
		return nil, err
	}
	issued := callers.FromLiqo(mgr.GetClient(), mgr.GetAPIReader())
	announcements, err := announce.Setup(mgr, announce.Config{
		Client: mgr.GetClient(), Broker: s.cfg.cluster(), Issued: issued, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, err
	}
	certificate := selfsigned.New(remoteipam.ServerName, announcements.Publish)
	if err := mgr.Add(manager.RunnableFunc(certificate.Run)); err != nil {
		return nil, fmt.Errorf("add the certificate of the remote IPAM: %w", err)
	}

	// What to answer, and what becomes of what is told.
	recorder, err := reports.Setup(mgr, reports.Config{Client: mgr.GetClient(), Clock: clock.RealClock{}})
	if err != nil {
		return nil, err
	}
	relays, err := s.newRelays(mgr, certificate)
	if err != nil {
		return nil, err
	}
	api, err := server.New(server.Config{
		Broker:         s.cfg.cluster(),
		Inventory:      s.store,
		Relay:          relays,
		Reports:        recorder,
		Credentials:    credentials.NewTLS(server.TLSConfig(certificate, authorities.Pool)),
		Callers:        callers.New(authorities, issued),
		Source:         s.peers.Source,
		MaxConnections: s.cfg.maxConnections,
		Told:           []error{relay.ErrNotOffloaded, relay.ErrTaken, relay.ErrTooMany, ipamclient.ErrExternalCIDRFull},
		Log:            s.cfg.log.WithName("remote-ipam"),
	})
	if err != nil {
		return nil, err
	}
	return &parts{mgr: mgr, certificate: certificate, readers: delegatedauth.New(mgr.GetClient()), api: api}, nil
}

// newRelays returns what makes relay addresses, and has them freed once the federation is known.
func (s *sidecar) newRelays(mgr ctrl.Manager, certificate *selfsigned.Certificate) (*observedRelays, error) {
	allocator, err := relay.Setup(mgr, relay.Config{
		IPAM: s.ipam, Pods: s.store, Known: s.known, Cached: mgr.GetClient(), Live: mgr.GetAPIReader(), Limit: s.cfg.maxRelays,
		Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, err
	}
	relays := newObservedRelays(allocator, relay.NatMappings{Reader: mgr.GetClient()}, mgr.GetEventRecorderFor("remote-ipam"))
	return relays, errors.Join(relays.register(ctrlmetrics.Registry), registerProgram(ctrlmetrics.Registry, certificate.Get))
}

// runSidecar runs the sidecar until ctx ends or one of its parts fails, and returns when all parts have
// ended. An address in use is told at once, and the kubelet hears that the program lives before
// the API server answers.
func (s *sidecar) runSidecar(ctx context.Context) error {
	defer s.close()
	return ports.Run(ctx, s.ports(), func(ctx context.Context) error {
		p, err := s.setup(ctx)
		if err != nil {
			return err
		}
		s.parts.Set(p)
		if err := p.mgr.Start(ctx); err != nil {
			return fmt.Errorf("run the controllers: %w", err)
		}
		return nil
	})
}

// close ends the connection to Liqo's IPAM.
func (s *sidecar) close() {
	if err := s.ipam.Close(); err != nil {
		s.cfg.log.Error(err, "Cannot close the connection to Liqo's IPAM")
	}
}

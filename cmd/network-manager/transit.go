// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/logging"
	"github.com/capacitorset/liqo-broker/pkg/netflag"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	leases "github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/serving/ports"
	"github.com/capacitorset/liqo-broker/pkg/transit/endpoints"
	"github.com/capacitorset/liqo-broker/pkg/transit/firewall"
)

const (
	// transitName is the name of the lease of the transit, and transitNamespace the namespace where it is installed.
	transitName      = "liqo-broker-transit"
	transitNamespace = "liqo-broker-transit"
)

// transitOptions are the parsed command line of the transit.
type transitOptions struct {
	allow           netflag.Prefixes
	healthAddress   string
	liqoNamespace   string
	namespace       string
	leaderElect     bool
	leaderNamespace string
	leaderIdentity  string // Another one each time if empty.
	log             logging.Options
}

func (o *transitOptions) validate() error {
	for _, prefix := range o.allow {
		if !prefix.Addr().Is4() {
			return fmt.Errorf("--allow=%s: must be IPv4: Liqo v1.2.0 has nothing else", prefix)
		}
	}
	if o.healthAddress == "0" {
		return nil
	}
	if _, _, err := net.SplitHostPort(o.healthAddress); err != nil {
		return fmt.Errorf("--health-address=%s: not [HOST]:PORT: %w", o.healthAddress, err)
	}
	return nil
}

// transitPath keeps peers of a broker with Liqo 1.x apart, and has them reach what they may.
type transitPath struct {
	transitOptions

	rest   *rest.Config
	log    logr.Logger
	scheme *runtime.Scheme
	peers  *peernet.Peers // Who peers are is not known until the parts are made.
	parts  daemon.Parts[transitParts]
}

// transitParts are those of the transit that need an API server.
type transitParts struct{ ctrl.Manager }

// Caches returns what has to be filled before it is ready.
func (p transitParts) Caches() cache.Cache { return p.GetCache() }

func newTransitCommand() *cobra.Command {
	o := &transitOptions{}
	command := &cobra.Command{
		Use:   "transit",
		Short: "Keep peers of a broker with Liqo 1.x apart on the way through it",
		Long: "Keep peers of a broker with Liqo 1.x apart on the way through it: its gateways drop what a peer sends to anything but the pods " +
			"of providers that it was granted, and providers reach the endpoints of its consumers' Services.",
		Args: program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return program.Usage(err)
			}
			log, config, err := daemon.Open(o.log)
			if err != nil {
				return err
			}
			scheme, err := daemon.Kinds(v1.Line{}.AddToScheme)
			if err != nil {
				return err
			}
			t := &transitPath{
				transitOptions: *o, rest: config, log: log, scheme: scheme, peers: &peernet.Peers{}, parts: daemon.NewParts[transitParts](),
			}
			return t.run(command.Context())
		},
	}
	flags := command.Flags()
	// What peers reach, and who asks whether it works.
	flags.Var(&o.allow, "allow", "IPv4 prefix that all peers reach besides, also of this cluster's own pods; may be repeated")
	flags.StringVar(&o.healthAddress, "health-address", ":6003", `address that serves /healthz and /readyz; "0" for none`)
	// Where Liqo and this are, and how several replicas share the work.
	flags.StringVar(&o.liqoNamespace, "liqo-namespace", liqo.DefaultNamespace, "namespace in which Liqo runs")
	flags.StringVar(&o.namespace, "namespace", transitNamespace, "namespace of the FirewallConfiguration of all gateways")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "enable leader election: of several replicas only the leader writes")
	flags.StringVar(&o.leaderIdentity, "leader-election-identity", "",
		"name of this replica in the lease, which should survive a restart, such as the name of its pod; random if empty")
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", transitNamespace, "namespace of the replicas' lease")
	o.log.AddFlags(flags)
	return command
}

// run works until the context ends, or one of the parts fails.
func (t *transitPath) run(ctx context.Context) error {
	health := ports.Port{Flag: "--health-address", Address: t.healthAddress, Serve: func(ctx context.Context, l net.Listener) error {
		probes := diagnostics.Probes{Admits: t.peers.ExcludesKnown, Ready: t.parts.Ready}
		return probes.Serve(ctx, l)
	}}
	return ports.Run(ctx, ports.Opened([]ports.Port{health}), func(ctx context.Context) error {
		mgr, err := t.setup(ctx)
		if err != nil {
			return err
		}
		t.parts.Set(transitParts{mgr})
		if err := mgr.Start(ctx); err != nil {
			return fmt.Errorf("run the transit: %w", err)
		}
		return nil
	})
}

// setup makes the parts that need an API server.
func (t *transitPath) setup(ctx context.Context) (ctrl.Manager, error) {
	config := daemon.Calls(t.rest, callsPerSecond, callsAtOnce, t.scheme, t.log)
	direct, err := client.New(config, client.Options{Scheme: t.scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server %s: %w", config.Host, err)
	}
	own, err := v1.Line{}.OwnIdentity(ctx, direct, t.liqoNamespace)
	if err != nil {
		return nil, err
	}
	cached, err := transitCache(t.liqoNamespace)
	if err != nil {
		return nil, err
	}
	// The manager, and what tells the probes who a peer is.
	managed := ctrl.Options{
		Scheme: t.scheme, Logger: t.log, Cache: cached, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	}
	if t.leaderElect {
		replicas := leases.Lease{Namespace: t.leaderNamespace, Name: transitName, Identity: t.leaderIdentity}
		if err := replicas.Elect(&managed, config); err != nil {
			return nil, err
		}
	}
	mgr, err := ctrl.NewManager(config, managed)
	if err != nil {
		return nil, fmt.Errorf("make the manager for %s: %w", config.Host, err)
	}
	if err := t.peers.Watch(ctx, mgr.GetCache(), v1.Line{}); err != nil {
		return nil, err
	}
	for _, i := range (v1.Line{}).Indexes() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, i.Object, i.Field, i.Extract); err != nil {
			return nil, fmt.Errorf("index %T by %s: %w", i.Object, i.Field, err)
		}
	}
	return mgr, t.register(mgr, own.ID)
}

// register has the controllers run.
func (t *transitPath) register(mgr ctrl.Manager, own cluster.ID) error {
	return errors.Join(
		firewall.Setup(mgr, firewall.Config{
			Client: mgr.GetClient(), Own: own, Namespace: t.namespace, Liqo: t.liqoNamespace, Allowed: t.allow,
		}),
		endpoints.Setup(mgr, endpoints.Config{Client: mgr.GetClient(), Own: own}),
	)
}

// transitCache returns what is kept in memory: namespaces of peers, what consumers and this program write there, and of what Liqo makes
// for each pod nothing.
func transitCache(liqos string) (cache.Options, error) {
	slices, err := v1.EndpointsSelector()
	if err != nil {
		return cache.Options{}, err
	}
	by := map[client.Object]cache.ByObject{
		&corev1.Namespace{}:          {Label: liqo.PeerNamespaceSelector()},
		&discoveryv1.EndpointSlice{}: {Label: slices},
		&api.FirewallConfiguration{}: {Label: v1.TransitSelector()},
		&api.Network{}:               {Namespaces: map[string]cache.Config{liqos: {}}},
		&api.IP{}: {Namespaces: map[string]cache.Config{
			liqos: {}, cache.AllNamespaces: {LabelSelector: v1.TransitSelector()},
		}},
	}
	for kind, drop := range (v1.Line{}).Dropped(&liqo.Compactor{}) {
		by[kind] = cache.ByObject{Transform: daemon.Without(drop)}
	}
	return cache.Options{ByObject: by, DefaultTransform: daemon.Strip}, nil
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/transit"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/netflag"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/transit/endpoints"
	"github.com/capacitorset/liqo-broker/pkg/transit/firewall"
	"github.com/capacitorset/liqo-broker/pkg/transit/reports"
)

const (
	// transitName is the name of the lease of the transit, and transitNamespace the namespace where it is installed.
	transitName      = "liqo-broker-transit"
	transitNamespace = "liqo-broker-transit"
	// defaultMaxAddresses is as many as a namespace of a consumer may have pods by default, and a 65th of what Liqo's external network has.
	defaultMaxAddresses = 1000
	// bytesOfAddress is how much memory of what a consumer writes is kept for each address that may be opened: more than an EndpointSlice
	// takes that has one.
	bytesOfAddress = 2 << 10
)

// transitOptions are the parsed command line of the transit.
type transitOptions struct {
	daemon.ReplicaOptions

	allow        netflag.Prefixes
	namespace    string
	maxAddresses int
}

func (o *transitOptions) validate() error {
	for _, prefix := range o.allow {
		if !prefix.Addr().Is4() {
			return fmt.Errorf("--allow=%s: must be IPv4: Liqo v1.2.0 has nothing else", prefix)
		}
	}
	if o.maxAddresses < 1 || o.maxAddresses > 1<<16 {
		return fmt.Errorf("--max-addresses=%d: must be from 1 to %d", o.maxAddresses, 1<<16)
	}
	return o.Validate()
}

// kept returns what bounds the memory of what one consumer writes.
func (o *transitOptions) kept() *endpoints.Kept {
	return endpoints.NewKept(int64(o.maxAddresses) * bytesOfAddress)
}

// transitPath keeps peers of a broker with Liqo 1.x apart, and has them reach what they may.
type transitPath struct {
	transitOptions

	replica *daemon.Replica
	peers   *peernet.Peers // Who peers are is not known until the parts are made.
}

func newTransitCommand() *cobra.Command {
	o := &transitOptions{ReplicaOptions: daemon.ReplicaOptions{
		HealthAddress: ":6003", LiqoNamespace: liqo.DefaultNamespace, LeaderNamespace: transitNamespace,
	}}
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
			peers := &peernet.Peers{}
			replica, err := daemon.OpenReplica(daemon.ReplicaConfig{
				ReplicaOptions: o.ReplicaOptions, Name: transitName, Kinds: v1.Line{}.AddToScheme,
				CallsPerSecond: callsPerSecond, CallsAtOnce: callsAtOnce, Admits: peers.ExcludesKnown,
			})
			if err != nil {
				return err
			}
			t := &transitPath{transitOptions: *o, replica: replica, peers: peers}
			return replica.Run(command.Context(), t.setup)
		},
	}
	flags := command.Flags()
	flags.Var(&o.allow, "allow", "IPv4 prefix that all peers reach besides, also of this cluster's own pods; may be repeated")
	flags.IntVar(&o.maxAddresses, "max-addresses", defaultMaxAddresses, fmt.Sprintf("maximum number of addresses of a consumer's own pods "+
		"that are opened to providers, for endpoints of its Services in all of its namespaces, and %d in each; the oldest EndpointSlices "+
		"go first", transit.MaxInNamespace))
	flags.StringVar(&o.namespace, "namespace", transitNamespace, "namespace of the FirewallConfiguration of all gateways")
	o.AddFlags(flags, "writes")
	return command
}

// setup makes the parts that need an API server.
func (t *transitPath) setup(ctx context.Context) (daemon.Made, error) {
	kept := t.kept()
	cached, err := transitCache(t.LiqoNamespace, kept)
	if err != nil {
		return daemon.Made{}, err
	}
	mgr, err := t.replica.Manager(ctrl.Options{Cache: cached})
	if err != nil {
		return daemon.Made{}, err
	}
	if err := kept.Watch(ctx, mgr.GetCache()); err != nil {
		return daemon.Made{}, err
	}
	// Who this is, what tells the probes who a peer is, and by what objects are found.
	own, err := v1.Line{}.OwnIdentity(ctx, mgr.GetAPIReader(), t.LiqoNamespace)
	if err != nil {
		return daemon.Made{}, err
	}
	if err := t.peers.Watch(ctx, mgr.GetCache(), v1.Line{}); err != nil {
		return daemon.Made{}, err
	}
	if err := line.AddIndexes(ctx, mgr.GetFieldIndexer(), v1.Line{}.Indexes()); err != nil {
		return daemon.Made{}, err
	}
	return daemon.Made{Manager: mgr}, t.register(mgr, own.ID, kept)
}

// register has the controllers run.
func (t *transitPath) register(mgr ctrl.Manager, own cluster.ID, kept *endpoints.Kept) error {
	return errors.Join(
		firewall.Setup(mgr, firewall.Config{
			Client: mgr.GetClient(), Own: own, Namespace: t.namespace, Liqo: t.LiqoNamespace, Allowed: t.allow,
		}),
		endpoints.Setup(mgr, endpoints.Config{
			Client: mgr.GetClient(), Kept: kept, Live: mgr.GetAPIReader(), Own: own, MaxAddresses: t.maxAddresses, Clock: clock.RealClock{},
		}),
		reports.Setup(mgr, reports.Config{Client: mgr.GetClient(), Own: own}),
	)
}

// transitCache returns what is kept in memory: namespaces of peers, what this program writes there, of what consumers write as much as is
// read, and of no consumer too much, and of what Liqo makes for each pod nothing.
func transitCache(liqos string, kept *endpoints.Kept) (cache.Options, error) {
	ofConsumers, err := v1.EndpointsSelector()
	if err != nil {
		return cache.Options{}, err
	}
	by := map[client.Object]cache.ByObject{
		&corev1.Namespace{}:          {Label: liqo.PeerNamespaceSelector()},
		&discoveryv1.EndpointSlice{}: {Label: ofConsumers, Transform: cached.Without(kept.Bare)},
		&api.FirewallConfiguration{}: {Label: v1.TransitSelector()},
		&api.Network{}:               {Namespaces: map[string]cache.Config{liqos: {}}},
		&api.IP{}: {Namespaces: map[string]cache.Config{
			liqos: {}, cache.AllNamespaces: {LabelSelector: v1.TransitSelector()},
		}},
	}
	maps.Copy(by, reports.Cached())
	for kind, drop := range (v1.Line{}).Dropped(&liqo.Compactor{}) {
		by[kind] = cache.ByObject{Transform: cached.Without(drop)}
	}
	return cached.Options(by), nil
}

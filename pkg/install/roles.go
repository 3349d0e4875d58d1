// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// Roles returns what a cluster is, for people: "broker", "consumer of milan (59bac5c0-…)", "trader", and with Liqo 1.x "catalog" and
// "guarded"; nothing if it has Liqo alone.
func (s *Setup) Roles() []string {
	var roles []string
	if s.Broker {
		roles = append(roles, "broker")
	}
	if s.Catalog {
		roles = append(roles, "catalog")
	}
	var brokers []string
	for _, broker := range s.Brokers {
		brokers = append(brokers, called(broker))
	}
	if strangers := len(s.RemoteIPAMs) - len(s.Brokers); strangers > 0 {
		brokers = append(brokers, fmt.Sprintf("%d that it does not peer with", strangers))
	}
	if len(brokers) > 0 {
		roles = append(roles, "consumer of "+strings.Join(brokers, ", "))
	}
	if s.Trades {
		roles = append(roles, "trader")
	}
	if s.Guarded {
		roles = append(roles, "guarded")
	}
	return roles
}

// mayBecomeBroker returns an error if the cluster is the consumer of a broker and is to be one itself, which nobody has asked for.
func (i *Installer) mayBecomeBroker(s *Setup) error {
	if s.Broker || i.options.AlsoBroker || !s.consumes() {
		return nil
	}
	return requirement("this cluster is a %s, whose version prepare brings: with --also-broker it becomes a broker besides",
		strings.Join(s.Roles(), " and a "))
}

// mayBecomeConsumer returns an error if a broker with Liqo 1.x is to be the consumer of a peer that nobody has named: the only one that it
// has may be a provider or a consumer of its own. With Liqo 0.9 a broker is known by its Service, which is waited for.
func (i *Installer) mayBecomeConsumer(s *Setup) error {
	if !s.Broker || !s.Liqo1() || i.options.Broker != "" {
		return nil
	}
	return requirement("this cluster is a %s: if it is to be the consumer of another broker besides, say --broker",
		strings.Join(s.Roles(), " and a "))
}

// consumesFrom returns an error if a peer uses a cluster with Liqo 1.x that does not use it: a provider becomes no consumer of its broker.
// Who is about to peer is waited for. With Liqo 0.9 brokers peer with their consumers too.
func (i *Installer) consumesFrom(ctx context.Context, s *Setup, broker cluster.Identity) error {
	if !s.Liqo1() {
		return nil
	}
	peer, err := i.peerWith(ctx, broker.ID)
	if err != nil || peer.Outgoing.Exists || !peer.Incoming.Exists {
		return err
	}
	return requirement("%s uses this cluster, and not the other way round: if this cluster is to be its consumer, peer with it first "+
		"(liqoctl peer)", called(broker))
}

// isBroker returns an error that says what to do instead if the cluster is no broker.
func (s *Setup) isBroker() error {
	switch {
	case s.Broker:
		return nil
	case s.Catalog:
		return requirement("this cluster is no broker, but a catalog: kubectl apply %s brings it up to date", version.Applied("deploy/catalog"))
	case s.consumes() && s.Trades:
		return requirement("this cluster is no broker, but a %s: run prepare and guard", strings.Join(s.Roles(), " and a "))
	case s.consumes():
		return requirement("this cluster is no broker, but a %s: run prepare, with the plugin of the broker's version",
			strings.Join(s.Roles(), ""))
	case s.Trades:
		return requirement("this cluster is no broker, and trades: run guard")
	default:
		return requirement("this cluster is no broker: install makes it one")
	}
}

// mayCease returns an error if the cluster is no broker, and uninstall would take away what it needs for something else; or if its
// connector could not go on without the broker. It notes whether there is a connector.
func (i *Installer) mayCease(ctx context.Context, s *Setup) (err error) {
	if i.trading, err = i.trades(ctx); err != nil { // Who may not see it, may not take away what it needs.
		return err
	}
	args, err := i.managerArgs(ctx)
	if err != nil {
		return err
	}
	traded := slices.Contains(args, flagPlugin+"="+connectorPlugin)
	is := s.Broker || !i.trading && !traded && len(s.RemoteIPAMs) == 0
	if !is {
		if is, err = i.brokerLeft(ctx); err != nil {
			return err
		}
	}
	switch {
	case is && i.trading:
		return i.sellsNoBroker(ctx)
	case is:
		return nil
	case i.trading && len(s.RemoteIPAMs) > 0:
		return requirement("this cluster is no broker, but a %s: unprepare leaves the broker, and unguard undoes guard when all contracts are "+
			"over and the connector is gone", strings.Join(s.Roles(), " and a "))
	case i.trading:
		return requirement("this cluster is no broker, and its trade needs what would be removed: when all contracts are over, delete the " +
			"connector and run unguard")
	case traded:
		return requirement("this cluster is no broker, and Liqo still asks a connector that is gone: run unguard")
	default:
		return requirement("this cluster is no broker, but a %s: run unprepare", strings.Join(s.Roles(), ""))
	}
}

// brokerLeft reports whether something of a broker is still there, as after an uninstall that was interrupted.
func (i *Installer) brokerLeft(ctx context.Context) (bool, error) {
	base, err := i.manifests()
	if err != nil {
		return false, err
	}
	for _, left := range []func(context.Context) ([]change, error){
		i.removing("", ofDaemon(base), nil).changes, i.withoutPort(), i.alone(patchRemoteIPAM), i.withoutHook(), i.told,
	} {
		changes, err := left(ctx)
		if err != nil || len(changes) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// ofDaemon returns the objects of a broker without those of its guard.
func ofDaemon(base []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(base), func(o *unstructured.Unstructured) bool { return o.GetLabels()[labelName] == GuardName })
}

// sellsNoBroker returns an error if the connector sells what the broker has. It leaves the resource plugin to the broker then, so that Liqo
// would find nobody to ask.
func (i *Installer) sellsNoBroker(ctx context.Context) error {
	at := client.ObjectKey{Namespace: ConnectorName, Name: ConnectorName}
	var d appsv1.Deployment
	if err := i.Get(ctx, at, &d); err != nil {
		return fmt.Errorf("read Deployment %s: %w", at, err)
	}
	container, err := first(&d)
	if err != nil {
		return err
	}
	const flag = "--broker"
	if slices.Contains(container.Args, flag) || slices.Contains(container.Args, flag+"=true") {
		return requirement("the connector sells what this broker has, and Liqo could not ask it what to offer: end these contracts, and take "+
			"the flag %s from the connector", flag)
	}
	return nil
}

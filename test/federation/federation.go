// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/capacitorset/liqo-broker/test/lab"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

const (
	liqoNamespace   = "liqo"
	brokerNamespace = "liqo-broker"

	// broker is the Deployment of the daemon, controllerManager and networkManager are those of Liqo.
	broker            = "liqo-broker"
	controllerManager = "liqo-controller-manager"
	networkManager    = "liqo-network-manager"

	// transit and agent are the Deployments of both, with Liqo 1.x, and their namespaces.
	transit = "liqo-broker-transit"
	agent   = "liqo-broker-agent"
)

// A Federation is a consumer, a broker and two providers. All but the consumer and provider-b are to peer with each other.
type Federation struct {
	Consumer, Broker, ProviderA, ProviderB *Cluster

	lab  *lab.Lab
	root string // Of the repository.
}

// Open connects to the clusters of a lab. root is the folder of the repository.
func Open(ctx context.Context, l *lab.Lab, root string) (*Federation, error) {
	f := &Federation{lab: l, root: root}
	for name, target := range map[string]**Cluster{
		topology.Consumer: &f.Consumer, topology.Broker: &f.Broker,
		topology.ProviderA: &f.ProviderA, topology.ProviderB: &f.ProviderB,
	} {
		c, err := open(ctx, l, name)
		if err != nil {
			return nil, err
		}
		*target = c
	}
	return f, nil
}

// Alone returns the federation of one cluster of a lab, whoever is meant: Liqo need not be there, and no ID is known. root is the folder of
// the repository.
func Alone(l *lab.Lab, root, name string) (*Federation, error) {
	c, err := connect(l, name)
	if err != nil {
		return nil, err
	}
	return &Federation{Consumer: c, Broker: c, ProviderA: c, ProviderB: c, lab: l, root: root}, nil
}

// WithBroker returns the federation of the same consumer with another broker, whose provider is provider-b. The peerings that it
// needs are not made.
func (f *Federation) WithBroker(broker *Cluster) *Federation {
	return &Federation{Consumer: f.Consumer, Broker: broker, ProviderA: f.ProviderB, ProviderB: f.ProviderB, lab: f.lab, root: f.root}
}

// OpenLab opens the lab that the environment names, or else the usual one.
func OpenLab() (*lab.Lab, error) {
	return lab.Open(cmp.Or(os.Getenv("LIQO_BROKER_LAB"), lab.DefaultDir))
}

// Connect connects to the clusters of the lab that OpenLab opens.
func Connect(ctx context.Context, root string) (*Federation, error) {
	l, err := OpenLab()
	if err != nil {
		return nil, err
	}
	return Open(ctx, l, root)
}

// Peer makes the peering by which one cluster uses the resources of another, and waits until it is established.
func (f *Federation) Peer(ctx context.Context, consumer, provider *Cluster) error {
	return f.lab.Peer(ctx, topology.Peering{Consumer: consumer.Name, Provider: provider.Name})
}

// ensurePeering does so, unless it is there.
func (f *Federation) ensurePeering(ctx context.Context, consumer, provider *Cluster) error {
	known, err := consumer.Peer(ctx, provider)
	if err != nil || known != nil && known.Outgoing.Exists {
		return err
	}
	return f.Peer(ctx, consumer, provider)
}

// PeerAll makes all peerings of the federation, each by the commands of liqoctl. Those that are there stay.
func (f *Federation) PeerAll(ctx context.Context) error {
	return f.lab.PeerAll(ctx, func(string, string) {})
}

// Unpeer ends such a peering, and waits until it is gone: it cannot be made again before.
func (f *Federation) Unpeer(ctx context.Context, consumer, provider *Cluster) error {
	if err := f.lab.Unpeer(ctx, topology.Peering{Consumer: consumer.Name, Provider: provider.Name}); err != nil {
		return err
	}
	return Until(ctx, patience, func(ctx context.Context) error { return consumer.line().parted(ctx, consumer, provider) })
}

// Clusters returns all clusters, the consumer first.
func (f *Federation) Clusters() []*Cluster {
	return append([]*Cluster{f.Consumer, f.Broker}, f.Providers()...)
}

// Providers returns the clusters that share their resources with the broker.
func (f *Federation) Providers() []*Cluster {
	if f.ProviderA == f.ProviderB {
		return []*Cluster{f.ProviderA}
	}
	return []*Cluster{f.ProviderA, f.ProviderB}
}

// path returns the path of a file of the repository.
func (f *Federation) path(elements ...string) string {
	return filepath.Join(append([]string{f.root}, elements...)...)
}

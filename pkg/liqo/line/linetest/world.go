// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package linetest has one test of all that package line promises, which the answers for each line of Liqo's versions pass.
//
// It knows no kind of Liqo's objects: who calls it makes them, in a World.
package linetest

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// What the objects of each World say.
const (
	// Cores are what the offer Bought has.
	Cores = "4"
	// RoundTrip is what Liqo measured last in each network, also in one that is down since, and Seen the only prefix that it decided on.
	RoundTrip = 12 * time.Millisecond
	Seen      = "10.61.0.0/16"
	// NobodysNamespace is a namespace that exists, and is no tenant namespace.
	NobodysNamespace = "web-twin"
	// OwnNetwork is that of the pods of this cluster.
	OwnNetwork = "10.50.0.0/16"
	// RemoteName is how clusters call the namespace that is offloaded to them.
	RemoteName = "web-twin-far"
	// Secret is in all that nobody may see in a catalog: credentials, annotations, messages of conditions, labels of other people.
	Secret = "s3cret"
)

// Measured returns when Liqo measured the round-trip times of a World.
func Measured() time.Time { return time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC) }

// World is a cluster with its peers, as Liqo of one line has them.
type World struct {
	Line line.Line
	// Objects are all of them, and the ConfigMap with what the cluster is called, in liqo.DefaultNamespace. [Run] itself makes
	// NobodysNamespace.
	Objects []client.Object
	// Own is what the cluster is called.
	Own cluster.Identity

	// Provider is used by this cluster, and Consumer uses it; neither does both. Liar uses it, and writes in the name of others. Stranger is
	// known, and neither has a tenant namespace nor peers.
	Provider, Consumer, Liar, Stranger Peer
	// AlsoConsumes are the objects by which the Provider consumes besides: new ones, and others for those that have the same names.
	AlsoConsumes []client.Object

	// Node is the virtual node that the Provider offers, and what Liqo calls it if the Provider does not say otherwise.
	Node    string
	Offers  Offers
	Changes Changes
	// Offloaded is the offloading of NobodysNamespace, also among the Objects, which the broker keeps and Liqo has seen. It selects the
	// Provider, which has the namespace, and the Liar, which refuses it since Measured and gets no new pods. Of the Consumer conditions are
	// left of when it was selected. Liqo calls the namespace RemoteName there.
	Offloaded client.Object
	// Wished is how the Consumer asks for a pod with the priority Wished.Name, of which Liqo has seen that it had ended. Networks are what
	// Liqo's IPAM has written down, of this cluster OwnNetwork alone.
	Wished   client.Object
	Networks []client.Object
	// Copies are what the Consumer puts here, one of each kind that is tried, with a NamespaceMap among them.
	Copies []Copy

	scheme *runtime.Scheme
}

// Peer is what a peer of a World is called.
type Peer struct {
	cluster.Identity

	// Record is the name of its record, and Tenant its tenant namespace; empty if it has none.
	Record, Tenant string
}

// Offers are where the offers of a World are. All are accepted, but for Pending.
type Offers struct {
	// Bought is by the Provider, for the Node.
	Bought client.ObjectKey
	// Pending and Leaving are by the Provider too, the one not accepted yet, the other being deleted.
	Pending, Leaving client.ObjectKey
	// Sold is to the Consumer.
	Sold client.ObjectKey
	// Forged is one in the name of the Provider for the Node, which the Liar has put into its own tenant namespace.
	Forged client.ObjectKey
	// Claimed is the Liar's too, and says that this cluster offers something to the Consumer.
	Claimed client.ObjectKey
	// Stray is in NobodysNamespace, and says that the Provider offers the Node.
	Stray client.ObjectKey
}

// Changes are updates of objects of a World.
type Changes struct {
	// Silent are updates of records, offers, peerings and namespaces that say nothing new of who is a peer and what is offered for which node.
	Silent []Change
	// Node gives an offer another node, Tenant a peer another tenant namespace or takes it one, and Claim lets an offer name another cluster.
	Node, Tenant, Claim []Change
}

// Change is an update of one object.
type Change struct{ Before, After client.Object }

// Copy is an object that the CRD replicator of the Consumer puts into its tenant namespace here.
type Copy struct {
	Group, Resource string
	Object          client.Object
	// Remote is what is said of the copy if the label liqo.LabelRemoteClusterID names another cluster; empty if nobody looks at it.
	Remote string
}

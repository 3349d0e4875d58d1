// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"fmt"
	"maps"
	"strings"

	sharingv1alpha1 "github.com/liqotech/liqo/apis/sharing/v1alpha1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

type (
	// ResourceOffer is what one cluster offers to another.
	ResourceOffer = sharingv1alpha1.ResourceOffer
	// ResourceOfferList is a list of them.
	ResourceOfferList = sharingv1alpha1.ResourceOfferList
)

// OfferedBy returns the cluster that a provider's offer says it is from, which
// [CheckOffer] holds against the namespace. It is empty for an offer that this cluster
// makes to a consumer.
func OfferedBy(o *ResourceOffer) cluster.ID {
	if !FromPeer(o) {
		return ""
	}
	return cluster.ID(o.Spec.ClusterID)
}

// OfferedTo returns the consumer that an offer of this cluster says it is for. The
// consumer could write that too, so that it is true only of the consumer in whose
// tenant namespace the offer is. It is empty for a provider's offer.
func OfferedTo(o *ResourceOffer) cluster.ID {
	if FromPeer(o) || o.Labels[liqo.LabelReplication] != liqo.ReplicationValue {
		return ""
	}
	return cluster.ID(o.Labels[liqo.LabelDestination])
}

// FromPeer reports whether an offer is one that a peer put here.
func FromPeer(o *ResourceOffer) bool { return o.Labels[liqo.LabelReplicated] == liqo.ReplicationValue }

// CheckOffer returns what an offer of a peer says that cannot be, given the peer in
// whose tenant namespace it is: nobody else can write there.
func CheckOffer(o *ResourceOffer, peer cluster.ID) error {
	origin, claimed := o.Labels[liqo.LabelOrigin], o.Spec.Labels[liqo.LabelRemoteClusterID]
	switch {
	case o.Spec.ClusterID != string(peer):
		return fmt.Errorf("spec.clusterId is %q, in the tenant namespace of %q", o.Spec.ClusterID, peer)
	case origin != string(peer):
		return fmt.Errorf("label %s is %q, in the tenant namespace of %q", liqo.LabelOrigin, origin, peer)
	case claimed != "" && claimed != string(peer):
		return fmt.Errorf("spec.labels[%s] is %q, in the tenant namespace of %q", liqo.LabelRemoteClusterID, claimed, peer)
	default:
		return nil
	}
}

// claims are all that an offer says of whose it is: whether it counts in the tenant namespace of a peer depends on nothing else.
type claims struct {
	fromPeer      bool
	by, to        cluster.ID
	origin, label string
}

func claimsOf(o *ResourceOffer) claims {
	return claims{FromPeer(o), OfferedBy(o), OfferedTo(o), o.Labels[liqo.LabelOrigin], o.Spec.Labels[liqo.LabelRemoteClusterID]}
}

// offerWith returns what an offer says in the tenant namespace of a peer, or of nobody.
func offerWith(tenant cluster.Identity, o *ResourceOffer) liqo.Offer {
	offer := OfferOf(o)
	offer.With = tenant.ID
	if offer.FromPeer {
		offer.Node, offer.Wrong = NodeName(o, tenant), CheckOffer(o, tenant.ID)
	} else if to := OfferedTo(o); to != tenant.ID {
		offer.Wrong = fmt.Errorf("it is for %q, in the tenant namespace of %q", to, tenant.ID)
	}
	return offer
}

// OfferOf returns the value of an offer. Its node is the one that it names.
func OfferOf(o *ResourceOffer) liqo.Offer {
	ending := !o.Spec.WithdrawalTimestamp.IsZero() || !o.DeletionTimestamp.IsZero()
	return liqo.Offer{
		Tenant: o.Namespace, Name: o.Name, FromPeer: FromPeer(o), Node: NamedNode(o), Deleted: !o.DeletionTimestamp.IsZero(),
		Resources: o.Spec.ResourceQuota.Hard, Prices: o.Spec.Prices, Unreadable: lenient.Unreadable(o),
		Accepted: o.Status.Phase == sharingv1alpha1.ResourceOfferAccepted && !ending, Ending: ending,
	}
}

// NamedNode returns the virtual node that an offer names; empty if it leaves the name to Liqo.
func NamedNode(o *ResourceOffer) string { return o.Spec.NodeName }

// SameNode reports whether two offers of one cluster are for the same virtual node.
func SameNode(a, b *ResourceOffer) bool {
	return a.Spec.NodeName == b.Spec.NodeName && a.Spec.NodeNamePrefix == b.Spec.NodeNamePrefix
}

// dropImages removes the images that the provider holds from an offer.
func dropImages(o *ResourceOffer) { o.Spec.Images = nil }

// AddNodeLabels adds labels to those that the virtual node of an offer is to have.
func AddNodeLabels(o *ResourceOffer, labels map[string]string) {
	if o.Spec.Labels == nil {
		o.Spec.Labels = map[string]string{}
	}
	maps.Copy(o.Spec.Labels, labels)
}

// usualNode is what the name of a virtual node begins with whose offer does not say
// otherwise. The name of its cluster follows.
const usualNode = "liqo-"

// UsualNode returns what the cluster is called whose virtual node has a name if its offer
// does not say otherwise.
func UsualNode(node string) (clusterName string, is bool) { return strings.CutPrefix(node, usualNode) }

// NodeName returns the name of the virtual node that Liqo makes for an offer
// (getVirtualNodeName in pkg/liqo-controller-manager/resourceoffer-controller).
func NodeName(o *ResourceOffer, provider cluster.Identity) string {
	switch {
	case o.Spec.NodeName != "":
		return o.Spec.NodeName
	case o.Spec.NodeNamePrefix != "":
		return o.Spec.NodeNamePrefix + "-" + provider.Name
	default:
		return usualNode + provider.Name
	}
}

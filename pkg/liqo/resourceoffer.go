// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	sharingv1alpha1 "github.com/liqotech/liqo/apis/sharing/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

type (
	// ResourceOffer is what one cluster offers to another.
	ResourceOffer = sharingv1alpha1.ResourceOffer
	// ResourceOfferList is a list of them.
	ResourceOfferList = sharingv1alpha1.ResourceOfferList
)

// OfferedBy returns the cluster that a provider's offer is from. It is empty for
// an offer that this cluster makes to a consumer.
func OfferedBy(o *ResourceOffer) cluster.ID {
	if o.Labels[LabelReplicated] != "true" {
		return ""
	}
	return cluster.ID(o.Spec.ClusterID)
}

// OfferedTo returns the consumer that an offer of this cluster is for. It is empty
// for a provider's offer.
func OfferedTo(o *ResourceOffer) cluster.ID {
	if o.Labels[consts.ReplicationRequestedLabel] != consts.ReplicationRequestedLabelValue {
		return ""
	}
	return cluster.ID(o.Labels[consts.ReplicationDestinationLabel])
}

// Quota returns what an offer offers.
func Quota(o *ResourceOffer) corev1.ResourceList { return o.Spec.ResourceQuota.Hard }

// Accepted returns what an offer offers, and whether it is in force: accepted,
// and neither withdrawn nor being deleted.
func Accepted(o *ResourceOffer) (corev1.ResourceList, bool) {
	ok := o.Status.Phase == sharingv1alpha1.ResourceOfferAccepted &&
		o.Spec.WithdrawalTimestamp.IsZero() && o.DeletionTimestamp.IsZero()
	return o.Spec.ResourceQuota.Hard, ok
}

// Ending tells whether the peering of an offer ends. Liqo then evicts all pods from the
// virtual node of the offer, and removes it.
func Ending(o *ResourceOffer) bool {
	return !o.Spec.WithdrawalTimestamp.IsZero() || !o.DeletionTimestamp.IsZero()
}

// OffersNothing tells whether an offer is of no use: without cores or memory Liqo lets
// no pod start.
func OffersNothing(o *ResourceOffer) bool {
	offered := o.Spec.ResourceQuota.Hard
	return offered.Cpu().IsZero() || offered.Memory().IsZero()
}

// NodeName returns the name of the virtual node that Liqo makes for an offer
// (getVirtualNodeName in pkg/liqo-controller-manager/resourceoffer-controller).
func NodeName(o *ResourceOffer, provider cluster.Identity) string {
	switch {
	case o.Spec.NodeName != "":
		return o.Spec.NodeName
	case o.Spec.NodeNamePrefix != "":
		return o.Spec.NodeNamePrefix + "-" + provider.Name
	default:
		return "liqo-" + provider.Name
	}
}

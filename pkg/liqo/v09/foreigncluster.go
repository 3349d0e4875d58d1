// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"context"
	"fmt"
	"strings"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	foreignclusterutils "github.com/liqotech/liqo/pkg/utils/foreignCluster"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

type (
	// ForeignCluster is Liqo's record of a peer.
	ForeignCluster = discoveryv1alpha1.ForeignCluster
	// ForeignClusterList is a list of them.
	ForeignClusterList = discoveryv1alpha1.ForeignClusterList
)

// Identity returns what the cluster of a foreign cluster is called.
func Identity(fc *ForeignCluster) cluster.Identity {
	return cluster.Identity{
		ID:   cluster.ID(fc.Spec.ClusterIdentity.ClusterID),
		Name: fc.Spec.ClusterIdentity.ClusterName,
	}
}

// KeepIdentity takes out of a foreign cluster, for a cache, all but its metadata, who it is, and what is shared with it. It is not to be
// written then, other than by a patch.
func KeepIdentity(fc *ForeignCluster) {
	kept := discoveryv1alpha1.ForeignCluster{TypeMeta: fc.TypeMeta, ObjectMeta: fc.ObjectMeta}
	kept.Spec.ClusterIdentity, kept.Spec.PeeringType = fc.Spec.ClusterIdentity, fc.Spec.PeeringType
	kept.Spec.IncomingPeeringEnabled, kept.Spec.OutgoingPeeringEnabled = fc.Spec.IncomingPeeringEnabled, fc.Spec.OutgoingPeeringEnabled
	*fc = kept
}

// TenantNamespace returns the namespace here that holds what concerns a foreign
// cluster; empty if there is none yet.
func TenantNamespace(fc *ForeignCluster) string { return fc.Status.TenantNamespace.Local }

// PeerOf returns the peer of a foreign cluster.
func PeerOf(fc *ForeignCluster) liqo.Peer {
	return liqo.Peer{
		Identity: Identity(fc), Record: fc.Name, Known: fc.CreationTimestamp.Time, Tenant: TenantNamespace(fc),
		Outgoing: Outgoing(fc), Incoming: Incoming(fc), InBand: fc.Spec.PeeringType == discoveryv1alpha1.PeeringTypeInBand,
		CorePrice: liqo.CorePrice(fc), AuthURL: liqo.PublicURL(fc.Spec.ForeignAuthURL),
	}
}

// Peers returns the clusters that this one knows.
func Peers(ctx context.Context, reader client.Reader) ([]liqo.Peer, error) {
	var all ForeignClusterList
	if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the peers of this cluster: %w", err)
	}
	return peersOf(&all), nil
}

// Outgoing returns the peering over which the foreign cluster provides.
func Outgoing(fc *ForeignCluster) liqo.Peering {
	return peering(fc, discoveryv1alpha1.OutgoingPeeringCondition)
}

// Incoming returns the peering over which the foreign cluster consumes.
func Incoming(fc *ForeignCluster) liqo.Peering {
	return peering(fc, discoveryv1alpha1.IncomingPeeringCondition)
}

func peering(fc *ForeignCluster, t discoveryv1alpha1.PeeringConditionType) liqo.Peering {
	for _, c := range fc.Status.PeeringConditions {
		if c.Type == t {
			return liqo.Peering{
				Exists:      c.Status != "" && c.Status != discoveryv1alpha1.PeeringConditionStatusNone,
				Established: c.Status == discoveryv1alpha1.PeeringConditionStatusEstablished,
				Ending:      c.Status == discoveryv1alpha1.PeeringConditionStatusDisconnecting,
			}
		}
	}
	return liqo.Peering{}
}

// UniqueName is the cluster's name with a hash of its ID, by which Liqo calls
// NamespaceMaps and which it appends to the names of twin namespaces.
func UniqueName(id cluster.Identity) string {
	return foreignclusterutils.UniqueName(&discoveryv1alpha1.ClusterIdentity{
		ClusterID: string(id.ID), ClusterName: id.Name,
	})
}

// passedThrough reports whether the name of a twin namespace shows that it came
// through a cluster: with the mapping strategy DefaultName each hop appends its
// unique name.
func passedThrough(namespace string, id cluster.Identity) bool {
	hop := "-" + UniqueName(id)
	return strings.HasSuffix(namespace, hop) || strings.Contains(namespace, hop+"-")
}

// TwinOfLiqo reports whether a twin namespace is what a peer reflects of its
// DefaultNamespace under Liqo's default mapping. A broker reflects that one to all
// its peers, for the sake of one Service.
func TwinOfLiqo(namespace string, peer cluster.Identity) bool {
	return namespace == TwinNameOfLiqo(peer)
}

// TwinNameOfLiqo returns the name of that namespace.
func TwinNameOfLiqo(peer cluster.Identity) string {
	return liqo.DefaultNamespace + "-" + UniqueName(peer)
}

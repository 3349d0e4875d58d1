// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"strings"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	foreignclusterutils "github.com/liqotech/liqo/pkg/utils/foreignCluster"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

type (
	// ForeignCluster is Liqo's record of a peer.
	ForeignCluster = discoveryv1alpha1.ForeignCluster
	// ForeignClusterList is a list of them.
	ForeignClusterList = discoveryv1alpha1.ForeignClusterList
)

// Peering is how far a peering in one direction has come.
type Peering struct {
	// Exists is false if there is none, nor one being made or ended.
	Exists bool
	// Established tells that resources can be shared over it.
	Established bool
	// Ending tells that one of the two clusters has ended it.
	Ending bool
}

// Identity returns what the cluster of a foreign cluster is called.
func Identity(fc *ForeignCluster) cluster.Identity {
	return cluster.Identity{
		ID:   cluster.ID(fc.Spec.ClusterIdentity.ClusterID),
		Name: fc.Spec.ClusterIdentity.ClusterName,
	}
}

// KeepIdentity takes out of a foreign cluster, for a cache, all but its metadata, who it is, and what is shared with it. It is not to be written then, other
// than by a patch.
func KeepIdentity(fc *ForeignCluster) {
	kept := discoveryv1alpha1.ForeignCluster{TypeMeta: fc.TypeMeta, ObjectMeta: fc.ObjectMeta}
	kept.Spec.ClusterIdentity, kept.Spec.PeeringType = fc.Spec.ClusterIdentity, fc.Spec.PeeringType
	kept.Spec.IncomingPeeringEnabled, kept.Spec.OutgoingPeeringEnabled = fc.Spec.IncomingPeeringEnabled, fc.Spec.OutgoingPeeringEnabled
	*fc = kept
}

// TenantNamespace returns the namespace here that holds what concerns a foreign
// cluster; empty if there is none yet.
func TenantNamespace(fc *ForeignCluster) string { return fc.Status.TenantNamespace.Local }

// Outgoing returns the peering over which the foreign cluster provides.
func Outgoing(fc *ForeignCluster) Peering {
	return peering(fc, discoveryv1alpha1.OutgoingPeeringCondition)
}

// Incoming returns the peering over which the foreign cluster consumes.
func Incoming(fc *ForeignCluster) Peering {
	return peering(fc, discoveryv1alpha1.IncomingPeeringCondition)
}

func peering(fc *ForeignCluster, t discoveryv1alpha1.PeeringConditionType) Peering {
	for _, c := range fc.Status.PeeringConditions {
		if c.Type == t {
			return Peering{
				Exists:      c.Status != "" && c.Status != discoveryv1alpha1.PeeringConditionStatusNone,
				Established: c.Status == discoveryv1alpha1.PeeringConditionStatusEstablished,
				Ending:      c.Status == discoveryv1alpha1.PeeringConditionStatusDisconnecting,
			}
		}
	}
	return Peering{}
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

// InBand reports whether a peering carries Liqo's control plane through its own tunnel, so that the API servers do not reach each other
// without it.
func InBand(fc *ForeignCluster) bool {
	return fc.Spec.PeeringType == discoveryv1alpha1.PeeringTypeInBand
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// VirtualNodeList is a list of VirtualNodes.
type VirtualNodeList = vkv1alpha1.VirtualNodeList

// KubeletDeployment returns the name and the specification of the Deployment that Liqo makes of a virtual node, in its namespace: its
// virtual kubelet; the
// specification is the one in the node, and may be changed. It is nil if the node has none.
func KubeletDeployment(n *VirtualNode) (name string, spec *appsv1.DeploymentSpec) {
	if n.Spec.Template == nil {
		return "", nil
	}
	return n.Spec.Template.Name, &n.Spec.Template.Spec
}

// StandsFor returns the cluster that a virtual node stands for.
func StandsFor(n *VirtualNode) cluster.Identity {
	id := n.Spec.ClusterIdentity
	if id == nil {
		return cluster.Identity{}
	}
	return cluster.Identity{ID: cluster.ID(id.ClusterID), Name: id.ClusterName}
}

// HasNode reports whether there is to be a node for a virtual node.
func HasNode(n *VirtualNode) bool { return n.Spec.CreateNode == nil || *n.Spec.CreateNode }

// ClaimsVirtualKubelet reports whether a peer has put LabelVirtualKubelet into its offer, from where Liqo takes the labels of its node.
func ClaimsVirtualKubelet(n *VirtualNode) bool {
	_, claims := n.Spec.Labels[liqo.LabelVirtualKubelet]
	return claims
}

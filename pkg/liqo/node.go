// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// NodeCluster returns the cluster that a virtual node stands for. It is empty
// for a node of this cluster.
func NodeCluster(n *corev1.Node) cluster.ID {
	if n.Labels[LabelNodeType] != NodeTypeVirtual {
		return ""
	}
	return cluster.ID(n.Labels[LabelRemoteClusterID])
}

// CommonLabels returns the labels that all of some nodes have, with the same value: what
// their cluster as a whole is. It may be the map of a node, which is not to be changed.
func CommonLabels(nodes []*corev1.Node) map[string]string {
	if len(nodes) == 0 {
		return nil
	}
	common := nodes[0].Labels
	for _, n := range nodes[1:] {
		both := make(map[string]string, len(common))
		for key, value := range common {
			if other, has := n.Labels[key]; has && other == value {
				both[key] = value
			}
		}
		common = both
	}
	return common
}

// NodeCondition returns a condition of a node, or nil if the node does not have it.
func NodeCondition(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// NodeReadiness returns whether a node is ready. It is unknown of a node whose virtual
// kubelet does not report, and of one without the condition.
func NodeReadiness(n *corev1.Node) corev1.ConditionStatus {
	if ready := NodeCondition(n, corev1.NodeReady); ready != nil {
		return ready.Status
	}
	return corev1.ConditionUnknown
}

// NodeReady reports whether a node is known to be ready.
func NodeReady(n *corev1.Node) bool { return NodeReadiness(n) == corev1.ConditionTrue }

// OnlyBare reports whether Liqo calls a node not ready for no other reason than that its
// cluster offers nothing any more. What runs there goes on
// (updateNode in pkg/virtualKubelet/liqoNodeProvider/reconciler.go@v0.9.4).
func OnlyBare(n *corev1.Node) bool {
	is := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) bool {
		c := NodeCondition(n, kind)
		return c != nil && c.Status == status
	}
	return is(corev1.NodeReady, corev1.ConditionFalse) && is(corev1.NodeMemoryPressure, corev1.ConditionTrue) &&
		!is(corev1.NodeNetworkUnavailable, corev1.ConditionTrue)
}

// NotReadySince returns since when a node is not ready, as far as that is known:
// one that has never been ready is not since it was made.
func NotReadySince(n *corev1.Node) time.Time {
	if ready := NodeCondition(n, corev1.NodeReady); ready != nil && !ready.LastTransitionTime.IsZero() {
		return ready.LastTransitionTime.Time
	}
	return n.CreationTimestamp.Time
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

// NodeCluster returns the cluster that a virtual node stands for. It is empty
// for a node of this cluster.
func NodeCluster(n *corev1.Node) cluster.ID {
	if n.Labels[LabelNodeType] != NodeTypeVirtual {
		return ""
	}
	return cluster.ID(n.Labels[LabelRemoteClusterID])
}

// NodeReady tells whether a node is ready; one without the condition is not.
func NodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// NotReadySince returns since when a node is not ready, as far as that is known:
// one that has never been ready is not since it was made.
func NotReadySince(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return n.CreationTimestamp.Time
}

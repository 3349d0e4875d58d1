// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/discovery"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

// PeerNamespaceSelector selects the namespaces that belong to a peer: its
// tenant namespace and its twin namespaces.
func PeerNamespaceSelector() labels.Selector {
	return labels.NewSelector().Add(mustRequire(consts.RemoteClusterID, selection.Exists))
}

// ShadowPodSelector selects the pods that a peer offloaded to this cluster.
func ShadowPodSelector() labels.Selector {
	return labels.NewSelector().Add(mustRequire(consts.ManagedByLabelKey, selection.Equals, consts.ManagedByShadowPodValue))
}

// TwinOf returns the consumer whose pods a namespace holds. Liqo's namespace map
// controller writes the label and the annotation when it creates the namespace;
// a consumer has no rights on the namespace itself
// (liqo/pkg/liqo-controller-manager/namespacemap-controller/enforcement.go@v0.9.4).
func TwinOf(namespace *corev1.Namespace) (cluster.ID, bool) {
	id := namespace.Labels[consts.RemoteClusterID]
	_, managed := namespace.Annotations[consts.RemoteNamespaceManagedByAnnotationKey]
	return cluster.ID(id), managed && id != ""
}

// TenantOf returns the peer whose tenant namespace a namespace is.
func TenantOf(namespace *corev1.Namespace) (cluster.ID, bool) {
	id := namespace.Labels[consts.RemoteClusterID]
	_, tenant := namespace.Labels[discovery.TenantNamespaceLabel]
	return cluster.ID(id), tenant && id != ""
}

// mustRequire panics for a key or a value that cannot be a label, which for the
// constants of this file is a fault of the program.
func mustRequire(key string, operator selection.Operator, values ...string) labels.Requirement {
	requirement, err := labels.NewRequirement(key, operator, values)
	if err != nil {
		panic(err)
	}
	return *requirement
}

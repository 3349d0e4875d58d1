// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/discovery"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// ShadowPodSelector selects the pods that a peer offloaded to this cluster.
func ShadowPodSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{LabelManagedBy: ManagedByShadowPod})
}

// TwinOf returns the consumer whose pods a namespace holds. Liqo's namespace map
// controller writes the label and the annotation when it creates the namespace;
// a consumer has no rights on the namespace itself
// (liqo/pkg/liqo-controller-manager/namespacemap-controller/enforcement.go@v0.9.4).
func TwinOf(namespace *corev1.Namespace) (cluster.ID, bool) {
	id := namespace.Labels[LabelRemoteClusterID]
	_, managed := namespace.Annotations[consts.RemoteNamespaceManagedByAnnotationKey]
	return cluster.ID(id), managed && id != ""
}

// TenantOf returns the peer whose tenant namespace a namespace is.
func TenantOf(namespace *corev1.Namespace) (cluster.ID, bool) {
	id := namespace.Labels[discovery.ClusterIDLabel]
	_, tenant := namespace.Labels[discovery.TenantNamespaceLabel]
	return cluster.ID(id), tenant && id != ""
}

// OriginalName returns what the cluster that a twin namespace is of calls the namespace.
// Liqo keeps it in an annotation; the name of the twin may be another one.
func OriginalName(twin *corev1.Namespace) string {
	if name, ok := twin.Annotations[consts.RemoteNamespaceOriginalNameAnnotationKey]; ok {
		return name
	}
	return twin.Name
}

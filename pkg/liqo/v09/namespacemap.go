// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// NamespaceMap is Liqo's record of the namespaces that one cluster offloads to
// another. It exists on both.
type NamespaceMap = vkv1alpha1.NamespaceMap

// NamespaceMapList is a list of NamespaceMaps.
type NamespaceMapList = vkv1alpha1.NamespaceMapList

// OffloadedTo returns the cluster to which a namespace map offloads namespaces of
// this cluster, and these namespaces; false for a map that a peer has put here.
func OffloadedTo(namespaces *NamespaceMap) (cluster.ID, []string, bool) {
	target := namespaces.Labels[liqo.LabelRemoteClusterID]
	if target == "" || namespaces.Labels[liqo.LabelReplicated] != "" {
		return "", nil, false
	}
	names := make([]string, 0, len(namespaces.Spec.DesiredMapping))
	for name := range namespaces.Spec.DesiredMapping {
		names = append(names, name)
	}
	return cluster.ID(target), names, true
}

// Wanted reports whether a namespace of this cluster is offloaded to the cluster of a namespace map.
func Wanted(namespaces *NamespaceMap, name string) bool {
	_, wanted := namespaces.Spec.DesiredMapping[name]
	return wanted && namespaces.Labels[liqo.LabelReplicated] == ""
}

// Reflected reports whether a virtual kubelet of Liqo reflects a namespace to the cluster of a namespace map: that cluster says that it
// has accepted it (liqo/pkg/virtualKubelet/reflection/namespacemap/namespace.go@v0.9.4).
func Reflected(namespaces *NamespaceMap, name string) bool {
	return namespaces.Labels[liqo.LabelReplicated] == "" && namespaces.Status.CurrentMapping[name].Phase == vkv1alpha1.MappingAccepted
}

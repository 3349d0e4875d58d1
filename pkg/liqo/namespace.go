// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// DefaultNamespace is where Liqo's chart installs itself.
const DefaultNamespace = "liqo"

// ErrNoTenant means that a cluster does not have one tenant namespace.
var ErrNoTenant = errors.New("the cluster does not have one tenant namespace")

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
	_, managed := namespace.Annotations[annotationNamespaceMap]
	return cluster.ID(id), managed && id != ""
}

// TenantOf returns the peer whose tenant namespace a namespace is.
func TenantOf(namespace *corev1.Namespace) (cluster.ID, bool) {
	id := namespace.Labels[labelClusterID]
	_, tenant := namespace.Labels[labelTenantNamespace]
	return cluster.ID(id), tenant && id != ""
}

// OriginalName returns what the cluster that a twin namespace is of calls the namespace.
// Liqo keeps it in an annotation; the name of the twin may be another one.
func OriginalName(twin *corev1.Namespace) string {
	if name, ok := twin.Annotations[annotationOriginalName]; ok {
		return name
	}
	return twin.Name
}

// TenantNamespaceSelector selects the namespaces that Liqo makes for a peer each.
// The peer may not make pods there, nor put the label on a namespace of its own
// (liqo/deployments/liqo/files/liqo-remote-peering-*.yaml@v0.9.4).
func TenantNamespaceSelector() labels.Selector {
	exists, err := labels.NewRequirement(labelTenantNamespace, selection.Exists, nil)
	if err != nil {
		return labels.Nothing() // The key is a constant, and valid.
	}
	return labels.NewSelector().Add(*exists)
}

// TenantNamespaceOf returns the tenant namespace of a cluster. The error may be
// [ErrNoTenant]. Liqo puts no certificate anywhere if there are several
// (liqo/pkg/tenantNamespace/tenantNamespace.go@v0.9.4).
func TenantNamespaceOf(ctx context.Context, reader client.Reader, id cluster.ID) (*corev1.Namespace, error) {
	var namespaces corev1.NamespaceList
	err := reader.List(ctx, &namespaces, client.MatchingLabels{labelClusterID: string(id)}, client.HasLabels{labelTenantNamespace})
	if err != nil {
		return nil, fmt.Errorf("list the tenant namespaces of cluster %s: %w", id, err)
	}
	if n := len(namespaces.Items); n != 1 {
		return nil, fmt.Errorf("cluster %s has %d tenant namespaces: %w", id, n, ErrNoTenant)
	}
	return &namespaces.Items[0], nil
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
// What [TwinSelector] does not select is no twin: no webhook would be asked about its pods.
func TwinOf(namespace *corev1.Namespace) (cluster.ID, bool) {
	id := namespace.Labels[LabelRemoteClusterID]
	_, managed := namespace.Annotations[annotationNamespaceMap]
	_, tenant := namespace.Labels[LabelTenantNamespace]
	return cluster.ID(id), managed && !tenant && id != ""
}

// TwinSelector selects the twin namespaces, as the webhooks and policies of deploy/ do. Those are about the pods of consumers; in tenant
// namespaces of Liqo 1.x there are Liqo's own, virtual kubelets and gateways.
func TwinSelector() labels.Selector {
	return selectorOf(map[string]selection.Operator{LabelRemoteClusterID: selection.Exists, LabelTenantNamespace: selection.DoesNotExist})
}

// TwinsOf selects the twin namespaces of one peer, in the form that is written into NetworkPolicies.
func TwinsOf(peer cluster.ID) *metav1.LabelSelector {
	return &metav1.LabelSelector{
		MatchLabels:      map[string]string{LabelRemoteClusterID: string(peer)},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: LabelTenantNamespace, Operator: metav1.LabelSelectorOpDoesNotExist}},
	}
}

// PeerNamespaceSelector selects the namespaces that name a peer: twins, and the tenant namespaces of Liqo 1.x, which say who is a peer.
// That is for caches; who reads from them asks TwinOf.
func PeerNamespaceSelector() labels.Selector {
	return selectorOf(map[string]selection.Operator{LabelRemoteClusterID: selection.Exists})
}

// TenantOf returns the peer whose tenant namespace a namespace of Liqo 0.9 is.
func TenantOf(namespace *corev1.Namespace) (cluster.ID, bool) {
	id := namespace.Labels[labelClusterID]
	_, tenant := namespace.Labels[labelDiscoveredTenant]
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

// TenantNamespaceSelector selects the namespaces that Liqo 0.9 makes for a peer each.
// The peer may not make pods there, nor put the label on a namespace of its own
// (liqo/deployments/liqo/files/liqo-remote-peering-*.yaml@v0.9.4).
func TenantNamespaceSelector() labels.Selector {
	return selectorOf(map[string]selection.Operator{labelDiscoveredTenant: selection.Exists})
}

// selectorOf selects what has some labels, and has not others.
func selectorOf(keys map[string]selection.Operator) labels.Selector {
	selector := labels.NewSelector()
	for key, operator := range keys {
		requirement, err := labels.NewRequirement(key, operator, nil)
		if err != nil {
			return labels.Nothing() // The keys are constants, and valid.
		}
		selector = selector.Add(*requirement)
	}
	return selector
}

// TenantNamespaceOf returns the tenant namespace of a cluster. The error may be
// [ErrNoTenant]. Liqo puts no certificate anywhere if there are several
// (liqo/pkg/tenantNamespace/tenantNamespace.go@v0.9.4).
func TenantNamespaceOf(ctx context.Context, reader client.Reader, id cluster.ID) (*corev1.Namespace, error) {
	var namespaces corev1.NamespaceList
	err := reader.List(ctx, &namespaces, client.MatchingLabels{labelClusterID: string(id)}, client.HasLabels{labelDiscoveredTenant})
	if err != nil {
		return nil, fmt.Errorf("list the tenant namespaces of cluster %s: %w", id, err)
	}
	if n := len(namespaces.Items); n != 1 {
		return nil, fmt.Errorf("cluster %s has %d tenant namespaces: %w", id, n, ErrNoTenant)
	}
	return &namespaces.Items[0], nil
}

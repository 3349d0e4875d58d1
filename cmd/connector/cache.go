// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cached"
	podcapacity "github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
)

// cacheOptions keep in memory only what is read of the objects of which there are many.
func cacheOptions() cache.Options {
	return cached.Options(map[client.Object]cache.ByObject{
		&connectorv1alpha1.Sale{}: {Transform: books.Kept},
		&v09.ForeignCluster{}:     {Transform: cached.Without(v09.KeepIdentity)},
		&v09.TunnelEndpoint{}:     {Transform: cached.Without(func(tunnel *v09.TunnelEndpoint) { tunnel.OwnerReferences = nil })},
		&corev1.Node{}:            {Transform: cached.Without(func(node *corev1.Node) { node.Annotations, node.Status.Images = nil, nil })},
		&corev1.Pod{}: {Transform: func(o any) (any, error) {
			if pod, ok := o.(*corev1.Pod); ok {
				return kept(pod), nil
			}
			return o, nil
		}},
	})
}

// kept returns of a pod where it is, whether another cluster has brought it, and otherwise what it requests.
func kept(pod *corev1.Pod) *corev1.Pod {
	small := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if manager, ok := pod.Labels[liqo.LabelManagedBy]; ok && manager == liqo.ManagedByShadowPod {
		small.Labels = map[string]string{liqo.LabelManagedBy: manager}
		return small
	}
	small.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: podcapacity.Requests(&pod.Spec)}}}
	return small
}

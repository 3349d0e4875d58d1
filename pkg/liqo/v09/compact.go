// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	offloadingv1alpha1 "github.com/liqotech/liqo/apis/offloading/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// CompactOffloading drops what nobody reads of a NamespaceOffloading that the
// broker keeps. An offloading can have the state of a namespace on a thousand clusters.
func CompactOffloading(c *liqo.Compactor, o *NamespaceOffloading) {
	o.ManagedFields = nil
	c.Selector(&o.Spec.ClusterSelector)
	remote := make(map[string]offloadingv1alpha1.RemoteNamespaceConditions, len(o.Status.RemoteNamespacesConditions))
	for name, conditions := range o.Status.RemoteNamespacesConditions {
		switch is := reception(conditions); {
		case is.Present:
			remote[c.Name(name)] = receiving
		case is.Refused:
			remote[c.Name(name)] = refusedSince(metav1.NewTime(is.Since))
		}
	}
	o.Status.RemoteNamespacesConditions = remote
}

// receiving are the conditions of every cluster that has the namespace. They are
// shared, and not to be changed.
var receiving = offloadingv1alpha1.RemoteNamespaceConditions{
	{Type: offloadingv1alpha1.NamespaceOffloadingRequired, Status: corev1.ConditionTrue},
	{Type: offloadingv1alpha1.NamespaceReady, Status: corev1.ConditionTrue},
}

// refusedSince returns the conditions of a cluster that cannot make the namespace.
func refusedSince(since metav1.Time) offloadingv1alpha1.RemoteNamespaceConditions {
	return offloadingv1alpha1.RemoteNamespaceConditions{
		{Type: offloadingv1alpha1.NamespaceOffloadingRequired, Status: corev1.ConditionTrue},
		{
			Type: offloadingv1alpha1.NamespaceReady, Status: corev1.ConditionFalse,
			Reason: creationFailed, LastTransitionTime: since,
		},
	}
}

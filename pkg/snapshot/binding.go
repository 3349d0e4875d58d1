// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// MayApply reports whether a policy applies to some namespaces of a consumer only: those
// whose pods wish it, or those that it is bound to.
func MayApply(p *v1alpha1.PlacementPolicy, consumer cluster.ID) bool {
	return Selectable(p, consumer) || bindable(p, consumer)
}

// bindable reports whether a policy is bound to namespaces of a consumer.
func bindable(p *v1alpha1.PlacementPolicy, consumer cluster.ID) bool {
	return p.Spec.Namespaces != nil && !p.Spec.Selectable && p.DeletionTimestamp.IsZero() &&
		(len(p.Spec.Consumers) == 0 || slices.Contains(p.Spec.Consumers, string(consumer)))
}

// bound returns the policy that is bound to a namespace: the first by name; nil if there
// is none. One whose selector nobody can mean is bound to no namespace.
func bound(policies []v1alpha1.PlacementPolicy, ns *corev1.Namespace) *v1alpha1.PlacementPolicy {
	consumer, _ := liqo.TwinOf(ns)
	var found *v1alpha1.PlacementPolicy
	for i := range policies {
		p := &policies[i]
		if bindable(p, consumer) && (found == nil || p.Name < found.Name) && means(p.Spec.Namespaces, ns) {
			found = p
		}
	}
	return found
}

// means reports whether a binding means a namespace.
func means(b *v1alpha1.NamespaceBinding, ns *corev1.Namespace) bool {
	if len(b.Names) > 0 && !slices.Contains(b.Names, liqo.OriginalName(ns)) {
		return false
	}
	if b.Selector == nil {
		return len(b.Names) > 0
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Selector)
	return err == nil && selector.Matches(labels.Set(ns.Labels))
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/binding"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// scopes are how the core calls them; one that the API does not know is binding.Nothing.
var scopes = map[v1alpha1.PolicyScope]binding.Scope{
	v1alpha1.ScopeDefault:    binding.Default,
	v1alpha1.ScopeConsumers:  binding.OfConsumers,
	v1alpha1.ScopeNamespaces: binding.OfNamespaces,
	v1alpha1.ScopeOnRequest:  binding.OnRequest,
}

// Scope returns to what a policy applies; known is false if its scope is none. One that cannot be
// read is taken for what its other fields tell: a policy that vanished would let pods go where
// they must not.
func Scope(to v1alpha1.AppliesTo) (scope binding.Scope, known bool) {
	scope, known = scopes[to.Scope]
	switch {
	case known:
	case to.Namespaces != nil:
		scope = binding.OfNamespaces
	case len(to.Consumers) > 0:
		scope = binding.OfConsumers
	}
	return scope, known
}

// Rules returns to whom policies apply. Those that are being deleted apply to nobody.
func Rules(policies []v1alpha1.PlacementPolicy) []binding.Policy {
	rules := make([]binding.Policy, 0, len(policies))
	for i := range policies {
		p := &policies[i]
		if !p.DeletionTimestamp.IsZero() {
			continue
		}
		to := &p.Spec.AppliesTo
		scope, _ := Scope(*to)
		rule := binding.Policy{Name: p.Name, Scope: scope, Priority: p.Spec.Priority, Consumers: to.Consumers}
		if n := to.Namespaces; n != nil {
			rule.Namespaces = binding.Namespaces{Names: n.Names, Selector: n.Selector}
		}
		rules = append(rules, rule)
	}
	return rules
}

// twinOf returns a namespace of a consumer as the rules know it.
func twinOf(ns *corev1.Namespace, shadows []metav1.PartialObjectMetadata) binding.Twin {
	consumer, _ := liqo.TwinOf(ns)
	wishes := map[string]bool{}
	for i := range shadows {
		if wish := shadows[i].Labels[liqo.LabelPolicy]; wish != "" {
			wishes[wish] = true
		}
	}
	return binding.Twin{Consumer: consumer, OriginalName: liqo.OriginalName(ns), Labels: ns.Labels, Wishes: wishes}
}

// named returns the policy of a name; nil if there is none.
func named(policies []v1alpha1.PlacementPolicy, name string) *v1alpha1.PlacementPolicy {
	for i := range policies {
		if policies[i].Name == name && name != "" {
			return &policies[i]
		}
	}
	return nil
}

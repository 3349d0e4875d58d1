// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Shadow is what a policy says in vain, because of another one that goes before it in the
// same scope.
type Shadow struct {
	// By is the name of the other policy.
	By string
	// Consumers and Namespaces are the IDs and names that both have, in the order of the policy
	// that is shadowed. Both are empty if all that it applies to follows the other one.
	Consumers, Namespaces []string
}

// ShadowsOf returns what goes before a policy in its own scope, as far as the policies
// alone tell: namespaces by name and by label may turn out to be the same ones. A policy of
// a narrower scope shadows nothing: it is meant to be an exception. The order is that of
// the names.
func ShadowsOf(p *Policy, all []Policy) []Shadow {
	var shadows []Shadow
	for i := range all {
		if o := &all[i]; o.Name != p.Name && o.Scope == p.Scope && o.before(p) < 0 {
			if shadow, is := p.shadowedBy(o); is {
				shadows = append(shadows, shadow)
			}
		}
	}
	slices.SortFunc(shadows, func(a, b Shadow) int { return strings.Compare(a.By, b.By) })
	return shadows
}

// shadowedBy returns what both of two policies of one scope apply to, and false if that is
// nothing. The other one goes first.
func (p *Policy) shadowedBy(o *Policy) (Shadow, bool) {
	shadow := Shadow{By: o.Name}
	switch p.Scope {
	case Default:
		return shadow, true
	case OfConsumers:
		shadow.Consumers = common(p.Consumers, o.Consumers)
		return shadow, len(shadow.Consumers) > 0
	case OfNamespaces:
		return p.namespacesShadowedBy(o)
	case OnRequest, Nothing: // Pods say which one they want.
	}
	return Shadow{}, false
}

func (p *Policy) namespacesShadowedBy(o *Policy) (Shadow, bool) {
	shadow := Shadow{By: o.Name}
	if len(o.Consumers) > 0 { // Otherwise it means all consumers.
		if shadow.Consumers = common(p.Consumers, o.Consumers); len(p.Consumers) == 0 {
			shadow.Consumers = o.Consumers
		}
		if len(shadow.Consumers) == 0 {
			return Shadow{}, false
		}
	}
	// With the same selector, or without one, the other one has every namespace whose name it has.
	if o.Namespaces.Selector != nil && !equality.Semantic.DeepEqual(p.Namespaces.Selector, o.Namespaces.Selector) {
		return Shadow{}, false
	}
	if len(o.Namespaces.Names) == 0 {
		return shadow, o.Namespaces.Selector != nil
	}
	shadow.Namespaces = common(p.Namespaces.Names, o.Namespaces.Names)
	if len(p.Namespaces.Names) == 0 && o.Namespaces.Selector != nil { // All with the labels are p's.
		shadow.Namespaces = o.Namespaces.Names
	}
	return shadow, len(shadow.Namespaces) > 0
}

// common returns what is in both lists, in the order of the first.
func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binding says which placement policy a namespace of a consumer follows.
//
// It knows to whom policies apply, and neither what they ask of providers nor whom they
// have chosen.
package binding

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Scope is to what a policy applies. A namespace follows a policy of the first scope in this
// order that has one for it.
type Scope int

// The scopes.
const (
	// Nothing is the scope of a policy that applies to no namespace.
	Nothing Scope = iota
	// OnRequest is the namespaces whose pods name the policy.
	OnRequest
	// OfNamespaces is the namespaces that the policy names.
	OfNamespaces
	// OfConsumers is all namespaces of the consumers that the policy names.
	OfConsumers
	// Default is all namespaces.
	Default
)

// Policy is to whom a placement policy applies.
type Policy struct {
	Name  string
	Scope Scope
	// Priority is compared where several policies of one scope apply: the highest goes first, and
	// of equal ones the first by name.
	Priority int32
	// Consumers are the IDs of clusters: with OfConsumers those that the policy applies to, with
	// OnRequest and OfNamespaces those whose pods and namespaces are meant, which are all if
	// there is none.
	Consumers []string
	// Namespaces are those of the scope OfNamespaces.
	Namespaces Namespaces
}

// Namespaces are the namespaces that a policy is bound to: all that have one of the names,
// if there are any, and the labels, if there is a selector. The zero value is none.
type Namespaces struct {
	// Names are those that the consumer gave to its namespaces.
	Names    []string
	Selector *metav1.LabelSelector
}

// Twin is a namespace of a consumer on the broker.
type Twin struct {
	Consumer cluster.ID
	// OriginalName is what the consumer calls it.
	OriginalName string
	// Labels are those of the namespace on the broker.
	Labels map[string]string
	// Wishes are the names of the policies that pods in it name.
	Wishes map[string]bool
}

// Follows returns the name of the policy that a namespace follows: the first in the order of
// scopes, priorities and names that applies to it. It is empty if there is none.
func Follows(policies []Policy, t Twin) string {
	return first(policies, func(p *Policy) bool { return p.appliesTo(t) })
}

// OfConsumer returns the name of the policy that the namespaces of a consumer follow that no
// policy of a narrower scope applies to. It is empty if there is none.
func OfConsumer(policies []Policy, consumer cluster.ID) string {
	return first(policies, func(p *Policy) bool { return p.appliesToAll(consumer) })
}

// MayApply reports whether a policy applies to some namespaces of a consumer, and not to
// others: those whose pods name it, or those that it is bound to.
func (p *Policy) MayApply(consumer cluster.ID) bool {
	return (p.Scope == OnRequest || p.Scope == OfNamespaces) && p.admits(consumer)
}

func (p *Policy) appliesTo(t Twin) bool {
	switch p.Scope {
	case OnRequest:
		return t.Wishes[p.Name] && p.admits(t.Consumer)
	case OfNamespaces:
		return p.admits(t.Consumer) && p.Namespaces.mean(t)
	case OfConsumers, Default, Nothing:
		return p.appliesToAll(t.Consumer)
	}
	return false
}

func (p *Policy) appliesToAll(consumer cluster.ID) bool {
	return p.Scope == Default || p.Scope == OfConsumers && slices.Contains(p.Consumers, string(consumer))
}

func (p *Policy) admits(consumer cluster.ID) bool {
	return len(p.Consumers) == 0 || slices.Contains(p.Consumers, string(consumer))
}

// mean reports whether a namespace is meant. A selector that nobody can mean, and nothing at
// all, means none.
func (n *Namespaces) mean(t Twin) bool {
	if len(n.Names) > 0 && !slices.Contains(n.Names, t.OriginalName) {
		return false
	}
	if n.Selector == nil {
		return len(n.Names) > 0
	}
	selector, err := metav1.LabelSelectorAsSelector(n.Selector)
	return err == nil && selector.Matches(labels.Set(t.Labels))
}

// before orders policies: the one that a namespace follows if both apply to it is the lesser.
func (p *Policy) before(o *Policy) int {
	return cmp.Or(cmp.Compare(p.Scope, o.Scope), cmp.Compare(o.Priority, p.Priority), cmp.Compare(p.Name, o.Name))
}

// first returns the name of the first in their order of the policies that fit.
func first(policies []Policy, fits func(*Policy) bool) string {
	var found *Policy
	for i := range policies {
		if p := &policies[i]; fits(p) && (found == nil || p.before(found) < 0) {
			found = p
		}
	}
	if found == nil {
		return ""
	}
	return found.Name
}

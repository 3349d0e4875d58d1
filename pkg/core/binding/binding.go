// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binding says which placement policy a namespace of a consumer follows.
//
// It knows to whom policies apply, and neither what they ask of providers nor whom they
// have chosen.
package binding

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Policy is to whom a placement policy applies.
//
//	Selectable          pods that wish it
//	else Namespaces     the namespaces that it is bound to
//	else Consumers      the namespaces of these consumers
//	Default             the namespaces of all consumers that no policy names; without Namespaces
//
// With Selectable or Namespaces, Consumers says whose pods and namespaces are meant; none
// means those of all consumers.
type Policy struct {
	Name string
	// Consumers are the IDs of clusters.
	Consumers           []string
	Default, Selectable bool
	Namespaces          *Namespaces
}

// Namespaces are the namespaces that a policy is bound to: all that have one of the names,
// if there are any, and the labels, if there is a selector.
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
	// Wishes are the names of the policies that pods in it wish.
	Wishes map[string]bool
}

// Follows returns the name of the policy that a namespace follows: one that its pods wish,
// else one that it is bound to, else that of its consumer; of several the first by name.
// It is empty if there is none.
func Follows(policies []Policy, t Twin) string {
	wished := first(policies, func(p *Policy) bool { return t.Wishes[p.Name] && p.mayBeWished(t.Consumer) })
	if wished != "" {
		return wished
	}
	bound := first(policies, func(p *Policy) bool { return p.mayBeBound(t.Consumer) && p.Namespaces.mean(t) })
	if bound != "" {
		return bound
	}
	return OfConsumer(policies, t.Consumer)
}

// OfConsumer returns the name of the policy that the namespaces of a consumer follow whose
// pods wish none, and that none is bound to: one that names the consumer, else a default
// one; of several the first by name. It is empty if there is none.
func OfConsumer(policies []Policy, consumer cluster.ID) string {
	named := first(policies, func(p *Policy) bool {
		return p.Namespaces == nil && !p.Selectable && slices.Contains(p.Consumers, string(consumer))
	})
	if named != "" {
		return named
	}
	return first(policies, func(p *Policy) bool { return p.Namespaces == nil && p.Default })
}

// MayApply reports whether a policy applies to some namespaces of a consumer, and not to
// others: those whose pods wish it, or those that it is bound to.
func (p *Policy) MayApply(consumer cluster.ID) bool {
	return p.mayBeWished(consumer) || p.mayBeBound(consumer)
}

func (p *Policy) mayBeWished(consumer cluster.ID) bool { return p.Selectable && p.admits(consumer) }

func (p *Policy) mayBeBound(consumer cluster.ID) bool {
	return p.Namespaces != nil && !p.Selectable && p.admits(consumer)
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

// first returns the first name, in their order, of the policies that fit.
func first(policies []Policy, fits func(*Policy) bool) string {
	name := ""
	for i := range policies {
		if p := &policies[i]; (name == "" || p.Name < name) && fits(p) {
			name = p.Name
		}
	}
	return name
}

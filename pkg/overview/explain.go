// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/binding"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Placements is what a broker's cluster has of placement.
type Placements struct {
	OnBroker

	Policies    []v1alpha1.PlacementPolicy
	Decisions   []v1alpha1.PlacementDecision
	Offloadings []liqo.Offloading
	// Liqo is the line of Liqo that runs.
	Liqo line.Line
	// Shadows are the metadata of the ShadowPods of consumers.
	Shadows []metav1.PartialObjectMetadata
	// Heard is what consumers have told of the providers that they reach. Those of whom it is not known are missing, as all with Liqo 0.9.
	Heard map[cluster.ID]grant.Heard
}

// Explanation says why pods run where they do. What has the name that was asked for is in it, whatever it is.
type Explanation struct {
	Policies   []ExplainedPolicy    `json:"policies,omitempty"`
	Namespaces []ExplainedNamespace `json:"namespaces,omitempty"`
}

// ExplainedPolicy is what a policy has decided.
type ExplainedPolicy struct {
	Name       string               `json:"name"`
	Scope      v1alpha1.PolicyScope `json:"scope"`
	Priority   int32                `json:"priority"`
	Conditions []metav1.Condition   `json:"conditions,omitempty"`
	Decisions  []ExplainedDecision  `json:"decisions,omitempty"`
}

// ExplainedDecision is what was decided for one consumer.
type ExplainedDecision struct {
	Consumer  Cluster     `json:"consumer"`
	Providers []Candidate `json:"providers"`
	// Complete is false if the decision does not explain all providers.
	Complete bool `json:"complete"`
}

// Candidate is a provider that was looked at.
type Candidate struct {
	Cluster

	// Chosen reports whether pods may go there.
	Chosen bool `json:"chosen"`
	// Score is up to 100; empty if there is none.
	Score string `json:"score,omitempty"`
	// Why is what excludes it, or what its score is made of.
	Why []string `json:"why,omitempty"`
}

// ExplainedNamespace is a consumer's namespace on the broker.
type ExplainedNamespace struct {
	// Name is how the consumer calls it, and Twin the broker.
	Name     string  `json:"name"`
	Twin     string  `json:"twin"`
	Consumer Cluster `json:"consumer"`
	// Policy is the policy that it follows; empty if it follows none, so that all providers are used.
	Policy string `json:"policy,omitempty"`
	// Unheeded are the policies that pods name in vain, in order: none that pods may name is called so, or it is not for this consumer.
	Unheeded []string `json:"unheeded,omitempty"`
	// Waiting says why new pods wait, as far as objects tell; empty if nothing tells that they do.
	Waiting   string      `json:"waiting,omitempty"`
	Providers []Candidate `json:"providers"`
	// Complete is false if there are providers of which nothing is said.
	Complete bool        `json:"complete"`
	Pods     []Explained `json:"pods,omitempty"`
}

// Explained is a pod, with why it waits, or why it stays where it is not to be.
type Explained struct {
	Placed

	Why string `json:"why,omitempty"`
}

// Found reports whether there is anything of the name.
func (e *Explanation) Found() bool { return len(e.Policies)+len(e.Namespaces) > 0 }

// Asked returns the consumers whose namespaces a name means for Explain.
func (p *Placements) Asked(name string) []v1alpha1.Consumer {
	asked := map[string]bool{}
	namespace, _, _ := strings.Cut(name, "/")
	for i := range p.Namespaces {
		if consumer, is := isCalled(&p.Namespaces[i], namespace); is {
			asked[string(consumer)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(p.Consumers), func(c v1alpha1.Consumer) bool { return !asked[c.Name] })
}

// isCalled reports whether a namespace is one of a consumer, and has a name here or there.
func isCalled(ns *corev1.Namespace, name string) (consumer cluster.ID, is bool) {
	consumer, twin := liqo.TwinOf(ns)
	return consumer, twin && (name == ns.Name || name == liqo.OriginalName(ns))
}

// Explain explains what has a name: a policy, a namespace by its name on the broker or on its consumer, or a pod of such a
// namespace as NAMESPACE/NAME.
func (p *Placements) Explain(now time.Time, name string) Explanation {
	var e Explanation
	namespace, pod, ofPod := strings.Cut(name, "/")
	for i := range p.Policies {
		if p.Policies[i].Name == name {
			e.Policies = append(e.Policies, p.policy(now, &p.Policies[i]))
		}
	}
	for i := range p.Namespaces {
		ns := &p.Namespaces[i]
		consumer, is := isCalled(ns, namespace)
		if !is {
			continue
		}
		explained := p.namespace(now, ns, consumer)
		if ofPod {
			explained.Pods = slices.DeleteFunc(explained.Pods, func(other Explained) bool { return other.Pod != pod })
			if len(explained.Pods) == 0 {
				continue
			}
		}
		e.Namespaces = append(e.Namespaces, explained)
	}
	return e
}

func (p *Placements) policy(now time.Time, policy *v1alpha1.PlacementPolicy) ExplainedPolicy {
	e := ExplainedPolicy{
		Name: policy.Name, Scope: policy.Spec.AppliesTo.Scope, Priority: policy.Spec.Priority, Conditions: policy.Status.Conditions,
	}
	for i := range p.Decisions {
		if d := &p.Decisions[i]; d.IsOf(policy, d.Consumer) {
			e.Decisions = append(e.Decisions, Decided(now, &d.ConsumerDecision))
		}
	}
	return e
}

// Decided returns a decision with the candidates in their order: the best come first, then those that are excluded.
func Decided(now time.Time, d *v1alpha1.ConsumerDecision) ExplainedDecision {
	e := ExplainedDecision{
		Consumer: Cluster{d.Consumer, d.ConsumerName}, Providers: []Candidate{}, Complete: d.NotExplained == 0 && len(d.Explained) > 0,
	}
	// What is known of a provider besides its score: that it is chosen, and whom it is better than.
	said := map[string]*v1alpha1.ChosenProvider{}
	for i := range d.Chosen {
		said[d.Chosen[i].ID] = &d.Chosen[i]
	}
	add := func(c Candidate) {
		if chosen := said[c.ID]; chosen != nil {
			c.Chosen = true
			c.Why = append(c.Why, remarks(now, chosen)...)
			delete(said, c.ID)
		}
		for _, better := range d.Better {
			if better.ID == c.ID {
				c.Why = append(c.Why, "better than a chosen one for "+sheet.Since(now, better.SinceTime)+", and takes its place when that has lasted")
			}
		}
		e.Providers = append(e.Providers, c)
	}
	// In the order of the explanations, which is that of the scores.
	for _, x := range d.Explained {
		c := Candidate{Cluster: Cluster{x.ID, x.Name}, Score: string(x.Score)}
		switch {
		case x.Excluded != "":
			c.Why = append(c.Why, x.Excluded)
		case said[x.ID] == nil:
			c.Why = append(c.Why, "it passes the filters, and others come first")
		}
		for _, t := range x.Terms {
			value := string(t.Value) + " " + t.Unit
			if t.Unknown != "" {
				value = t.Unknown
			}
			c.Why = append(c.Why, fmt.Sprintf("%s: %s (%s of 1, weight %d)", t.KPI, value, t.Normalized, t.Weight))
		}
		add(c)
	}
	// A chosen one that is not explained is shown at last.
	for _, chosen := range d.Chosen {
		if said[chosen.ID] != nil {
			add(Candidate{Cluster: Cluster{chosen.ID, chosen.Name}})
		}
	}
	return e
}

// remarks says what is special about a chosen provider.
func remarks(now time.Time, c *v1alpha1.ChosenProvider) []string {
	var all []string
	if c.AwaySinceTime != nil {
		all = append(all, "cannot be used for "+sheet.Since(now, *c.AwaySinceTime)+", and keeps its place for a while")
	}
	if c.Substitute {
		all = append(all, "stands in for one that cannot be used")
	}
	if c.Barred {
		all = append(all, "gets no new pods while the policy cannot decide")
	}
	return all
}

// namespace explains a namespace of a consumer.
func (p *Placements) namespace(now time.Time, ns *corev1.Namespace, id cluster.ID) ExplainedNamespace {
	e := ExplainedNamespace{Name: liqo.OriginalName(ns), Twin: ns.Name, Consumer: Cluster{ID: string(id)}, Complete: true}
	consumer := of(p.Consumers, string(id))
	if consumer != nil {
		e.Consumer.Name = consumer.Status.ClusterName
	}
	// The policy, and what it has decided.
	wishes := map[string]bool{}
	for i := range p.Shadows {
		if wish := p.Shadows[i].Labels[liqo.LabelPolicy]; wish != "" && p.Shadows[i].Namespace == ns.Name {
			wishes[wish] = true
		}
	}
	rules, twin := snapshot.Rules(p.Policies), binding.Twin{Consumer: id, OriginalName: e.Name, Labels: ns.Labels, Wishes: wishes}
	e.Policy, e.Unheeded = binding.Follows(rules, twin), unheeded(rules, twin)
	if e.Policy == "" {
		e.Providers = p.all()
	} else {
		decision := p.decisionFor(now, e.Policy, id)
		e.Providers, e.Complete = decision.Providers, decision.Complete
	}
	// What keeps this namespace from providers, whatever the policy says.
	p.hinder(ns, id, e.Providers)
	unreached := p.unreached(id, e.Providers)
	e.Waiting = waiting(consumer, &e, unreached)
	// The pods.
	why := p.Whys()
	for _, placed := range p.Placed(ns.Name) {
		if placed.Twin == ns.Name {
			e.Pods = append(e.Pods, Explained{placed, why(&placed)})
		}
	}
	return e
}

// unheeded returns the policies that pods of a namespace name, and that cannot be followed for that, in order.
func unheeded(rules []binding.Policy, twin binding.Twin) []string {
	var all []string
	for _, wish := range slices.Sorted(maps.Keys(twin.Wishes)) {
		meant := slices.DeleteFunc(slices.Clone(rules), func(p binding.Policy) bool {
			return p.Name != wish || p.Scope != binding.OnRequest
		})
		if binding.Follows(meant, twin) == "" {
			all = append(all, wish)
		}
	}
	return all
}

// decisionFor returns what a policy has decided for a consumer; one without providers if nothing.
func (p *Placements) decisionFor(now time.Time, policy string, consumer cluster.ID) ExplainedDecision {
	for i := range p.Decisions {
		if d := &p.Decisions[i]; d.IsOf(of(p.Policies, policy), string(consumer)) {
			return Decided(now, &d.ConsumerDecision)
		}
	}
	return ExplainedDecision{Providers: []Candidate{}, Complete: true}
}

// all returns all providers as candidates of a namespace without a policy.
func (p *Placements) all() []Candidate {
	all := make([]Candidate, len(p.Providers))
	for i := range p.Providers {
		is := &p.Providers[i]
		ready := meta.FindStatusCondition(is.Status.Conditions, v1alpha1.ConditionReady)
		all[i] = Candidate{Cluster: Cluster{is.Name, is.Status.ClusterName}, Chosen: ready != nil && ready.Status == metav1.ConditionTrue}
		switch {
		case ready == nil:
			all[i].Why = []string{"The provider is not known yet"}
		case !all[i].Chosen:
			all[i].Why = []string{cmp.Or(ready.Message, ready.Reason)}
		}
	}
	return all
}

// hinder takes the providers out to which a namespace cannot go, and says why.
func (p *Placements) hinder(ns *corev1.Namespace, consumer cluster.ID, candidates []Candidate) {
	var offloading *liqo.Offloading
	for i := range p.Offloadings {
		if p.Offloadings[i].Namespace == ns.Name {
			offloading = &p.Offloadings[i]
		}
	}
	for i := range candidates {
		c := &candidates[i]
		identity := cluster.Identity{ID: cluster.ID(c.ID), Name: c.Name}
		why := ""
		switch {
		case identity.ID == consumer:
			why = "It is the consumer itself"
		case p.Liqo.Passed(ns, identity):
			why = "The namespace came from it, or through it"
		case offloading != nil && p.Liqo.ReceptionOf(offloading.Object, identity).Refused:
			why = "It cannot create the namespace: it may have another one of that name"
		}
		if why != "" {
			c.Chosen, c.Why = false, append([]string{why}, c.Why...)
		}
	}
}

// unreached takes the providers out that a consumer has not told that it reaches, and returns what is missing and what to do about that;
// nothing if it reaches all, or need not tell.
func (p *Placements) unreached(consumer cluster.ID, candidates []Candidate) string {
	heard := p.Heard[consumer]
	missing := ""
	for i := range candidates {
		c := &candidates[i]
		if !c.Chosen || heard.Knows(cluster.ID(c.ID)) {
			continue
		}
		why := "The consumer has not told lately that it reaches it"
		if _, seen := heard.Granted[cluster.ID(c.ID)]; seen {
			missing = ofAgent(&heard)
		} else {
			why = "Liqo has not decided here under which prefix its pods are seen"
			missing = cmp.Or(missing, "Liqo has not decided here under which prefix the pods of providers are seen: kubectl liqo-broker diagnose")
		}
		c.Chosen, c.Why = false, append([]string{why}, c.Why...)
	}
	return missing
}

// ofAgent says what is missing of a consumer's agent that has not acknowledged the network of a provider, and what to do.
func ofAgent(heard *grant.Heard) string {
	what, reason := "The consumer's agent has acknowledged the network of no provider that takes pods", v1alpha1.ReasonViewsUnknown
	switch agent, _ := heard.Agent(); agent {
	case grant.AgentNeverHeard:
		what, reason = "The consumer's agent was never heard", v1alpha1.ReasonAgentMissing
	case grant.AgentSilent:
		what, reason = fmt.Sprintf("The consumer's agent was not heard for more than %s, or its clock is wrong", grant.MaxSilence),
			v1alpha1.ReasonSilent
	case grant.AgentUnreadable:
		what, reason = "What the consumer's agent tells cannot be read: "+sheet.Plain(heard.Unreadable), v1alpha1.ReasonUnreadable
	case grant.AgentBehind, grant.AgentNotAsked, grant.AgentReporting:
	}
	return what + ". " + agentRemedy(reason)
}

// waiting says why new pods of a namespace wait, as far as that can be seen; unreached is what is missing to reach providers.
func waiting(consumer *v1alpha1.Consumer, e *ExplainedNamespace, unreached string) string {
	switch {
	case consumer != nil && consumer.IsSuspended():
		return "The consumer is suspended: kubectl liqo-broker resume " + consumer.Name
	case consumer != nil && sheet.Reason(consumer.Status.Conditions, v1alpha1.ConditionReady) == v1alpha1.ReasonModeNotServed:
		return "The broker does not run the mode of the consumer"
	case slices.ContainsFunc(e.Providers, func(c Candidate) bool { return c.Chosen }):
		return ""
	case unreached != "":
		return unreached
	case e.Policy != "" && len(e.Providers) == 0:
		return "The policy has not decided for the consumer yet"
	default:
		return "No provider can be used"
	}
}

// of returns the object of a name; nil if there is none.
func of[T any, P interface {
	*T
	GetName() string
}](all []T, name string) P {
	for i := range all {
		if P(&all[i]).GetName() == name {
			return &all[i]
		}
	}
	return nil
}

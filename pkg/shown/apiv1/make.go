// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// ConsumerOf returns a consumer.
func ConsumerOf(c *v1alpha1.Consumer) Consumer {
	ready, reason := readiness(c.Status.Conditions)
	scheduling := v1alpha1.ConsumerActive
	if c.IsSuspended() {
		scheduling = v1alpha1.ConsumerSuspended
	}
	return Consumer{
		Cluster: Cluster{c.Name, c.Status.ClusterName}, Mode: string(c.Status.Mode), Scheduling: string(scheduling), Ready: ready, Reason: reason,
		Nodes: string(c.Status.Nodes), Reserved: quantities(corev1.ResourceList(c.Spec.Capacity.Reserved)),
		Limit: quantities(corev1.ResourceList(c.Spec.Capacity.Limit)), Share: c.Spec.Capacity.Share(),
		Offered: quantities(c.Status.Offered), Used: quantities(c.Status.Used),
		Conditions: conditions(c.Status.Conditions), Created: c.CreationTimestamp.UTC(),
	}
}

// OfferOf returns what a consumer is offered.
func OfferOf(c *v1alpha1.Consumer) Offer {
	o := Offer{
		Consumer: Cluster{c.Name, c.Status.ClusterName}, Offered: quantities(c.Status.Offered), Granted: quantities(c.Status.Granted),
		Used: quantities(c.Status.Used),
	}
	for _, n := range c.Status.NodeOffers {
		o.Nodes = append(o.Nodes, NodeOffer{n.Node, n.Provider, quantities(n.Offered)})
	}
	return o
}

// PolicyOf returns a policy.
func PolicyOf(p *v1alpha1.PlacementPolicy) Policy {
	shown := Policy{
		Name: p.Name, Scope: string(p.Spec.AppliesTo.Scope), Consumers: p.Spec.AppliesTo.Consumers, Priority: p.Spec.Priority,
		Decided: p.Status.Consumers, Summary: p.Status.Summary, Conditions: conditions(p.Status.Conditions), Created: p.CreationTimestamp.UTC(),
	}
	if p.Spec.AppliesTo.Namespaces != nil {
		shown.Namespaces = p.Spec.AppliesTo.Namespaces.Names
	}
	for _, f := range p.Spec.Filters {
		shown.Filters = append(shown.Filters, string(f))
	}
	for name, weight := range p.Spec.Weights {
		if shown.Weights == nil {
			shown.Weights = map[string]int32{}
		}
		shown.Weights[name] = int32(weight)
	}
	if p.Spec.MaxProviders != nil {
		shown.MaxProviders = *p.Spec.MaxProviders
	}
	return shown
}

// maxFindings is how many findings a Status names: nobody reads more at once.
const maxFindings = 100

// StatusOf returns the broker at one moment.
func StatusOf(s *overview.Status) Status {
	group := func(g overview.Group) Group { return Group{g.Total, g.States} }
	shown := Status{
		Healthy: s.Healthy, Modes: []string{},
		Providers: group(s.Providers), Consumers: group(s.Consumers), Policies: group(s.Policies), Queries: group(s.Queries),
		Decisions: Decisions{s.Decisions.Total, s.Decisions.Empty},
		Offered:   quantities(s.Capacity.Offered), Used: quantities(s.Capacity.Used), Free: quantities(s.Capacity.Free),
	}
	shown.Modes = append(shown.Modes, s.Broker.Modes...)
	shown.Next, shown.More = FindingsOf(s.Next)
	return shown
}

// FindingsOf returns the first of some findings, and how many there are besides.
func FindingsOf(all []overview.Finding) (first []Finding, more int) {
	first = []Finding{}
	for _, f := range all[:min(len(all), maxFindings)] {
		first = append(first, Finding{f.Problem, f.What, f.Do})
	}
	return first, len(all) - len(first)
}

// LinkOf returns a link.
func LinkOf(l *overview.Link) Link {
	shown := Link{
		From: Cluster(l.From), To: Cluster(l.To), Kind: "Broker", Connected: l.Connected, RoundTripSeconds: l.RoundTrip.Seconds(),
		Measured: l.Measured.UTC(), Outgoing: l.Outgoing, Incoming: l.Incoming,
	}
	if l.Direct {
		shown.Kind = "Direct"
	}
	return shown
}

// What an Advice says.
const (
	adviceHidden = "The broker hides the providers from this consumer, and relays its traffic: there is nobody to peer with"
	adviceRelays = "With Liqo 1.x the broker relays all traffic: there is no provider with which to peer"
	adviceNone   = "No provider runs pods of this consumer, and none is chosen for it"
	adviceDone   = "The consumer has told of a tunnel to each of these providers"
	adviceDo     = "Peer with the providers that are not connected, so that their pods are reached directly; until then the broker relays"
)

// maxPeers is how many peers an Advice names: nobody makes more peerings at once.
const maxPeers = 100

// AdviceOf returns advice for a consumer.
func AdviceOf(a *overview.Advice) Advice {
	shown := Advice{Consumer: Cluster(a.Consumer), Done: true, Peers: []Peer{}}
	for i := range a.Peers {
		p := &a.Peers[i]
		shown.Done = shown.Done && p.Connected
		if i >= maxPeers {
			shown.More++
			continue
		}
		shown.Peers = append(shown.Peers, Peer{
			Provider: Cluster(p.Provider), Running: p.Running, Policies: p.Policies, Reasons: p.Reasons, Connected: p.Connected, AuthURL: p.AuthURL,
			Check: "kubectl get foreignclusters.discovery.liqo.io -l discovery.liqo.io/cluster-id=" + p.Provider.ID,
		})
	}
	switch {
	case a.Hidden:
		shown.Message = adviceHidden
	case a.Relayed:
		shown.Message = adviceRelays
	case len(shown.Peers) == 0:
		shown.Message = adviceNone
	case shown.Done:
		shown.Message = adviceDone
	default:
		shown.Message = adviceDo
	}
	return shown
}

// readiness returns whether the condition Ready is true, and its reason.
func readiness(all []metav1.Condition) (ready bool, reason string) {
	c := meta.FindStatusCondition(all, v1alpha1.ConditionReady)
	if c == nil {
		return false, ""
	}
	return c.Status == metav1.ConditionTrue, c.Reason
}

func conditions(all []metav1.Condition) []Condition {
	var shown []Condition
	for i := range all {
		c := &all[i]
		shown = append(shown, Condition{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime.UTC()})
	}
	return shown
}

// kpis leaves out what is no number.
func kpis(all []v1alpha1.KPI, source string) []KPI {
	var shown []KPI
	for i := range all {
		if k := all[i].Decode(); k.Unit != "" && finite(k.Value) {
			shown = append(shown, KPI{all[i].Name, k.Value, k.Unit, source, k.Measured.UTC(), k.Expires.UTC()})
		}
	}
	return shown
}

func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// quantities leaves out what is not bounded: people and peers may write quantities of many digits.
func quantities(of corev1.ResourceList) Resources {
	if len(of) == 0 {
		return nil
	}
	shown := Resources{}
	for name, quantity := range resources.Bounded(of) {
		shown[string(name)] = quantity.String()
	}
	return shown
}

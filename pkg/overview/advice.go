// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Advice says with which providers a consumer should have a peering of its own now, so that what it sends reaches its pods directly.
type Advice struct {
	Consumer Cluster
	// Hidden is true if the consumer must not learn of the providers: there is nobody to peer with.
	Hidden bool
	// Relayed is true if a peering would be of no use: the consumer reaches all providers through the broker.
	Relayed bool
	// Peers are in order: first those without a peering that run most of its pods.
	Peers []AdvisedPeer
}

// AdvisedPeer is a provider with which a consumer should be peered, and why.
type AdvisedPeer struct {
	Provider Cluster
	// Running is how many pods of the consumer are there.
	Running int
	// Policies have chosen it for the consumer, in order of their names.
	Policies []string
	Reasons  []string
	// Connected is true if the consumer has told the broker of its tunnel to the provider. The broker does not see one otherwise.
	Connected bool
	// AuthURL is where the provider authenticates who peers with it; empty if that is not known.
	AuthURL string
}

// Adviser gives advice from what a broker's cluster has.
type Adviser struct {
	Clusters  []liqo.Peer
	Providers []v1alpha1.Provider
	Policies  []v1alpha1.PlacementPolicy
	Decisions []v1alpha1.PlacementDecision
	// Relays tells that consumers reach all providers through the broker, whoever they are peered with.
	Relays bool
	// Placed are the pods of the consumers, and Links those of Peers.Links.
	Placed []Placed
	Links  []Link
}

// Advise returns the advice for each of some consumers, in their order.
func (a *Adviser) Advise(consumers []v1alpha1.Consumer) []Advice {
	// What runs where, and who reaches whom.
	running, connected, urls := map[pair]int{}, map[pair]bool{}, map[string]string{}
	for i := range a.Placed {
		if p := &a.Placed[i]; p.Consumer != nil && p.Provider != nil {
			running[pair{p.Consumer.ID, p.Provider.ID}]++
		}
	}
	for _, l := range a.Links {
		if l.Direct && l.Connected {
			connected[pair{l.From.ID, l.To.ID}] = true
		}
	}
	for i := range a.Clusters {
		urls[string(a.Clusters[i].ID)] = a.Clusters[i].AuthURL
	}
	chosen := a.chosen()

	// For each consumer the providers to which a tunnel of its own is of use, those without one first.
	advice := make([]Advice, len(consumers))
	for i := range consumers {
		c := &consumers[i]
		advice[i] = Advice{Consumer: named(ConsumerIdentity(c)), Hidden: Hides(c), Relayed: a.Relays}
		if advice[i].Hidden || a.Relays {
			continue
		}
		free := a.free(c.Name)
		for j := range a.Providers {
			p := &a.Providers[j]
			key := pair{c.Name, p.Name}
			if p.Name == c.Name {
				continue
			}
			peer := AdvisedPeer{
				Provider: named(ProviderIdentity(p)), Running: running[key], Policies: slices.Sorted(slices.Values(chosen[key])),
				Connected: connected[key], AuthURL: urls[p.Name],
			}
			if peer.Reasons = reasons(&peer, usable(p), free); len(peer.Reasons) > 0 {
				advice[i].Peers = append(advice[i].Peers, peer)
			}
		}
		slices.SortFunc(advice[i].Peers, func(x, y AdvisedPeer) int {
			first := map[bool]int{true: 1}
			return cmp.Or(first[x.Connected]-first[y.Connected], cmp.Compare(y.Running, x.Running), cmp.Compare(x.Provider.ID, y.Provider.ID))
		})
	}
	return advice
}

// pair is a consumer and a provider, by their IDs.
type pair struct{ consumer, provider string }

// chosen returns which policies have chosen whom for whom.
func (a *Adviser) chosen() map[pair][]string {
	chosen := map[pair][]string{}
	for i := range a.Decisions {
		d := &a.Decisions[i]
		if policy := of(a.Policies, d.Policy); policy == nil || !d.IsOf(policy, d.Consumer) {
			continue
		}
		for _, c := range d.Chosen {
			if !c.Barred && c.AwaySinceTime == nil {
				chosen[pair{d.Consumer, c.ID}] = append(chosen[pair{d.Consumer, c.ID}], d.Policy)
			}
		}
	}
	return chosen
}

// free reports whether a consumer has namespaces that may follow no policy: none is for all of them.
func (a *Adviser) free(consumer string) bool {
	return !slices.ContainsFunc(a.Policies, func(p v1alpha1.PlacementPolicy) bool {
		to := &p.Spec.AppliesTo
		return to.Scope == v1alpha1.ScopeDefault || to.Scope == v1alpha1.ScopeConsumers && slices.Contains(to.Consumers, consumer)
	})
}

// usable reports whether new pods may go to a provider.
func usable(p *v1alpha1.Provider) bool {
	return p.EffectiveScheduling() == v1alpha1.SchedulingActive &&
		meta.IsStatusConditionPresentAndEqual(p.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue)
}

// reasons says why a consumer should be peered with a provider; nothing if it need not.
func reasons(peer *AdvisedPeer, usable, free bool) []string {
	var all []string
	if peer.Running > 0 {
		all = append(all, fmt.Sprintf("It runs %d of the consumer's pods", peer.Running))
	}
	if usable && len(peer.Policies) > 0 {
		all = append(all, "New pods may go there: a policy has chosen it")
	}
	if usable && free {
		all = append(all, "New pods may go there: namespaces that follow no policy use every provider that is ready")
	}
	return all
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"slices"
)

// ConsumerDecision is what a policy has decided for one consumer, and why.
type ConsumerDecision struct {
	Consumer     string              `json:"consumer"`
	ConsumerName string              `json:"consumerName,omitempty"`
	Chosen       []ChosenProvider    `json:"chosen,omitempty"`
	Better       []BetterProvider    `json:"better,omitempty"`
	Scaling      *ScalingStatus      `json:"scaling,omitempty"`
	Explained    []ExplainedProvider `json:"explained,omitempty"`
	NotExplained int32               `json:"notExplained,omitempty"`
}

// DecisionFor returns what was decided for a consumer; the zero ConsumerDecision if
// nothing was. It shares memory with the status.
func (s *PlacementPolicyStatus) DecisionFor(consumer string) ConsumerDecision {
	for i := range s.Decisions {
		d := &s.Decisions[i]
		for j := range d.Consumers {
			if d.Consumers[j].ID == consumer {
				return s.of(d, &d.Consumers[j])
			}
		}
	}
	return ConsumerDecision{}
}

// PerConsumer returns what was decided for each consumer, in order of their IDs. It
// shares memory with the status.
func (s *PlacementPolicyStatus) PerConsumer() []ConsumerDecision {
	var all []ConsumerDecision
	for i := range s.Decisions {
		d := &s.Decisions[i]
		for j := range d.Consumers {
			all = append(all, s.of(d, &d.Consumers[j]))
		}
	}
	slices.SortStableFunc(all, func(a, b ConsumerDecision) int { return cmp.Compare(a.Consumer, b.Consumer) })
	return all
}

// of returns a decision as it is for one of its consumers.
func (s *PlacementPolicyStatus) of(d *PlacementDecision, c *DecidedConsumer) ConsumerDecision {
	own := ConsumerDecision{Consumer: c.ID, ConsumerName: c.Name, Chosen: d.For(c.ID), Better: d.Better, Scaling: c.Scaling}
	for i := range s.Explanations {
		if e := &s.Explanations[i]; e.Consumer == c.ID {
			own.Explained, own.NotExplained = e.Providers, e.NotExplained
		}
	}
	return own
}

// For returns the chosen providers without the consumer itself.
func (d *PlacementDecision) For(consumer string) []ChosenProvider {
	own := slices.IndexFunc(d.Chosen, func(c ChosenProvider) bool { return c.ID == consumer })
	if own < 0 {
		return d.Chosen
	}
	return slices.Concat(d.Chosen[:own], d.Chosen[own+1:])
}

// Decide writes decisions into the status. Those that choose the same share one: with
// many consumers and providers, the status would be larger than what can be stored.
// Chosen providers are in order of their IDs.
func (s *PlacementPolicyStatus) Decide(decisions []ConsumerDecision) {
	s.Decisions, s.Explanations = nil, nil
	for i := range decisions {
		d := &decisions[i]
		if !s.share(d) {
			s.Decisions = append(s.Decisions, PlacementDecision{Consumers: []DecidedConsumer{d.decided()}, Chosen: d.Chosen, Better: d.Better})
		}
		if len(d.Explained) > 0 || d.NotExplained > 0 {
			s.Explanations = append(s.Explanations, Explanation{Consumer: d.Consumer, Providers: d.Explained, NotExplained: d.NotExplained})
		}
	}
}

func (d *ConsumerDecision) decided() DecidedConsumer {
	return DecidedConsumer{ID: d.Consumer, Name: d.ConsumerName, Scaling: d.Scaling}
}

// share adds a consumer to the first decision that is the same for it, if there is one.
func (s *PlacementPolicyStatus) share(d *ConsumerDecision) bool {
	for i := range s.Decisions {
		shared := &s.Decisions[i]
		chosen, same := shared.with(d)
		if same && slices.EqualFunc(shared.Better, d.Better, BetterProvider.equal) {
			shared.Consumers, shared.Chosen = append(shared.Consumers, d.decided()), chosen
			return true
		}
	}
	return false
}

// with returns whom a decision would choose if it were for one more consumer, and false
// if that is not the same for all. No consumer is chosen for itself: one that provides
// lacks itself only.
func (d *PlacementDecision) with(o *ConsumerDecision) (chosen []ChosenProvider, same bool) {
	chosen = d.Chosen
	if len(chosen) == len(o.Chosen) && (len(chosen) == 0 || &chosen[0] == &o.Chosen[0]) {
		return chosen, true
	}
	at := 0 // The place in chosen.
	for i := range o.Chosen {
		next := &o.Chosen[i]
		if at < len(chosen) && chosen[at].ID == o.Consumer && chosen[at].ID < next.ID {
			at++
		}
		switch {
		case at < len(chosen) && chosen[at].equal(next):
		case (at == len(chosen) || next.ID < chosen[at].ID) && len(d.Consumers) == 1 && d.Consumers[0].ID == next.ID:
			chosen = slices.Insert(slices.Clip(chosen), at, *next)
		default:
			return nil, false
		}
		at++
	}
	if at < len(chosen) && chosen[at].ID == o.Consumer {
		at++
	}
	return chosen, at == len(chosen)
}

func (c *ChosenProvider) equal(o *ChosenProvider) bool {
	return c.ID == o.ID && c.Name == o.Name && c.AwaySinceTime.Equal(o.AwaySinceTime) && c.Substitute == o.Substitute && c.Barred == o.Barred
}

func (b BetterProvider) equal(o BetterProvider) bool {
	return b.ID == o.ID && b.SinceTime.Equal(&o.SinceTime)
}

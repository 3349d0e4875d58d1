// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Trial is what a policy would decide if nothing had been decided before.
type Trial struct {
	// Invalid is what is wrong with the policy; nil if nothing is. Then it would decide nothing.
	Invalid error
	// Conditions are about other policies, and about KPIs.
	Conditions []metav1.Condition
	// Decisions are for the consumers to which the policy would apply, in order of their IDs; without any, there is one for a
	// consumer without an ID, of which nothing is known.
	Decisions []Tried
	// Scales tells that it depends on a KPI that only the broker asks for how many are chosen. The trial takes it for unknown.
	Scales bool
}

// Tried is what would be decided for one consumer.
type Tried struct {
	v1alpha1.ConsumerDecision

	// Err is why nothing can be decided; nil if it can.
	Err error
}

// Try returns what a policy would decide at a time with the providers, the consumers and the other policies of a cluster with a line of
// Liqo. A policy of the same name there does not count. It writes nothing.
func Try(ctx context.Context, of line.Line, c client.Reader, now time.Time, p *v1alpha1.PlacementPolicy) (Trial, error) {
	// For whom it would decide, beside the other policies that there are.
	roster, err := readRoster(ctx, c, snapshot.New(of, c, "", nil))
	if err != nil {
		return Trial{}, err
	}
	var consumers v1alpha1.ConsumerList
	if err := c.List(ctx, &consumers); err != nil {
		return Trial{}, fmt.Errorf("list consumers: %w", err)
	}
	var policies v1alpha1.PlacementPolicyList
	if err := c.List(ctx, &policies); err != nil {
		return Trial{}, fmt.Errorf("list placement policies: %w", err)
	}
	others := slices.DeleteFunc(policies.Items, func(o v1alpha1.PlacementPolicy) bool { return o.Name == p.Name })
	to := audienceOf(p.Name, consumers.Items, append(others, *p))

	// What is wrong with the policy itself, or with the KPIs that it weighs.
	s := &state{}
	s.chooser, s.scaler, s.err = rules(p)
	trial := Trial{Invalid: s.err, Scales: s.scaler != nil, Conditions: []metav1.Condition{shadowed(to.shadows)}}
	if known, said := roster.kpisKnown(now, p.Spec.Weights); said {
		trial.Conditions = append(trial.Conditions, known)
	}
	if trial.Invalid != nil {
		return trial, nil //nolint:nilerr // What is wrong with the policy is the result.
	}
	// A policy that applies to nobody yet decides for a consumer without a name, so that people see whom it would choose.
	if len(to.consumers) == 0 {
		to.consumers = make([]v1alpha1.Consumer, 1)
	}
	if s.scaler != nil {
		s.scaler.names = to.names
	}
	for i := range to.consumers {
		decision, _, err := roster.decide(now, s, &to.consumers[i], v1alpha1.ConsumerDecision{}, true)
		trial.Decisions = append(trial.Decisions, Tried{decision, err})
	}
	return trial, nil
}

// Redecide returns what the policies would decide at a time for some consumers, given the providers of objects, which a reader reads, and
// what they have decided before. How many providers a policy uses because of a KPI that only the broker asks for, stays. It writes nothing.
func Redecide(
	ctx context.Context, reader *snapshot.Reader, objects client.Reader, now time.Time, consumers map[cluster.ID]bool,
) ([]v1alpha1.PlacementDecision, error) {
	var policies v1alpha1.PlacementPolicyList
	if err := objects.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list placement policies: %w", err)
	}
	if len(policies.Items) == 0 || len(consumers) == 0 {
		return nil, nil
	}
	var all v1alpha1.ConsumerList
	if err := objects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list consumers: %w", err)
	}
	had, err := readStored(ctx, objects)
	if err != nil {
		return nil, err
	}
	known, err := readRoster(ctx, objects, reader)
	if err != nil {
		return nil, err
	}
	// As the controller does, one policy after the other, but for the consumers that matter alone.
	var decisions []v1alpha1.PlacementDecision
	for i := range policies.Items {
		p := &policies.Items[i]
		if !p.DeletionTimestamp.IsZero() {
			continue
		}
		s := &state{}
		s.chooser, s.scaler, s.err = rules(p)
		to := audienceOf(p.Name, slices.Clone(all.Items), policies.Items)
		if s.scaler != nil {
			s.scaler.names = to.names
		}
		known.decided = map[string]outcome{} // It is for one policy.
		for j := range to.consumers {
			c := &to.consumers[j]
			if !consumers[cluster.ID(c.Name)] {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			// With an error it is the decision before, whose providers are barred: this is what the controller stores, too.
			d, _, _ := known.decide(now, s, c, had.last(p, c.Name), false)
			decision := v1alpha1.PlacementDecision{Policy: p.Name, ConsumerDecision: d}
			decision.Name, decision.OwnerReferences = v1alpha1.DecisionName(p.Name, c.Name), v1alpha1.OwnedBy("PlacementPolicy", p)
			decisions = append(decisions, decision)
		}
	}
	return decisions, nil
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/test/worlds"
)

// decision returns what is chosen for a consumer.
func decision(consumer string, chosen ...string) ConsumerDecision {
	d := ConsumerDecision{Consumer: consumer, ConsumerName: "name-" + consumer}
	for _, id := range chosen {
		d.Chosen = append(d.Chosen, ChosenProvider{ID: id})
	}
	return d
}

func TestDecide(t *testing.T) {
	away, substitute, better := decision("c2", "a", "b"), decision("c2", "a", "b"), decision("c2", "a", "b")
	since := metav1.NewTime(time.Unix(1_800_000_000, 0))
	away.Chosen[1].AwaySinceTime, substitute.Chosen[0].Substitute, better.Better = &since, true, []BetterProvider{{ID: "d", SinceTime: since}}
	scaled, explained := decision("c2", "a", "b"), decision("c2", "a", "b")
	scaled.Scaling, explained.Explained = &ScalingStatus{Count: 2}, []ExplainedProvider{{ID: "a"}}
	cases := map[string]struct {
		reason    string
		decisions []ConsumerDecision
		want      []string // The consumers that share each decision.
	}{
		"Same":       {reason: "What is equal is there once.", decisions: []ConsumerDecision{decision("c1", "a", "b"), decision("c2", "a", "b")}, want: []string{"c1 c2"}},
		"Other":      {reason: "Each has its own.", decisions: []ConsumerDecision{decision("c1", "a", "b"), decision("c2", "a"), decision("c3", "a", "b")}, want: []string{"c1 c3", "c2"}},
		"Nothing":    {reason: "Nothing is a choice too.", decisions: []ConsumerDecision{decision("c1"), decision("c2"), decision("c3", "a")}, want: []string{"c1 c2", "c3"}},
		"Provides":   {reason: "Who provides lacks only itself.", decisions: []ConsumerDecision{decision("c1", "a", "b", "d"), decision("b", "a", "d")}, want: []string{"c1 b"}},
		"ProvideAll": {reason: "So do all that provide.", decisions: []ConsumerDecision{decision("a", "b", "d"), decision("b", "a", "d"), decision("d", "a", "b")}, want: []string{"a b d"}},
		"LacksOther": {reason: "It lacks another one as well.", decisions: []ConsumerDecision{decision("c1", "a", "b", "d"), decision("b", "a")}, want: []string{"c1", "b"}},
		"OfTwo":      {reason: "One of two that share it has another one, which is not for the second.", decisions: []ConsumerDecision{decision("a", "d"), decision("c1", "d"), decision("c2", "a", "d")}, want: []string{"a c1", "c2"}},
		"Away":       {reason: "Who is away is not for one what it is for the other.", decisions: []ConsumerDecision{decision("c1", "a", "b"), away}, want: []string{"c1", "c2"}},
		"Substitute": {reason: "Nor is who is a substitute.", decisions: []ConsumerDecision{decision("c1", "a", "b"), substitute}, want: []string{"c1", "c2"}},
		"Better":     {reason: "Others may be better for one.", decisions: []ConsumerDecision{decision("c1", "a", "b"), better}, want: []string{"c1", "c2"}},
		"Scaled":     {reason: "Each has its own KPI.", decisions: []ConsumerDecision{decision("c1", "a", "b"), scaled}, want: []string{"c1 c2"}},
		"Explained":  {reason: "And its own explanation.", decisions: []ConsumerDecision{decision("c1", "a", "b"), explained}, want: []string{"c1 c2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var s PlacementPolicyStatus
			s.Decide(tc.decisions)
			if diff := cmp.Diff(tc.want, shared(&s)); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			for _, want := range tc.decisions {
				if diff := cmp.Diff(want, s.DecisionFor(want.Consumer), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func shared(s *PlacementPolicyStatus) (consumers []string) {
	for _, d := range s.Decisions {
		var ids []string
		for _, c := range d.Consumers {
			ids = append(ids, c.ID)
		}
		consumers = append(consumers, strings.Join(ids, " "))
	}
	return consumers
}

// TestAnyDecisions decides anything for clusters that consume and provide, and reads it back.
func TestAnyDecisions(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		var decisions []ConsumerDecision
		for c := range 1 + r.IntN(6) {
			d := decision(fmt.Sprint("x", c))
			for p := range 7 {
				if id := fmt.Sprint("x", p); id != d.Consumer && r.IntN(5) > 0 {
					d.Chosen = append(d.Chosen, ChosenProvider{ID: id, Barred: r.IntN(40) == 0})
				}
			}
			decisions = append(decisions, d)
		}
		before := fmt.Sprint(decisions)
		var s PlacementPolicyStatus
		s.Decide(decisions)
		if diff := cmp.Diff(decisions, s.PerConsumer(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if fmt.Sprint(decisions) != before {
			t.Error("the decisions themselves have changed")
		}
	})
}

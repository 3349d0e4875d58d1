// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/choice"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// The size of a policy's decisions is bounded: so many consumers have their decision explained, with
// so many chosen providers, so many others that pass the filters and so many that do not.
const (
	explainedConsumers = 20
	explainedChosen    = 8
	explainedPassed    = 8
	explainedExcluded  = 8
	maxExcluded        = 256 // Bytes of the reason.
)

// roster is all providers at one moment, for one policy.
type roster struct {
	candidates []choice.Provider
	// unusable are the others, with the reason.
	unusable []v1alpha1.ExplainedProvider
	names    map[cluster.ID]string
	// decided are the decisions of one policy that several consumers can share, by their
	// memory.
	decided map[string]outcome
}

// newRoster sorts the providers by whether they can be chosen. The
// labels are those that Liqo shows of each cluster.
func newRoster(providers []v1alpha1.Provider, shown map[cluster.ID]map[string]string) *roster {
	s := &roster{names: make(map[cluster.ID]string, len(providers)), decided: map[string]outcome{}}
	for i := range providers {
		p := &providers[i]
		id := cluster.ID(p.Name)
		s.names[id] = p.Status.ClusterName
		ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		switch wanted := p.EffectiveScheduling(); {
		case wanted == v1alpha1.SchedulingDrained:
			s.exclude(p, "The provider is drained")
		case ready == nil:
			s.exclude(p, "The provider is not known yet")
		default:
			c := candidate(p, shown[id])
			switch {
			case wanted == v1alpha1.SchedulingCordoned:
				c.Away = "The provider is cordoned"
			case ready.Status != metav1.ConditionTrue:
				c.Away = cmp.Or(ready.Message, "The provider is not ready")
			}
			s.candidates = append(s.candidates, c)
		}
	}
	return s
}

func (s *roster) exclude(p *v1alpha1.Provider, why string) {
	s.unusable = append(s.unusable, v1alpha1.ExplainedProvider{ID: p.Name, Name: p.Status.ClusterName, Excluded: why})
}

// candidate returns a provider with its KPIs, and its labels.
func candidate(p *v1alpha1.Provider, shown map[string]string) choice.Provider {
	known := make(map[string]kpi.KPI, len(p.Status.KPIs)+len(p.Status.QueriedKPIs))
	for _, f := range slices.Concat(p.Status.QueriedKPIs, p.Status.KPIs) { // Of one name, the broker's own counts.
		if f.Name != kpi.ConsumerRoundTripTime { // Each consumer has its own.
			known[f.Name] = f.Decode()
		}
	}
	return choice.Provider{ID: cluster.ID(p.Name), Name: p.Status.ClusterName, Labels: snapshot.LabelsOf(p, shown), KPIs: known}
}

// decide decides for one consumer. With an error, the decision is the one before,
// and the explanation tells of the present.
func (s *roster) decide(
	now time.Time, policy *state, consumer *v1alpha1.Consumer, before v1alpha1.ConsumerDecision, explain bool,
) (v1alpha1.ConsumerDecision, time.Duration, error) {
	decision := before
	decision.Consumer, decision.ConsumerName = consumer.Name, consumer.Status.ClusterName
	if policy.err != nil {
		decision.Chosen, decision.Summary = barred(before.Chosen, nil), summary(before.Chosen)
		return decision, 0, policy.err
	}
	made := s.choose(now, policy, consumer, before)
	decision.Scaling = made.scaling
	decision.Explained, decision.NotExplained = nil, 0
	if explain {
		decision.Explained, decision.NotExplained = s.explain(made.ranking, consumer.Name)
	}
	if made.err != nil {
		decision.Chosen, decision.Summary = barred(before.Chosen, made.ranking), summary(before.Chosen)
		return decision, 0, made.err
	}
	decision.Chosen, decision.Summary, decision.Better = made.chosen, made.summary, made.better
	return decision, made.wait, nil
}

// barred returns the providers of the last good decision, and marks those that a policy
// that cannot decide may exclude: all but those that pass its filters, or that nobody
// looked at because they are away.
func barred(chosen []v1alpha1.ChosenProvider, ranking []choice.Ranked) []v1alpha1.ChosenProvider {
	open := map[string]bool{}
	for _, r := range ranking {
		open[string(r.ID)] = r.Excluded == "" || r.Away
	}
	marked := slices.Clone(chosen)
	for i := range marked {
		marked[i].Barred = !open[marked[i].ID]
	}
	return marked
}

// outcome is what was decided, as a PlacementDecision has it.
type outcome struct {
	chosen  []v1alpha1.ChosenProvider
	summary string
	better  []v1alpha1.BetterProvider
	scaling *v1alpha1.ScalingStatus
	wait    time.Duration
	ranking []choice.Ranked
	err     error
}

// outcome returns a decision as a PlacementDecision has it.
func (s *roster) outcome(made choice.Decision, scaling *v1alpha1.ScalingStatus, err error) outcome {
	o := outcome{scaling: scaling, wait: made.Wait, ranking: made.Ranking, err: err}
	if err != nil {
		return o
	}
	for _, id := range made.Chosen {
		c := v1alpha1.ChosenProvider{ID: string(id), Name: s.names[id], Substitute: slices.Contains(made.Substitutes, id)}
		if since, away := made.Away[id]; away {
			c.AwaySinceTime = &metav1.Time{Time: since.Truncate(time.Second)}
		}
		o.chosen = append(o.chosen, c)
	}
	o.summary = summary(o.chosen)
	for _, id := range slices.Sorted(maps.Keys(made.Better)) {
		// The API keeps whole seconds; the next one, so that nothing moves too early.
		since := metav1.Time{Time: made.Better[id].Add(time.Second - 1).Truncate(time.Second)}
		o.better = append(o.better, v1alpha1.BetterProvider{ID: string(id), SinceTime: since})
	}
	return o
}

// choose decides, or takes over what it has decided for another consumer of the same
// policy that sees the same providers and has the same memory: of many consumers most do.
func (s *roster) choose(now time.Time, policy *state, consumer *v1alpha1.Consumer, before v1alpha1.ConsumerDecision) outcome {
	_, provides := s.names[cluster.ID(consumer.Name)]
	if provides || policy.scaler != nil || len(consumer.Status.RoundTrips) > 0 {
		return s.outcome(policy.choose(now, s.seenBy(consumer), consumer, before))
	}
	key := fmt.Sprint(memory(before))
	same, ok := s.decided[key]
	if !ok {
		same = s.outcome(policy.choose(now, s.candidates, consumer, before))
		s.decided[key] = same
	}
	return same
}

// seenBy returns the candidates for a consumer, which are all but itself, each with what
// only this consumer knows of it.
func (s *roster) seenBy(consumer *v1alpha1.Consumer) []choice.Provider {
	own := make(map[cluster.ID]kpi.KPI, len(consumer.Status.RoundTrips))
	for _, trip := range consumer.Status.RoundTrips {
		if measured := trip.Decode(); measured.Value > 0 {
			own[cluster.ID(trip.Provider)] = measured
		}
	}
	seen := make([]choice.Provider, 0, len(s.candidates))
	for _, p := range s.candidates {
		if string(p.ID) == consumer.Name {
			continue
		}
		if measured, ok := own[p.ID]; ok {
			p.KPIs = maps.Clone(p.KPIs) // The other consumers have theirs.
			p.KPIs[kpi.ConsumerRoundTripTime] = measured
		}
		seen = append(seen, p)
	}
	return seen
}

// memory returns what the next decision has to know of the one before.
func memory(d v1alpha1.ConsumerDecision) choice.Memory {
	m := choice.Memory{Away: map[cluster.ID]time.Time{}, Better: make(map[cluster.ID]time.Time, len(d.Better))}
	for _, c := range d.Chosen {
		m.Chosen = append(m.Chosen, cluster.ID(c.ID))
		if c.Substitute {
			m.Substitutes = append(m.Substitutes, cluster.ID(c.ID))
		}
		if c.AwaySinceTime != nil {
			m.Away[cluster.ID(c.ID)] = c.AwaySinceTime.Time
		}
	}
	slices.Sort(m.Chosen)
	for _, b := range d.Better {
		m.Better[cluster.ID(b.ID)] = b.SinceTime.Time
	}
	return m
}

// explain returns the explanation of a decision, and how many providers it leaves out.
func (s *roster) explain(ranking []choice.Ranked, consumer string) (explained []v1alpha1.ExplainedProvider, left int32) {
	chosen, passed, excluded := 0, 0, 0
	// An object has room for some of each kind, and the chosen ones matter most.
	add := func(e v1alpha1.ExplainedProvider) {
		count, most := &passed, explainedPassed
		switch {
		case e.Chosen: // Also one that is far behind, and keeps its place for a while.
			count, most = &chosen, explainedChosen
		case e.Excluded != "":
			count, most = &excluded, explainedExcluded
		}
		if *count++; *count > most {
			left++
			return
		}
		explained = append(explained, e)
	}
	// In order of rank: who passes the filters with its score, and who does not with the reason.
	for _, r := range ranking {
		e := v1alpha1.ExplainedProvider{ID: string(r.ID), Name: r.Name, Chosen: r.Chosen, Excluded: excerpt.Of(r.Excluded, maxExcluded)}
		if r.Excluded == "" {
			e.Score = v1alpha1.Number(strconv.FormatFloat(r.Score, 'f', 1, 64))
		}
		for _, t := range r.Terms {
			term := v1alpha1.ExplainedTerm{
				KPI: t.KPI, Unknown: t.Unknown, Normalized: v1alpha1.Number(strconv.FormatFloat(t.Normalized, 'f', 2, 64)), Weight: int32(t.Weight), //nolint:gosec // From -10 to 10.
			}
			if t.Unknown == "" {
				term.Value, term.Unit = v1alpha1.NumberOf(t.Value), t.Unit
			}
			e.Terms = append(e.Terms, term)
		}
		add(e)
	}
	// Those that no policy can choose come last. A consumer does not provide to itself.
	for _, e := range s.unusable {
		if e.ID != consumer {
			add(e)
		}
	}
	return explained, left
}

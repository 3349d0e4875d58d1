// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"context"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/measure"
	"github.com/capacitorset/liqo-broker/pkg/core/choice"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/hysteresis"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
)

// How often Prometheus is asked: four times in a window, within these bounds.
const (
	minAskInterval = pause
	maxAskInterval = 15 * time.Second
)

// What a spec without defaults has.
const (
	defaultWindow = 2 * time.Minute
	defaultExpiry = time.Minute
)

// scaler keeps a KPI between two thresholds.
type scaler struct {
	spec     v1alpha1.Scaling
	band     hysteresis.Band
	expiry   time.Duration
	interval time.Duration

	asked  time.Time
	answer measure.Answer
	// named are the values of the answer by consumer, if they are for one each.
	named measure.Named
	// names are those that values may have for consumers.
	names measure.Names
}

// newScaler returns a scaler, or an error that tells what is wrong with the spec.
func newScaler(spec *v1alpha1.Scaling) (*scaler, error) {
	s := &scaler{spec: *spec, band: hysteresis.Band{Window: defaultWindow, Min: int(spec.Min)}, expiry: defaultExpiry}
	for threshold, value := range map[*float64]v1alpha1.Number{&s.band.Upper: spec.OffloadAbove, &s.band.Lower: spec.UnoffloadBelow} {
		number, err := value.Float()
		if err != nil {
			return nil, fmt.Errorf("the threshold %q is not a number", value)
		}
		*threshold = number
	}
	if s.band.Lower >= s.band.Upper {
		return nil, fmt.Errorf("the threshold unoffloadBelow %s is not less than offloadAbove %s", spec.UnoffloadBelow, spec.OffloadAbove)
	}
	if spec.Max != nil {
		s.band.Max = int(*spec.Max)
	}
	if spec.Window != nil {
		s.band.Window = spec.Window.Duration
	}
	if spec.Expiry != nil {
		s.expiry = spec.Expiry.Duration
	}
	s.interval = min(max(s.band.Window/4, minAskInterval), maxAskInterval)
	return s, nil
}

// ask asks for the KPI, unless that was done a moment ago.
func (s *scaler) ask(ctx context.Context, now time.Time, asker promquery.Asker) {
	if ago := now.Sub(s.asked); ago >= 0 && ago < s.interval {
		return
	}
	s.asked = now
	s.answer.Samples, s.answer.Err = asker.Query(ctx, s.spec.Query)
	s.named = s.answer.By(s.spec.ConsumerLabel)
}

// kpi returns the KPI for a consumer, or why there is none.
func (s *scaler) kpi(now time.Time, consumer *v1alpha1.Consumer) (kpi.KPI, error) {
	if s.spec.ConsumerLabel == "" {
		return s.answer.Only(now, s.spec.Unit, s.expiry)
	}
	return s.named.KPI(now, s.spec.Unit, s.expiry, consumer.Name, s.names)
}

// condition reports whether the KPI is known for all consumers.
func (s *scaler) condition(now time.Time, consumers []v1alpha1.Consumer) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionMeasured, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMeasured,
		Message: fmt.Sprintf("Measured for %d consumers", len(consumers)),
	}
	if err := s.answer.Err; err != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, measure.Reason(err), brief(err)+". The providers stay"
		return c
	}
	for i := range consumers {
		if _, err := s.kpi(now, &consumers[i]); err != nil {
			c.Status, c.Reason = metav1.ConditionFalse, measure.Reason(err)
			c.Message = fmt.Sprintf("For consumer %s: %s. Its providers stay", consumers[i].Name, brief(err))
			return c
		}
	}
	return c
}

// choose decides by the criteria, and by the KPI that is kept, if there is one.
func (s *state) choose(
	now time.Time, providers []choice.Provider, consumer *v1alpha1.Consumer, before v1alpha1.ConsumerDecision,
) (choice.Decision, *v1alpha1.ScalingStatus, error) {
	if s.scaler == nil {
		made, err := s.chooser.ChooseWithin(v1alpha1.MaxChosen, now, providers, memory(before))
		return made, nil, err
	}
	value, unknown := s.scaler.kpi(now, consumer)
	all, err := s.chooser.Limited(0).Choose(now, providers, choice.Memory{})
	if err != nil {
		return all, before.Scaling, err
	}
	last := memory(before)
	used, available := s.chooser.Count(all.Ranking, last.Chosen)
	steps, _ := s.scaler.band.Observe(now, value, bandMemory(before.Scaling), hysteresis.Supply{Used: used, Available: available})
	made, err := s.chooser.Limited(steps.Steps).ChooseWithin(v1alpha1.MaxChosen, now, providers, last)
	if err != nil {
		return made, before.Scaling, err
	}
	return made, scalingStatus(steps, value, unknown, before.Scaling), nil
}

// directions are how the status calls them.
var directions = map[hysteresis.Direction]v1alpha1.ScalingDirection{
	hysteresis.More: v1alpha1.ScalingUp, hysteresis.Less: v1alpha1.ScalingDown,
}

// bandMemory returns what the next observation has to know of the one before.
func bandMemory(last *v1alpha1.ScalingStatus) hysteresis.Memory {
	if last == nil {
		return hysteresis.Memory{}
	}
	m := hysteresis.Memory{Steps: int(last.Count)}
	for direction, name := range directions {
		if name == last.Direction && last.SinceTime != nil && last.SeenTime != nil {
			m.Wants, m.Since, m.Seen = direction, last.SinceTime.Time, last.SeenTime.Time
		}
	}
	return m
}

// scalingStatus returns where a KPI stands, as the status has it.
func scalingStatus(m hysteresis.Memory, value kpi.KPI, unknown error, before *v1alpha1.ScalingStatus) *v1alpha1.ScalingStatus {
	next := &v1alpha1.ScalingStatus{Count: int32(min(m.Steps, math.MaxInt32)), Direction: directions[m.Wants]} //nolint:gosec // It is bounded.
	if m.Wants != hysteresis.Stay {
		next.SinceTime, next.SeenTime = &metav1.Time{Time: m.Since}, &metav1.Time{Time: m.Seen}
	}
	switch {
	case unknown == nil:
		next.Value, next.Unit, next.MeasuredTime = v1alpha1.NumberOf(value.Value), value.Unit, &metav1.Time{Time: value.Measured}
	case before != nil:
		next.Value, next.Unit, next.MeasuredTime, next.Unknown = before.Value, before.Unit, before.MeasuredTime, brief(unknown)
	default:
		next.Unknown = brief(unknown)
	}
	return next
}

// stepped returns the reason and the message of an event if a decision uses another
// number of providers than the one before it, because of a KPI.
func stepped(before, after v1alpha1.ConsumerDecision) (reason, message string) {
	if before.Scaling == nil || after.Scaling == nil || before.Scaling.Count == after.Scaling.Count {
		return "", ""
	}
	reason = v1alpha1.ReasonScaledUp
	if after.Scaling.Count < before.Scaling.Count {
		reason = v1alpha1.ReasonScaledDown
	}
	return reason, fmt.Sprintf("%d instead of %d for consumer %s, at %s %s",
		after.Scaling.Count, before.Scaling.Count, cluster.ID(after.Consumer), after.Scaling.Value, after.Scaling.Unit)
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpis

import (
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// mostCarbon is the most that is believed. A coal-fired power plant emits about a
// thousand.
const mostCarbon = 10_000

// carbon adds what people wrote into the provider's spec, or else what its label says. Of
// several virtual nodes the worst one counts.
func carbon(p *v1alpha1.Provider, nodes []corev1.Node, now time.Time, measured map[string]kpi.KPI) {
	emitted := kpi.KPI{Unit: kpi.GramsPerKWh, Measured: now, Expires: now.Add(validity)}
	value := math.NaN()
	switch spec := p.Spec.Carbon; {
	case spec != nil:
		value = spec.Intensity.AsApproximateFloat64()
		if spec.MeasuredTime != nil {
			emitted.Measured = spec.MeasuredTime.Time
		}
		if spec.ExpirationTime != nil {
			emitted.Expires = spec.ExpirationTime.Time
		}
	default:
		for i := range nodes {
			text, ok := nodes[i].Labels[liqo.LabelCarbon]
			if !ok {
				continue
			}
			says, err := strconv.ParseFloat(text, 64)
			if err != nil || !(says >= 0) {
				return
			}
			if !(value >= says) { // Also if it is not a number yet.
				value = says
			}
		}
	}
	if !(value >= 0 && value <= mostCarbon) { // Not a number, too.
		return
	}
	emitted.Value = value
	measured[kpi.Carbon] = emitted
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// scale is how the values of one KPI are normalized: from the least to the
// most of the known values in its unit.
type scale struct {
	unit        string
	least, most float64
}

// score ranks the providers that pass the filters, in their order.
func (c *Chooser) score(now time.Time, providers []Provider) []Ranked {
	scales, total := make([]scale, len(c.weighted)), 0.0
	for i, name := range c.weighted {
		scales[i] = scaleOf(now, name, providers)
		total += math.Abs(float64(c.criteria.Weights[name]))
	}
	ranked := make([]Ranked, len(providers))
	for i, p := range providers {
		r := Ranked{ID: p.ID, Name: p.Name, Terms: make([]Term, len(c.weighted)), labels: p.Labels}
		for j, name := range c.weighted {
			term := scales[j].term(now, p.KPIs[name], c.criteria.Weights[name])
			term.KPI = name
			if term.Unknown != "" {
				r.unknown++
			}
			r.Score += FullScore * term.Normalized * math.Abs(float64(term.Weight)) / total
			r.Terms[j] = term
		}
		ranked[i] = r
	}
	return ranked
}

// scaleOf returns the scale of a KPI. Its unit is the one that the most
// providers use, as values in different units cannot be compared.
func scaleOf(now time.Time, name string, providers []Provider) scale {
	votes := map[string]int{}
	for _, p := range providers {
		if f := p.KPIs[name]; f.Known(now) {
			votes[f.Unit]++
		}
	}
	s := scale{unit: usual(votes), least: math.Inf(1), most: math.Inf(-1)}
	for _, p := range providers {
		if f := p.KPIs[name]; f.Known(now) && f.Unit == s.unit {
			s.least, s.most = min(s.least, f.Value), max(s.most, f.Value)
		}
	}
	return s
}

// term normalizes one value. An unknown one is as bad as the worst.
func (s scale) term(now time.Time, f kpi.KPI, weight int) Term {
	term := Term{Value: f.Value, Unit: f.Unit, Weight: weight}
	switch {
	case f.Measured.IsZero():
		term.Unknown = "not measured"
	case !f.Known(now):
		term.Unknown = "expired"
	case f.Unit != s.unit:
		term.Unknown = inUnit(f.Unit, s.unit)
	case s.least == s.most:
		term.Normalized = 1
	case weight > 0:
		term.Normalized = part(f.Value, s.least, s.most)
	default:
		term.Normalized = 1 - part(f.Value, s.least, s.most)
	}
	if math.IsNaN(term.Value) || math.IsInf(term.Value, 0) {
		term.Value, term.Unknown = 0, "not a number"
	}
	return term
}

// part returns where a value is between two others, as a part of their distance.
func part(value, least, most float64) float64 {
	if whole := most - least; !math.IsInf(whole, 0) {
		return (value - least) / whole
	}
	return (value/2 - least/2) / (most/2 - least/2) // Halves do not overflow, but the smallest numbers have none.
}

// filter splits the providers into those that pass the filters, in order of their
// IDs, and those that do not, with the reason.
func (c *Chooser) filter(now time.Time, providers []Provider) (passed []Provider, excluded []Ranked, err error) {
	sorted := slices.Clone(providers)
	slices.SortFunc(sorted, func(a, b Provider) int { return cmp.Compare(a.ID, b.ID) })
	passed = make([]Provider, 0, len(sorted))
	reasons, costly := c.exclude(now, sorted)
	for i, p := range sorted {
		reason := reasons[i]
		if _, ok := p.Labels[c.criteria.Group]; reason == "" && c.criteria.Group != "" && !ok {
			reason = fmt.Sprintf("no label %s", c.criteria.Group)
		}
		if reason == "" {
			passed = append(passed, p)
		} else {
			excluded = append(excluded, Ranked{ID: p.ID, Name: p.Name, Excluded: reason})
		}
	}
	if len(passed) == 0 && costly != nil {
		return nil, nil, costly
	}
	return passed, excluded, nil
}

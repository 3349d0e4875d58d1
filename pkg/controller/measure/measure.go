// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package measure turns the answer of a Prometheus into KPIs, one for each cluster
// that the answer names, and says what is wrong where there is none. What is no number,
// too old, or not one value is no KPI.
//
// It asks nobody, and does not know what the KPIs are of.
package measure

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
)

// Answer is what Prometheus has answered.
type Answer struct {
	Samples []promquery.Sample
	Err     error
}

// unknown is why there is no KPI.
type unknown struct{ reason, message string }

// Error implements error.
func (u unknown) Error() string { return u.message }

// Reason names, for a condition, an error of this package or of package promquery.
func Reason(err error) string {
	var u unknown
	switch {
	case errors.As(err, &u):
		return u.reason
	case errors.Is(err, promquery.ErrNone):
		return v1alpha1.ReasonNoPrometheus
	case errors.Is(err, promquery.ErrRefused):
		return v1alpha1.ReasonQueryRefused
	case errors.Is(err, promquery.ErrAnswer):
		return v1alpha1.ReasonUnusableAnswer
	default:
		return v1alpha1.ReasonPrometheusUnavailable
	}
}

// Only returns the one value of an answer.
func (a Answer) Only(now time.Time, unit string, expiry time.Duration) (kpi.KPI, error) {
	if a.Err != nil {
		return kpi.KPI{}, a.Err
	}
	return single(now, a.Samples, unit, expiry)
}

// Named are the values of an answer by the clusters that they name.
type Named struct {
	byName map[string][]promquery.Sample
	err    error
}

// By sorts the values by the name or ID of a cluster that a label has.
func (a Answer) By(label string) Named {
	n := Named{byName: map[string][]promquery.Sample{}, err: a.Err}
	for _, s := range a.Samples {
		n.byName[s.Labels[label]] = append(n.byName[s.Labels[label]], s)
	}
	return n
}

// Cluster is a cluster that values may name.
type Cluster struct {
	// ID is its own, and Name is what it calls itself.
	ID, Name string
	// Since is since when it is known.
	Since time.Time
}

// Names are the names that values may have for clusters, by the clusters' IDs.
type Names map[string]string

// NamesOf returns the names of clusters. A cluster chooses its name, and must not get with
// it what was measured of another one: a name that is an ID is nobody's, and of several
// clusters of one name it is that of the one that is known for longest.
func NamesOf(clusters []Cluster) Names {
	ids, owners := make(map[string]bool, len(clusters)), make(map[string]Cluster, len(clusters))
	for _, c := range clusters {
		ids[c.ID] = true
		owner, owned := owners[c.Name]
		if !owned || cmp.Or(c.Since.Compare(owner.Since), cmp.Compare(c.ID, owner.ID)) < 0 {
			owners[c.Name] = c
		}
	}
	names := make(Names, len(owners))
	for name, owner := range owners {
		if name != "" && !ids[name] {
			names[owner.ID] = name
		}
	}
	return names
}

// KPI returns the KPI of a cluster. What names its ID goes first.
func (n Named) KPI(now time.Time, unit string, expiry time.Duration, id string, names Names) (kpi.KPI, error) {
	if n.err != nil {
		return kpi.KPI{}, n.err
	}
	samples := n.byName[id]
	if name := names[id]; len(samples) == 0 && name != "" {
		samples = n.byName[name]
	}
	return single(now, samples, unit, expiry)
}

// KPI returns the KPI that one value is.
func single(now time.Time, samples []promquery.Sample, unit string, expiry time.Duration) (kpi.KPI, error) {
	switch len(samples) {
	case 0:
		return kpi.KPI{}, unknown{v1alpha1.ReasonNoData, "the answer has no value"}
	case 1:
	default:
		return kpi.KPI{}, unknown{v1alpha1.ReasonAmbiguous, fmt.Sprintf("the answer has %d values instead of one", len(samples))}
	}
	s := samples[0]
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		return kpi.KPI{}, unknown{v1alpha1.ReasonNotANumber, fmt.Sprintf("the value is %v", s.Value)}
	}
	f := kpi.KPI{Value: s.Value, Unit: unit, Measured: s.At.Truncate(time.Second), Expires: s.At.Add(expiry)}
	if !f.Known(now) {
		return kpi.KPI{}, unknown{v1alpha1.ReasonStale, fmt.Sprintf(
			"the value is of %s, and the broker's clock says %s", s.At.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))}
	}
	return f, nil
}

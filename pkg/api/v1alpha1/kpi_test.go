// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"math"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// TestNumbersComeBack holds that any finite number is written so that the API server takes it, and is read as the same again.
func TestNumbersComeBack(t *testing.T) {
	all := definitions(t)
	pattern :=
		all["Provider"].v1.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["kpis"].Items.Schema.Properties["value"]
	taken := regexp.MustCompile(pattern.Pattern)
	values := []float64{
		0, 1, -1, 0.1, 1e20, 1e21, 1e-4, 1e-5, 123456789012345678900, 0.00012345678901234567, math.MaxFloat64, -math.SmallestNonzeroFloat64,
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		if value := math.Float64frombits(random.Uint64()); !math.IsNaN(value) && !math.IsInf(value, 0) {
			values = append(values, value)
		}
	}
	for _, value := range values {
		n := v1alpha1.NumberOf(value)
		if !taken.MatchString(string(n)) || int64(len(n)) > *pattern.MaxLength {
			t.Errorf("%g is written as %s, which the API server refuses", value, n)
		}
		if again, err := n.Float(); err != nil || again != value {
			t.Errorf("%g is written as %s and read as %g (%v)", value, n, again, err)
		}
	}
}

// TestKPIsComeBack holds that a KPI is read as it was written, up to parts of a second; and that one that is no number is unknown.
func TestKPIsComeBack(t *testing.T) {
	at := time.Date(2024, 2, 29, 12, 0, 0, 700, time.UTC)
	written := v1alpha1.KPIValueOf(kpi.KPI{Value: 2.5, Unit: "ms", Measured: at, Expires: at.Add(90 * time.Second)})
	want := kpi.KPI{Value: 2.5, Unit: "ms", Measured: at.Truncate(time.Second), Expires: at.Add(90 * time.Second).Truncate(time.Second)}
	if got := written.Decode(); got != want {
		t.Errorf("read %+v, want %+v", got, want)
	}
	written.Value = "much"
	if got := written.Decode(); got.Known(at) {
		t.Errorf("no number is read as %+v", got)
	}
}

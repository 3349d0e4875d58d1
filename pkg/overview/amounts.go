// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

const (
	mebi = 1 << 20
	gibi = 1 << 30
)

// amount returns the cores and the memory of some resources, such as "2.5 CPU, 16Gi"; nothing if there are no resources.
func amount(of corev1.ResourceList) string {
	if len(of) == 0 {
		return ""
	}
	return cores(of.Cpu()) + " CPU, " + memory(of.Memory())
}

func cores(q *resource.Quantity) string { return rounded(q.AsApproximateFloat64(), 2) }

// memory is in the largest binary unit of which there is at least one.
func memory(q *resource.Quantity) string {
	switch bytes := q.AsApproximateFloat64(); {
	case bytes == 0:
		return "0"
	case math.Abs(bytes) >= gibi:
		return rounded(bytes/gibi, 1) + "Gi"
	default:
		return rounded(bytes/mebi, 1) + "Mi"
	}
}

// rounded returns a number with at most so many decimals.
func rounded(number float64, decimals int) string {
	scale := math.Pow10(decimals)
	return strconv.FormatFloat(math.Round(number*scale)/scale, 'f', -1, 64)
}

// since returns how long ago something was, as kubectl writes it; nothing for the zero time.
func since(now time.Time, then metav1.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(then.Time))
}

// known returns a KPI that counts at a time, with its unit; nothing if it is missing, no number or expired.
func known(now time.Time, kpis []v1alpha1.KPI, name string) string {
	for i := range kpis {
		if kpis[i].Name != name {
			continue
		}
		switch k := kpis[i].Decode(); {
		case !k.Known(now):
		case k.Unit == kpi.Ratio:
			return rounded(100*k.Value, 2) + "%"
		default:
			return rounded(k.Value, 3) + " " + k.Unit
		}
	}
	return ""
}

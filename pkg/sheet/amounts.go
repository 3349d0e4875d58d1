// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

const (
	mebi = 1 << 20
	gibi = 1 << 30
)

// Amount returns the cores and the memory of some resources, such as "2.5 CPU, 16Gi"; nothing if there are no resources.
func Amount(of corev1.ResourceList) string {
	if len(of) == 0 {
		return ""
	}
	return cores(of.Cpu()) + " CPU, " + memory(of.Memory())
}

func cores(q *resource.Quantity) string { return Rounded(q.AsApproximateFloat64(), 2) }

// memory is in the largest binary unit of which there is at least one.
func memory(q *resource.Quantity) string {
	switch bytes := q.AsApproximateFloat64(); {
	case bytes == 0:
		return "0"
	case math.Abs(bytes) >= gibi:
		return Rounded(bytes/gibi, 1) + "Gi"
	default:
		return Rounded(bytes/mebi, 1) + "Mi"
	}
}

// Rounded returns a number with at most so many decimals.
func Rounded(number float64, decimals int) string {
	scale := math.Pow10(decimals)
	return strconv.FormatFloat(math.Round(number*scale)/scale, 'f', -1, 64)
}

// Since returns how long ago something was, as kubectl writes it; nothing for the zero time.
func Since(now time.Time, then metav1.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(then.Time))
}

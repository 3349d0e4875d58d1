// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

const (
	mebi = 1 << 20
	gibi = 1 << 30
)

// maxDevices is how many kinds of devices a cell has room for.
const maxDevices = 3

// Amount returns the cores, the memory and the devices of some resources, such as "8 CPU, 16Gi, 4 nvidia.com/gpu"; nothing if there are no
// resources. Devices are what has a name with a domain, in the order of the names, also those of which there is none; of very many kinds
// the number is shown.
func Amount(of corev1.ResourceList) string {
	if len(of) == 0 {
		return ""
	}
	text, shown := cores(of.Cpu())+" CPU, "+memory(of.Memory()), 0
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if !resources.IsDevice(name) {
			continue
		}
		if shown++; shown <= maxDevices {
			quantity := of[name]
			text += ", " + Rounded(quantity.AsApproximateFloat64(), 2) + " " + Sentence(string(name))
		}
	}
	if shown > maxDevices {
		text += ", and " + strconv.Itoa(shown-maxDevices) + " more"
	}
	return text
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

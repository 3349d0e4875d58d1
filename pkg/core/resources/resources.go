// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resources is the arithmetic of resource lists: sums, differences, limits
// and shares of them. A resource that a list does not name is zero of it.
//
// It knows nothing of providers and consumers: who is offered what is the rule
// of package capacity. No result shares memory with an argument.
package resources

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// most is the largest quantity of one resource that one cluster can mean: an
// exbibyte of memory, or as many cores. Above it lie typing errors and attacks.
const most = int64(1) << 60

// required are the resources without which nothing can be offloaded: Liqo's
// virtual node is not ready without cpu and memory, and the scheduler places no
// pod on a node without pods. They are in every offer, as zero if need be.
var required = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// Sum adds up the lists. The result has cpu, memory and pods in any case.
func Sum(lists ...corev1.ResourceList) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, name := range required {
		sum[name] = resource.Quantity{}
	}
	for _, list := range lists {
		Add(sum, list)
	}
	return sum
}

// Add adds a list to a sum.
func Add(sum, list corev1.ResourceList) {
	for name, quantity := range list {
		total := sum[name].DeepCopy()
		total.Add(quantity)
		sum[name] = total
	}
}

// Subtract returns what is left of a list without what is taken from it. No quantity
// of the result is negative.
func Subtract(list, taken corev1.ResourceList) corev1.ResourceList {
	left := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		rest := quantity.DeepCopy()
		rest.Sub(taken[name])
		if rest.Sign() < 0 {
			rest = resource.Quantity{Format: quantity.Format}
		}
		left[name] = rest
	}
	return left
}

// Min returns the smaller quantity of each resource. One that only one list
// names is zero.
func Min(a, b corev1.ResourceList) corev1.ResourceList {
	smaller := make(corev1.ResourceList, len(a))
	for name, quantity := range a {
		if other, ok := b[name]; ok && quantity.Cmp(other) > 0 {
			quantity = other
		} else if !ok {
			quantity = resource.Quantity{Format: quantity.Format}
		}
		smaller[name] = quantity.DeepCopy()
	}
	return smaller
}

// Max returns the larger quantity of each resource.
func Max(a, b corev1.ResourceList) corev1.ResourceList {
	larger := make(corev1.ResourceList, len(a))
	for name, quantity := range a {
		larger[name] = quantity.DeepCopy()
	}
	for name, quantity := range b {
		if other, ok := larger[name]; !ok || quantity.Cmp(other) > 0 {
			larger[name] = quantity.DeepCopy()
		}
	}
	return larger
}

// AtMost returns a list with no more of a resource than its limit. A resource that
// the limit does not name is not cut.
func AtMost(list, limit corev1.ResourceList) corev1.ResourceList {
	cut := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		if most, ok := limit[name]; ok && quantity.Cmp(most) > 0 {
			quantity = most
		}
		cut[name] = quantity.DeepCopy()
	}
	return cut
}

// Scale returns a percentage of a list, rounded down: to a thousandth of a
// core, and to whole units of everything else. The percentage is not negative.
func Scale(list corev1.ResourceList, percent int32) corev1.ResourceList {
	part := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		if percent == 100 {
			part[name] = quantity.DeepCopy()
		} else {
			part[name] = partOf(name, quantity, big.NewInt(int64(percent)), big.NewInt(100))
		}
	}
	return part
}

// IsDevice reports whether a resource is what device plugins count, such as nvidia.com/gpu: its name has a domain. Half of one is nothing.
func IsDevice(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

// ScaleApart returns a percentage of a list as Scale does, and another one of its devices.
func ScaleApart(list corev1.ResourceList, percent, ofDevices int32) corev1.ResourceList {
	devices := maps.Clone(list)
	maps.DeleteFunc(devices, func(name corev1.ResourceName, _ resource.Quantity) bool { return !IsDevice(name) })
	part := Scale(list, percent)
	maps.Copy(part, Scale(devices, ofDevices))
	return part
}

// Prorate returns of each resource of a list the part part/whole, rounded down as
// Scale does, and all of it where the part is not less than the whole.
func Prorate(list, part, whole corev1.ResourceList) corev1.ResourceList {
	of := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		if p, w := part[name], whole[name]; p.Cmp(w) >= 0 {
			of[name] = quantity.DeepCopy()
		} else {
			of[name] = partOf(name, quantity, decimal(p, finest), decimal(w, finest))
		}
	}
	return of
}

// Decimal places: of a quantity at most, and of a core.
const finest, ofCore = 9, 3

// partOf returns the part part/whole of a quantity, rounded down, or the largest number
// that a quantity usually has if that is too large: what many clusters offer in all can be.
func partOf(name corev1.ResourceName, quantity resource.Quantity, part, whole *big.Int) resource.Quantity {
	places := 0
	if name == corev1.ResourceCPU {
		places = ofCore
	}
	n := decimal(quantity, places)
	n.Mul(n, part).Quo(n, whole)
	switch {
	case n.Sign() < 0:
		return resource.Quantity{Format: quantity.Format}
	case places == ofCore && n.IsInt64():
		return *resource.NewMilliQuantity(n.Int64(), quantity.Format)
	case places == ofCore:
		n.Quo(n, big.NewInt(1000))
	}
	if !n.IsInt64() {
		n.SetInt64(math.MaxInt64)
	}
	return *resource.NewQuantity(n.Int64(), quantity.Format)
}

// decimal returns a quantity with so many decimal places, rounded down, as a number
// without the point. The quantity's own methods round up, and wrap around.
func decimal(q resource.Quantity, places int) *big.Int {
	q = q.DeepCopy() // AsDec changes it.
	number := q.AsDec()
	n, shift := new(big.Int).Set(number.UnscaledBig()), places-int(number.Scale())
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift < 0 {
		return n.Quo(n, power)
	}
	return n.Mul(n, power)
}

// Thousandths returns how many thousandths of its unit a quantity has, rounded down: from 0 to a most.
func Thousandths(q resource.Quantity, most int64) int64 {
	switch {
	case q.Sign() <= 0:
		return 0
	case intractable(q):
		q = q.DeepCopy() // AsDec changes it.
		if q.AsDec().Scale() > enough {
			return 0
		}
		return most
	}
	if n := decimal(q, 3); n.IsInt64() {
		return min(n.Int64(), most)
	}
	return most
}

// Bounds of a list. Lists become part of objects that etcd takes, and offers of many clusters part of one.
const (
	// MaxResources is how many resources a cluster or a pod can mean.
	MaxResources = 64
	// maxName is the length of a resource's name: a domain, a slash and a name.
	maxName = 253 + 1 + 63
	// shown is how many mistakes an error names.
	shown = 5
)

// Validate refuses a list that nobody can mean: one with a negative or an absurdly
// large quantity, with a resource without a name or with too long a name, or with more
// than MaxResources. The error names the first resources in order.
func Validate(list corev1.ResourceList) error {
	if len(list) > MaxResources {
		return fmt.Errorf("invalid offer: it has %d resources, which is more than %d", len(list), MaxResources)
	}
	var wrong []string
	for name, quantity := range list {
		switch {
		case name == "":
			wrong = append(wrong, "a resource has no name")
		case len(name) > maxName:
			wrong = append(wrong, fmt.Sprintf("the name of %.40q... is longer than %d", name, maxName))
		case quantity.Sign() < 0:
			wrong = append(wrong, fmt.Sprintf("%s is negative (%s)", name, digits(quantity)))
		case beyond(quantity):
			wrong = append(wrong, fmt.Sprintf("%s is more than any cluster has (%s)", name, digits(quantity)))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	text := strings.Join(wrong[:min(len(wrong), shown)], ", ")
	if more := len(wrong) - shown; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Errorf("invalid offer: %s", text)
}

// digits returns a quantity as text.
func digits(q resource.Quantity) string {
	if intractable(q) {
		return "too many digits"
	}
	return q.String()
}

// beyond reports whether a quantity is larger than any cluster can mean. It takes no
// time for those that Kubernetes would compute with for minutes, such as 1e999999999.
func beyond(q resource.Quantity) bool {
	if whole, ok := q.AsInt64(); ok {
		return whole > most
	}
	return intractable(q) || q.CmpInt64(most) > 0
}

// enough are more bits, and more decimal places, than any quantity in question has.
const enough = 128

// intractable reports whether a quantity has more digits than can be computed with.
func intractable(q resource.Quantity) bool {
	if _, ok := q.AsInt64(); ok {
		return false
	}
	q = q.DeepCopy() // AsDec changes it.
	number := q.AsDec()
	return number.UnscaledBig().BitLen() > enough || number.Scale() < -enough || number.Scale() > enough
}

// Bounded returns a list of at most MaxResources whose quantities a cluster can mean:
// what is larger is as large as possible. cpu, memory and pods stay in any case, and
// of the others the first by name.
func Bounded(list corev1.ResourceList) corev1.ResourceList {
	names := slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		less := func(name corev1.ResourceName) int {
			if slices.Contains(required[:], name) {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(less(a), less(b)), cmp.Compare(a, b))
	})
	bounded := make(corev1.ResourceList, min(len(list), MaxResources))
	for _, name := range names[:min(len(names), MaxResources)] {
		quantity := list[name]
		if beyond(quantity) {
			quantity = *resource.NewQuantity(most, quantity.Format)
		}
		bounded[name] = quantity.DeepCopy()
	}
	return bounded
}

// Within returns of a list what can be of something that has so much: no more of a
// resource than it has, and nothing of a resource that it does not have. cpu, memory
// and pods stay as they are where it has none, as a node that is about to go.
func Within(list, has corev1.ResourceList) corev1.ResourceList {
	within := make(corev1.ResourceList, len(required))
	for name, quantity := range list {
		most, ok := has[name]
		switch {
		case ok && most.Sign() > 0 && quantity.Cmp(most) > 0:
			quantity = most
		case ok && most.Sign() > 0:
		case !slices.Contains(required[:], name):
			continue
		}
		within[name] = quantity.DeepCopy()
	}
	return within
}

// Equal reports whether two lists offer the same. A resource that is missing is
// equal to zero of it.
func Equal(a, b corev1.ResourceList) bool { return Covers(a, b) && Covers(b, a) }

// Same reports whether two lists name the same resources, and the same quantity of
// each, however it is written.
func Same(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(one, other resource.Quantity) bool { return one.Cmp(other) == 0 })
}

// Covers reports whether a list has at least as much of every resource as another.
func Covers(list, other corev1.ResourceList) bool {
	for name, quantity := range other {
		if has := list[name]; has.Cmp(quantity) < 0 {
			return false
		}
	}
	return true
}

// IsZero reports whether nothing can run on what is offered: no cpu, no memory or
// no pods.
func IsZero(list corev1.ResourceList) bool {
	for _, name := range required {
		if quantity := list[name]; quantity.Sign() <= 0 {
			return true
		}
	}
	return false
}

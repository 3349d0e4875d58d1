// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"maps"
	"math/big"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// mebi is how many bytes a mebibyte has.
const mebi = 1 << 20

// Readable returns a list for people: bytes in whole mebibytes, rounded down, which
// are written as Mi or Gi. Less than one mebibyte stays as it is, and so do other
// resources. nil stays nil.
func Readable(list corev1.ResourceList) corev1.ResourceList { return readable(list, 0) }

// ReadableUse does the same, and rounds up: what is used is not less than it says.
func ReadableUse(list corev1.ResourceList) corev1.ResourceList { return readable(list, mebi-1) }

// readable returns a list for people. To bytes that are not a whole mebibyte some are added first.
func readable(list corev1.ResourceList, added int64) corev1.ResourceList {
	if list == nil {
		return nil
	}
	shown := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		shown[name] = quantity.DeepCopy()
		if !inBytes(name) || intractable(quantity) {
			continue
		}
		n := decimal(quantity, 0)
		n.Add(n, big.NewInt(added)).Quo(n, big.NewInt(mebi)).Mul(n, big.NewInt(mebi))
		if quantity.CmpInt64(mebi) >= 0 && n.IsInt64() {
			shown[name] = *resource.NewQuantity(n.Int64(), resource.BinarySI)
		}
	}
	return shown
}

// inBytes reports whether a resource is counted in bytes.
func inBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// Identical reports whether two lists are written in the same way.
func Identical(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(one, other resource.Quantity) bool { return one.String() == other.String() })
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package offer computes with offered resources: what a consumer is offered is
// the sum of what the providers offer.
//
// It knows nothing of where offers come from nor of how they are told to
// consumers. Unknown resources count as zero.
package offer

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

// required are the resources without which nothing can be offloaded: Liqo's
// virtual node is not ready without cpu and memory, and the scheduler places no
// pod on a node without pods. They are in every offer, as zero if need be.
var required = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// Sum adds up the lists. The result has cpu, memory and pods in any case and
// shares no memory with the lists.
func Sum(lists ...corev1.ResourceList) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, name := range required {
		sum[name] = resource.Quantity{}
	}
	for _, list := range lists {
		for name, quantity := range list {
			total := sum[name].DeepCopy()
			total.Add(quantity)
			sum[name] = total
		}
	}
	return sum
}

// SumExcept adds up what all clusters offer, except what one of them offers: a
// cluster is never offered its own resources.
func SumExcept(offers map[cluster.ID]corev1.ResourceList, except cluster.ID) corev1.ResourceList {
	lists := make([]corev1.ResourceList, 0, len(offers))
	for id, list := range offers {
		if id != except {
			lists = append(lists, list)
		}
	}
	return Sum(lists...)
}

// Validate refuses a list that nobody can mean: one with a negative quantity,
// or with a resource without a name. The error names the resources in order.
func Validate(list corev1.ResourceList) error {
	var wrong []string
	for name, quantity := range list {
		switch {
		case name == "":
			wrong = append(wrong, "a resource has no name")
		case quantity.Sign() < 0:
			wrong = append(wrong, fmt.Sprintf("%s is negative (%s)", name, quantity.String()))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("invalid offer: %s", strings.Join(wrong, ", "))
}

// Equal tells whether two lists offer the same. A resource that is missing is
// equal to zero of it.
func Equal(a, b corev1.ResourceList) bool {
	return covers(a, b) && covers(b, a)
}

// IsZero tells whether nothing can run on what is offered: no cpu, no memory or
// no pods.
func IsZero(list corev1.ResourceList) bool {
	for _, name := range required {
		if quantity := list[name]; quantity.Sign() <= 0 {
			return true
		}
	}
	return false
}

// covers tells whether b has the same quantity as a of every resource in a.
func covers(a, b corev1.ResourceList) bool {
	for name, quantity := range a {
		if quantity.Cmp(b[name]) != 0 {
			return false
		}
	}
	return true
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/offer"
)

// observation is what the broker sees of a provider.
type observation struct {
	enabled     bool
	established bool
	offers      []offered
	leaving     leaving
}

// offered is one offer that is in force.
type offered struct {
	resources corev1.ResourceList
	node      string
	nodeReady bool
}

// leaving is what is left on a provider that is turned off.
type leaving struct {
	// pods counts the pods that are still there.
	pods int
	// held are those that do not move at the moment, each with its reason.
	held []string
}

// assess returns what the provider adds to the sum, and the Ready condition that
// explains it.
func assess(o observation) (corev1.ResourceList, metav1.Condition) {
	not := func(reason, message string) (corev1.ResourceList, metav1.Condition) {
		return nil, metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		}
	}
	switch {
	case !o.enabled:
		return not(v1alpha1.ReasonDisabled, "The provider is turned off")
	case !o.established:
		return not(v1alpha1.ReasonNotPeered, "The outgoing peering with the cluster is not established")
	case len(o.offers) == 0:
		return not(v1alpha1.ReasonNoOffer, "The cluster has made no offer that Liqo accepted")
	}
	var sum []corev1.ResourceList
	var down []string
	for _, of := range o.offers {
		if err := offer.Validate(of.resources); err != nil {
			return not(v1alpha1.ReasonInvalidOffer, err.Error())
		}
		if of.nodeReady {
			sum = append(sum, of.resources)
		} else {
			down = append(down, of.node)
		}
	}
	if len(sum) == 0 {
		slices.Sort(down)
		return not(v1alpha1.ReasonNodeNotReady, "Not ready: virtual node "+strings.Join(down, ", "))
	}
	return offer.Sum(sum...), metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonOffering, Message: "Workloads can be placed on the provider",
	}
}

// shownHeld is how many pods a Draining message names; more make it unreadable.
const shownHeld = 5

// drain returns the Draining condition.
func drain(o observation) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDraining, Status: metav1.ConditionFalse}
	held := slices.Sorted(slices.Values(o.leaving.held))
	switch {
	case o.enabled:
		c.Reason, c.Message = v1alpha1.ReasonEnabled, "The provider is turned on"
	case o.leaving.pods == 0:
		c.Reason, c.Message = v1alpha1.ReasonDrained, "No pod is left on the provider"
	case len(held) == 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonPodsLeaving
		c.Message = fmt.Sprintf("Pods left on the provider: %d", o.leaving.pods)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonPodsHeld
		c.Message = fmt.Sprintf("Pods left on the provider: %d; %s",
			o.leaving.pods, strings.Join(held[:min(len(held), shownHeld)], "; "))
		if more := len(held) - shownHeld; more > 0 {
			c.Message += fmt.Sprintf("; and %d more", more)
		}
	}
	return c
}

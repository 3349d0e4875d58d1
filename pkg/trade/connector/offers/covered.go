// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
)

// mostNamed is how many contracts the condition Covered names.
const mostNamed = 8

// describeCover says whether the cluster has what it has sold of the offer, at this moment and until the ends of its contracts. Nothing is
// said of an offer of which nothing is sold.
func (l *look) describeCover(gap capacity.Gap) {
	if l.reconciler.cfg.Covered == nil || l.offer.Status.Sold == 0 {
		meta.RemoveStatusCondition(&l.offer.Status.Conditions, connectorv1alpha1.ConditionCovered)
		return
	}
	is := metav1.Condition{
		Type: connectorv1alpha1.ConditionCovered, Status: metav1.ConditionTrue, Reason: connectorv1alpha1.ReasonCovered,
		Message: "The cluster has what it has sold.",
	}
	if gap.Exists() && gap.Concerns(l.offer.Name) {
		is.Status = metav1.ConditionFalse
		is.Reason, is.Message = connectorv1alpha1.ReasonOvercommitted, fmt.Sprintf(
			"What this cluster needs itself, and what it has sold, are together more than it has, by %s.", amounts(gap.Short))
		if !gap.From.IsZero() {
			is.Reason, is.Message = connectorv1alpha1.ReasonUncovered, fmt.Sprintf(
				"Purchase %s ends at %s, and is not there any more for what is sold for longer: %s. It concerns %s.", gap.Purchase,
				gap.From.UTC().Format(time.RFC3339), amounts(gap.Short), named(gap.Sold))
		}
	}
	conditions.Set(&l.offer.Status.Conditions, l.offer.Generation, is)
}

// amounts returns resources as people read them.
func amounts(of corev1.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		quantity := of[name]
		all = append(all, string(name)+"="+quantity.String())
	}
	return strings.Join(all, ", ")
}

// named returns the names of the Sales, the first of them.
func named(sold []capacity.Sold) string {
	var names []string
	for _, s := range sold {
		names = append(names, s.Sale)
	}
	slices.Sort(names)
	more := ""
	if len(names) > mostNamed {
		more = fmt.Sprintf(" and %d others", len(names)-mostNamed)
	}
	return strings.Join(names[:min(len(names), mostNamed)], ", ") + more
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
)

// progress are the reasons of conditions that are not true and that nobody has to be warned of: they are how far something is.
var progress = map[string]bool{
	connectorv1alpha1.ReasonNegotiating: true, connectorv1alpha1.ReasonAwaitsApproval: true, connectorv1alpha1.ReasonSettingUp: true,
	connectorv1alpha1.ReasonEnding: true, connectorv1alpha1.ReasonEnded: true, connectorv1alpha1.ReasonWithdrawing: true,
	connectorv1alpha1.ReasonNotPublished: true, connectorv1alpha1.ReasonClosed: true, connectorv1alpha1.ReasonAwaitsAdmission: true,
	connectorv1alpha1.ReasonRenewalAsked: true, connectorv1alpha1.ReasonBuyingElsewhere: true,
}

// Kind returns the type of the event of a change of a condition of the connector: normal where something is well or makes progress, else a
// warning. What is not known yet has none.
func Kind(change conditions.Change) string {
	switch is := change.Is; {
	case is.Status == metav1.ConditionUnknown:
		return ""
	case is.Status == metav1.ConditionFalse && !progress[is.Reason]:
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// unsigned are the reasons of a sale of which nobody has to know before it is signed: anybody can have many of them.
var unsigned = map[string]bool{
	"": true, connectorv1alpha1.ReasonNegotiating: true, connectorv1alpha1.ReasonEnded: true, connectorv1alpha1.ReasonRejected: true,
	connectorv1alpha1.ReasonExpired: true,
}

// KindOfSale is Kind for a Sale. What was neither signed nor waited for somebody's approval has no event.
func KindOfSale(change conditions.Change) string {
	was := ""
	if change.Was != nil {
		was = change.Was.Reason
	}
	if unsigned[was] && unsigned[change.Is.Reason] {
		return ""
	}
	return Kind(change)
}

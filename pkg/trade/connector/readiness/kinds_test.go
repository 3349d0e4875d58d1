// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/readiness"
)

func change(was string, status metav1.ConditionStatus, is string) conditions.Change {
	c := conditions.Change{Is: metav1.Condition{Status: status, Reason: is}}
	if was != "" {
		c.Was = &metav1.Condition{Reason: was}
	}
	return c
}

func TestKind(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change conditions.Change
		want   string
	}{
		{"What is well is no warning.", change("", metav1.ConditionTrue, connectorv1alpha1.ReasonPublished), "Normal"},
		{"What is not known yet has no event.", change("", metav1.ConditionUnknown, connectorv1alpha1.ReasonUnreachable), ""},
		{"Progress is none.", change("", metav1.ConditionFalse, connectorv1alpha1.ReasonSettingUp), "Normal"},
		{"A seller that does not answer is one.", change("", metav1.ConditionFalse, connectorv1alpha1.ReasonSellerUnreachable), "Warning"},
		{"A refusal is one.", change("", metav1.ConditionFalse, connectorv1alpha1.ReasonOfferRefused), "Warning"},
		{"So is an end that nobody has wished.", change("", metav1.ConditionFalse, connectorv1alpha1.ReasonEndedEarly), "Warning"},
	} {
		if got := readiness.Kind(tc.change); got != tc.want {
			t.Errorf("%s\nKind(%s) = %s, want %s", tc.reason, tc.change.Is.Reason, got, tc.want)
		}
	}
}

// TestKindOfSale holds that strangers, who can reserve and refuse to sign as often as they like, cause no events.
func TestKindOfSale(t *testing.T) {
	for _, tc := range []struct{ was, is, want string }{
		{"", connectorv1alpha1.ReasonNegotiating, ""},
		{"", connectorv1alpha1.ReasonRejected, ""},
		{connectorv1alpha1.ReasonNegotiating, connectorv1alpha1.ReasonExpired, ""},
		{connectorv1alpha1.ReasonNegotiating, connectorv1alpha1.ReasonEnded, ""},
		{"", connectorv1alpha1.ReasonAwaitsApproval, "Normal"},
		{connectorv1alpha1.ReasonAwaitsApproval, connectorv1alpha1.ReasonExpired, "Warning"},
		{connectorv1alpha1.ReasonNegotiating, connectorv1alpha1.ReasonSettingUp, "Normal"},
		{connectorv1alpha1.ReasonWithdrawing, connectorv1alpha1.ReasonEnded, "Normal"},
		{connectorv1alpha1.ReasonSettingUp, connectorv1alpha1.ReasonClusterTaken, "Warning"},
	} {
		if got := readiness.KindOfSale(change(tc.was, metav1.ConditionFalse, tc.is)); got != tc.want {
			t.Errorf("a sale that was %q and is %q has the event %q, want %q", tc.was, tc.is, got, tc.want)
		}
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package podstate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
)

func TestStates(t *testing.T) {
	condition := func(status corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: status}}
	}
	for name, tc := range map[string]struct {
		status       corev1.PodStatus
		ended, ready bool
	}{
		"New":       {},
		"Scheduled": {status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: condition(corev1.ConditionFalse)[:1]}},
		"Starting":  {status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionFalse)}},
		"Lost":      {status: corev1.PodStatus{Phase: corev1.PodUnknown, Conditions: condition(corev1.ConditionUnknown)}},
		"Serving":   {status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionTrue)}, ready: true},
		"Done":      {status: corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: condition(corev1.ConditionFalse)}, ended: true},
		"Failed":    {status: corev1.PodStatus{Phase: corev1.PodFailed}, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: tc.status}
			if ended, ready := podstate.Ended(pod), podstate.Ready(pod); ended != tc.ended || ready != tc.ready {
				t.Errorf("ended %t, ready %t: want %t, %t", ended, ready, tc.ended, tc.ready)
			}
		})
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLocalConditions(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: at}
	}
	ready, unready := condition(corev1.PodReady, corev1.ConditionTrue, "", ""), condition(corev1.PodReady, corev1.ConditionFalse, "", "")
	evicted := condition(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "")
	evictedThere := condition(corev1.DisruptionTarget, corev1.ConditionTrue, "PreemptionByScheduler", "")
	open, shut := condition("example.com/attached", corev1.ConditionTrue, "", ""),
		condition("example.com/attached", corev1.ConditionFalse, "", "")
	const gate = "ReadinessGatesNotReady"
	missing := condition(corev1.PodReady, corev1.ConditionFalse, gate,
		`corresponding condition of pod readiness gate "example.com/attached" does not exist.`)
	closed := condition(corev1.PodReady, corev1.ConditionFalse, gate,
		`the status of pod readiness gate "example.com/attached" is not "True", but False`)
	type conditions = []corev1.PodCondition
	for name, tc := range map[string]struct {
		reason              string
		phase               corev1.PodPhase
		gated               bool
		local, remote, want conditions
	}{
		"Evicted": {
			"who evicts a pod here says so here", corev1.PodRunning, false, conditions{unready, evicted}, conditions{ready},
			conditions{ready, evicted},
		},
		"EvictedAway": {
			"a remote pod that is evicted has a successor", corev1.PodRunning, false, conditions{ready}, conditions{ready, evictedThere},
			conditions{ready},
		},
		"EndedAway": {
			"one that ended so has none", corev1.PodFailed, false, conditions{ready, evicted}, conditions{evictedThere}, conditions{evictedThere},
		},
		"Kubelet": {"what the remote kubelet does not say any more is not kept", corev1.PodRunning, false, conditions{ready, open}, nil, nil},
		"Open": {
			"a gate that is open lets the pod be ready", corev1.PodRunning, true, conditions{open}, conditions{ready}, conditions{ready, open},
		},
		"Shut": {
			"a gate that is shut does not", corev1.PodRunning, true, conditions{unready, shut}, conditions{ready}, conditions{closed, shut},
		},
		"Missing": {
			"nor does one of which nobody has said anything", corev1.PodRunning, true, conditions{unready}, conditions{ready}, conditions{missing},
		},
		"OpenAway": {
			"or only the foreign cluster has", corev1.PodRunning, true, conditions{unready}, conditions{ready, open}, conditions{missing},
		},
		"NotReady": {
			"a pod that is not ready there is not ready", corev1.PodRunning, true, conditions{open}, conditions{unready}, conditions{unready, open},
		},
	} {
		t.Run(name, func(t *testing.T) {
			local := &corev1.Pod{Status: corev1.PodStatus{Conditions: tc.local}}
			if tc.gated {
				local.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/attached"}}
			}
			remote := &corev1.Pod{Status: corev1.PodStatus{Phase: tc.phase, Conditions: tc.remote}}
			got := forge.LocalPod(local, remote, nil, 0).Status.Conditions
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if again := forge.LocalPod(&corev1.Pod{Spec: local.Spec, Status: corev1.PodStatus{Conditions: got}}, remote, nil, 0).
				Status.Conditions; !cmp.Equal(got, again) {
				t.Errorf("the status is not at rest (-first, +second):\n%s", cmp.Diff(got, again))
			}
		})
	}
}

// TestGatesStayHere has a pod that waits for a condition: nobody writes it at the provider.
func TestGatesStayHere(t *testing.T) {
	local := &corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/attached"}}}
	if remote := forge.RemotePodSpec(true, local, &corev1.PodSpec{}); len(remote.ReadinessGates) > 0 {
		t.Errorf("the remote pod waits for %v", remote.ReadinessGates)
	}
}

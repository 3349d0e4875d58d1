// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"testing"
	"time"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/trace"
)

func TestUntoldStatus(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, after time.Duration) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(at.Add(after))}
	}
	pending := func(conditions ...corev1.PodCondition) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, Conditions: conditions}
	}
	bound, boundThere := condition(corev1.PodScheduled, corev1.ConditionTrue, 0),
		condition(corev1.PodScheduled, corev1.ConditionTrue, time.Second)
	full := condition(corev1.PodScheduled, corev1.ConditionFalse, time.Second)
	full.Reason = corev1.PodReasonUnschedulable
	gated := condition(corev1.PodScheduled, corev1.ConditionTrue, time.Second)
	gated.Message = "in words"
	creating := pending(boundThere)
	creating.ContainerStatuses = []corev1.ContainerStatus{
		{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
	}
	started := pending(boundThere)
	started.StartTime = &metav1.Time{Time: at}
	evicted := pending()
	evicted.Phase, evicted.Reason = corev1.PodFailed, "UnexpectedAdmissionError"
	nominated := pending()
	nominated.NominatedNodeName = "node-1"
	explained := pending()
	explained.Message = "why"
	elsewhere := pending(bound)
	elsewhere.HostIP = "10.0.0.8"
	gone := pending()
	gone.Phase = corev1.PodSucceeded
	unreachable := map[string]string{consts.RemoteUnavailableKey: consts.RemoteUnavailableValue}
	cases := map[string]struct {
		reason        string
		local, remote corev1.PodStatus
		labels        map[string]string
		written       bool
	}{
		"Made":          {"A pod that was made there waits, as it does here.", pending(bound), pending(), nil, false},
		"Bound":         {"It waits when it is bound, too.", pending(bound), pending(boundThere), nil, false},
		"Unbound":       {"Without a scheduler nothing is known here.", pending(), pending(boundThere), nil, true},
		"Nothing":       {"Neither side knows anything.", pending(), pending(), nil, false},
		"Unschedulable": {"Why it waits is told at once.", pending(bound), pending(full), nil, true},
		"Schedulable":   {"And that it does not wait for this any more.", pending(full), pending(boundThere), nil, true},
		"Withdrawn":     {"What was told before does not stay.", pending(full), pending(), nil, true},
		"Explained":     {"Words are told.", pending(bound), pending(gated), nil, true},
		"Message":       {"These too.", pending(bound), explained, nil, true},
		"Nominated":     {"Others go to make room for it.", pending(bound), nominated, nil, true},
		"Creating":      {"A kubelet has taken it up.", pending(bound), creating, nil, true},
		"Started":       {"Also without containers.", pending(bound), started, nil, true},
		"Refused":       {"A kubelet did not take it.", pending(bound), evicted, nil, true},
		"Ended":         {"An end is told.", pending(bound), gone, nil, true},
		"Again":         {"A pod that is made again has not started.", creating, pending(), nil, true},
		"Moved":         {"The virtual node has another address now.", elsewhere, pending(boundThere), nil, true},
		"Initialized": {
			"A condition more says more.", pending(bound), pending(boundThere, condition(corev1.PodInitialized, corev1.ConditionTrue, 0)), nil, true,
		},
		"Unreachable": {"The pod of a lost cluster is called not ready.", pending(bound), pending(boundThere), unreachable, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reflector, client := newPodReflectorAndClient(t, nil)
			local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "home", Labels: tc.labels, Generation: 1}, Status: tc.local}
			local, err := client.CoreV1().Pods("home").Create(t.Context(), local, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web", UID: "remote"}, Status: tc.remote}
			ctx := trace.ContextWithTrace(t.Context(), trace.New("test"))
			if err := reflector.HandleStatus(ctx, local, remote, &workload.PodInfo{}); err != nil {
				t.Fatal(err)
			}
			now, err := client.CoreV1().Pods("home").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			// Whatever is written has the address of the virtual node.
			if written := now.Status.HostIP == virtualNodeIP; written != tc.written {
				t.Errorf("%s: written: %t, want %t", tc.reason, written, tc.written)
			}
		})
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package podstate_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
)

func TestRelocating(t *testing.T) {
	deleted := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const grace = int64(30)
	pod := func(phase corev1.PodPhase, terminating bool, finished time.Time) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{
			Phase: phase,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Ready: true}},
		}}
		if terminating {
			// Kubernetes writes the end of the grace period.
			end, seconds := metav1.NewTime(deleted.Add(time.Duration(grace)*time.Second)), grace
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &end, &seconds
		}
		if !finished.IsZero() {
			p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(finished)}
		}
		return p
	}
	always := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
		return p
	}
	cases := map[string]struct {
		reason    string
		pod       *corev1.Pod
		wantPhase corev1.PodPhase
		wantReady corev1.ConditionStatus
	}{
		"Running": {
			"a pod that stays is shown as it is", pod(corev1.PodRunning, false, time.Time{}), corev1.PodRunning, corev1.ConditionTrue,
		},
		"Terminating": {"no traffic to a pod that is going", pod(corev1.PodRunning, true, time.Time{}), corev1.PodRunning, corev1.ConditionFalse},
		"KilledByDeletion": {
			"its end is not the local pod's end", pod(corev1.PodFailed, true, deleted.Add(time.Second)), corev1.PodRunning, corev1.ConditionFalse,
		},
		"ExitedAtDeletion": {
			"a clean exit on SIGTERM is not the end of a Job", pod(corev1.PodSucceeded, true, deleted.Add(time.Second)), corev1.PodRunning,
			corev1.ConditionFalse,
		},
		"SameSecond": {
			"times are whole seconds, and a process may end at once", pod(corev1.PodFailed, true, deleted), corev1.PodRunning, corev1.ConditionFalse,
		},
		"AlwaysRestarted": {
			"clocks of two clusters differ, but a Deployment's pod never ends by itself",
			always(pod(corev1.PodFailed, true, deleted.Add(-time.Minute))), corev1.PodRunning, corev1.ConditionFalse,
		},
		"DoneBefore": {
			"a Job that was done before stays done", pod(corev1.PodSucceeded, true, deleted.Add(-time.Second)), corev1.PodSucceeded,
			corev1.ConditionTrue,
		},
		"Failed": {
			"a failure without deletion is a failure", pod(corev1.PodFailed, false, deleted), corev1.PodFailed, corev1.ConditionTrue,
		},
		"NotStarted": {
			"a pod that never ran stays pending", pod(corev1.PodPending, true, time.Time{}), corev1.PodPending, corev1.ConditionFalse,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.pod.DeepCopy()
			got := podstate.Relocating(tc.pod, nil)
			if got.Status.Phase != tc.wantPhase || got.Status.Conditions[0].Status != tc.wantReady {
				t.Errorf("%s: phase %s, ready %s; want %s, %s", tc.reason, got.Status.Phase, got.Status.Conditions[0].Status, tc.wantPhase,
					tc.wantReady)
			}
			if got.Status.Conditions[1].Status != corev1.ConditionTrue {
				t.Errorf("%s: PodScheduled became %s", tc.reason, got.Status.Conditions[1].Status)
			}
			if tc.pod.Status.Phase != before.Status.Phase || tc.pod.Status.Conditions[0] != before.Status.Conditions[0] {
				t.Errorf("%s: the pod that was given was changed", tc.reason)
			}
		})
	}
}

// TestRelocatingInPlace has a pod with two containers whose status is written over another one, in which one of them may have ended.
func TestRelocatingInPlace(t *testing.T) {
	deleted := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	container := func(name string, runs bool) corev1.ContainerStatus {
		c := corev1.ContainerStatus{Name: name, Ready: runs}
		if runs {
			c.State.Running = &corev1.ContainerStateRunning{}
		} else {
			c.State.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(deleted.Add(-time.Hour))} // By another clock.
		}
		return c
	}
	status := func(phase corev1.PodPhase, first, second bool) *corev1.PodStatus {
		all := []corev1.ContainerStatus{container("first", first), container("second", second)}
		return &corev1.PodStatus{Phase: phase, ContainerStatuses: all}
	}
	for name, tc := range map[string]struct {
		reason string
		before *corev1.PodStatus
		phase  corev1.PodPhase
		waits  []string // The containers that do, of those that have ended.
	}{
		"Running": {"It ends because it is deleted.", status(corev1.PodRunning, true, true), corev1.PodRunning, []string{"first", "second"}},
		"HalfWay": {
			"A container that had ended before cannot run again.", status(corev1.PodRunning, false, true), corev1.PodRunning, []string{"second"},
		},
		"AllEnded": {"Nobody has said yet that the pod has.", status(corev1.PodRunning, false, false), corev1.PodRunning, nil},
		"Unknown":  {"No container was seen.", &corev1.PodStatus{Phase: corev1.PodPending}, corev1.PodRunning, []string{"first", "second"}},
		"Done":     {"It had ended before it was deleted.", status(corev1.PodSucceeded, false, false), corev1.PodSucceeded, nil},
	} {
		pod := &corev1.Pod{Status: *status(corev1.PodSucceeded, false, false)}
		pod.DeletionTimestamp = &deleted
		got := podstate.Relocating(pod, tc.before)
		var waits []string
		for _, c := range got.Status.ContainerStatuses {
			switch waiting := c.State.Waiting; {
			case waiting != nil && c.State.Terminated == nil && waiting.Reason == podstate.ReasonRelocating:
				waits = append(waits, c.Name)
			case waiting != nil || c.State.Terminated == nil:
				t.Errorf("%s: container %s is %+v", name, c.Name, c.State)
			}
		}
		if got.Status.Phase != tc.phase || !slices.Equal(waits, tc.waits) {
			t.Errorf("%s: %s\nphase %s, %v wait, want %s, %v", name, tc.reason, got.Status.Phase, waits, tc.phase, tc.waits)
		}
	}
}

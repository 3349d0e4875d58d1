// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstate reads the status of a pod, and says what that of a pod is to be which is being moved. It does not know where the pod
// runs, nor who says so.
package podstate

import corev1 "k8s.io/api/core/v1"

// Ended reports whether a pod has ended for good: its containers do not run again.
func Ended(pod *corev1.Pod) bool { return EndedIn(pod.Status.Phase) }

// EndedIn reports whether a pod in a phase has ended for good.
func EndedIn(phase corev1.PodPhase) bool {
	return phase == corev1.PodFailed || phase == corev1.PodSucceeded
}

// Ready reports whether a pod serves. One without the condition does not.
func Ready(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

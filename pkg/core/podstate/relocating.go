// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ReasonRelocating is why a container waits whose pod is being recreated.
const ReasonRelocating = "Relocating"

// Relocating returns a pod as whoever has offloaded it is to see it: a pod that is
// being deleted, and that had not ended by then, is one that is not ready. Other
// pods are returned as they are.
//
// When a remote pod is deleted, by a broker that moves it or by a drain of a
// node, Liqo recreates it under the same name. In the meantime its containers
// have ended, and the foreign cluster reports it as Failed or Succeeded. Were
// that reflected, a ReplicaSet would replace a pod that is about to come
// back, and a Job would count it as done.
//
// Before is the status in whose place that of the returned pod is stored. What had ended there has ended: an API server lets no container
// leave that state. If before is nil, the times in the status tell what had ended; they must be of the clock by which the pod was deleted.
func Relocating(pod *corev1.Pod, before *corev1.PodStatus) *corev1.Pod {
	if pod.DeletionTimestamp == nil || endedBefore(pod, before) {
		return pod
	}
	pod = pod.DeepCopy()
	status := &pod.Status
	if Ended(pod) {
		status.Phase = corev1.PodRunning
	}
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		if condition.Type != corev1.PodReady && condition.Type != corev1.ContainersReady {
			continue
		}
		condition.Status = corev1.ConditionFalse
		condition.Reason = ReasonRelocating
		condition.Message = fmt.Sprintf("the pod is being deleted since %s and will be recreated", deletionRequested(pod).Format(time.RFC3339))
	}
	for i := range status.ContainerStatuses {
		container := &status.ContainerStatuses[i]
		container.Ready = false
		if container.State.Terminated != nil && !isTerminated(before, container.Name) {
			container.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: ReasonRelocating}}
		}
	}
	return pod
}

// isTerminated reports whether a container of a pod runs no more, as a status says that may be nil.
func isTerminated(status *corev1.PodStatus, name string) bool {
	if status == nil {
		return false
	}
	for i := range status.ContainerStatuses {
		if c := &status.ContainerStatuses[i]; c.Name == name {
			return c.State.Terminated != nil
		}
	}
	return false
}

// deletionRequested returns when the deletion of a pod was asked for; the
// timestamp in the pod is when its grace period ends.
func deletionRequested(pod *corev1.Pod) time.Time {
	requested := pod.DeletionTimestamp.Time
	if pod.DeletionGracePeriodSeconds != nil {
		requested = requested.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	return requested
}

// endedBefore reports whether a pod that is being deleted had ended by itself: as the status of before says, or, without one, by the times
// in its own. Then one whose containers are always restarted never has.
func endedBefore(pod *corev1.Pod, before *corev1.PodStatus) bool {
	if before != nil {
		return EndedIn(before.Phase)
	}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || !Ended(pod) {
		return false
	}
	at := deletionRequested(pod)
	for i := range pod.Status.ContainerStatuses {
		terminated := pod.Status.ContainerStatuses[i].State.Terminated
		// Both times are whole seconds: within the same one, the end is taken for one
		// that the deletion brought about.
		if terminated != nil && !terminated.FinishedAt.Time.Before(at) {
			return false
		}
	}
	return true
}

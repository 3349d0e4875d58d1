// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remotepods

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
)

// reasonRelocating is why a container waits whose pod is being recreated.
const reasonRelocating = "Relocating"

// relocating returns the pod as the local cluster is to see it: a pod that is
// being deleted, and that had not ended by then, is one that is not ready. Other
// pods are returned as they are.
//
// When a remote pod is deleted, by a broker that moves it or by a drain of a
// node, Liqo recreates it under the same name. In the meantime its containers
// have ended, and the foreign cluster reports it as Failed or Succeeded. Were
// that reflected, a ReplicaSet here would replace a pod that is about to come
// back, and a Job would count it as done.
func relocating(pod *corev1.Pod) *corev1.Pod {
	if pod.DeletionTimestamp == nil || endedBefore(pod, deletionRequested(pod)) {
		return pod
	}
	pod = pod.DeepCopy()
	status := &pod.Status
	if podstate.Ended(pod) {
		status.Phase = corev1.PodRunning
	}
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		if condition.Type != corev1.PodReady && condition.Type != corev1.ContainersReady {
			continue
		}
		condition.Status = corev1.ConditionFalse
		condition.Reason = reasonRelocating
		condition.Message = fmt.Sprintf("the pod is being deleted since %s and will be recreated", deletionRequested(pod).Format(time.RFC3339))
	}
	for i := range status.ContainerStatuses {
		container := &status.ContainerStatuses[i]
		container.Ready = false
		if container.State.Terminated != nil {
			container.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reasonRelocating}}
		}
	}
	return pod
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

// endedBefore reports whether a pod had ended by itself at a time. One whose
// containers are always restarted never does.
func endedBefore(pod *corev1.Pod, at time.Time) bool {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || !podstate.Ended(pod) {
		return false
	}
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

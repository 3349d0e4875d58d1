// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remotepods

import (
	"context"
	"time"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
)

// What a kubelet says of a pod that it ends at its deadline
// (kubernetes/pkg/kubelet/active_deadline.go@v1.34.4), of such a pod that is not ready
// any more, and of a container of which it does not know how it ended
// (kubernetes/pkg/kubelet/container/runtime.go@v1.34.4).
const (
	reasonDeadline         = "DeadlineExceeded"
	messageDeadline        = "Pod was active on the node longer than the specified deadline"
	reasonPodFailed        = "PodFailed"
	reasonContainerUnknown = "ContainerStatusUnknown"
	exitCodeUnknown        = 137
)

// deadlineLeft returns how long a pod may still run; limited is false if it has no
// deadline, or has not started.
//
// A pod starts by the clock of the foreign cluster, but never before it was created.
func deadlineLeft(pod *corev1.Pod, now time.Time) (left time.Duration, limited bool) {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime.IsZero() {
		return 0, false
	}
	start := pod.Status.StartTime.Time
	if start.Before(pod.CreationTimestamp.Time) {
		start = pod.CreationTimestamp.Time
	}
	return start.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second).Sub(now), true
}

// endedThere reports whether the foreign cluster ends a pod at its deadline, because it
// was created with that one or with an earlier one.
func endedThere(pod *corev1.Pod, shadow *vkv1alpha1.ShadowPod) bool {
	return shadow != nil && shadow.Spec.Pod.ActiveDeadlineSeconds != nil &&
		*shadow.Spec.Pod.ActiveDeadlineSeconds <= *pod.Spec.ActiveDeadlineSeconds
}

// end ends a pod whose deadline has passed, which the foreign cluster does not know: Liqo
// passes on no change of a deadline. The pod has failed when the foreign cluster has it
// no more, so that no other one is started while it runs. All is seen in the two clusters,
// so that another virtual kubelet goes on where this one stops.
func (n *ruledNamespace) end(ctx context.Context, local *corev1.Pod, shadow *vkv1alpha1.ShadowPod, remote *corev1.Pod) error {
	switch {
	case shadow != nil && remote != nil && podstate.Ended(remote):
		return n.NamespacedReflector.Handle(ctx, local.Name) // It has ended by itself.
	case shadow != nil && shadow.DeletionTimestamp == nil:
		if err := n.endRemote(ctx, local, shadow); err != nil {
			// While the foreign cluster is away, all else goes on.
			if handled := n.NamespacedReflector.Handle(ctx, local.Name); handled != nil {
				return handled
			}
			return Soon(err)
		}
		return nil
	case shadow != nil || remote != nil:
		return n.update(ctx, local, ending)
	default:
		return n.update(ctx, local, failedAtDeadline)
	}
}

// endRemote removes a pod from the foreign cluster, unless it has ended there: what is
// known of it may be old.
func (n *ruledNamespace) endRemote(ctx context.Context, local *corev1.Pod, shadow *vkv1alpha1.ShadowPod) error {
	current, err := n.remotePods.Get(ctx, local.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case podstate.Ended(podstate.Relocating(current, nil)):
		return nil // It will be seen, and reflected.
	}
	if err := n.remove(ctx, shadow); err != nil {
		return err
	}
	n.events.Event(local, corev1.EventTypeNormal, reasonDeadline, messageDeadline)
	return nil
}

// ending makes the status that of a pod that is being ended, and reports whether it was
// another one.
func ending(status *corev1.PodStatus) (changed bool) {
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		ready := condition.Type == corev1.PodReady || condition.Type == corev1.ContainersReady
		if !ready || condition.Status == corev1.ConditionFalse {
			continue
		}
		condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, reasonPodFailed, ""
		condition.LastTransitionTime = metav1.Now()
		changed = true
	}
	return changed
}

// failedAtDeadline makes the status that of a pod that was ended at its deadline. Nobody
// knows how its containers ended.
func failedAtDeadline(status *corev1.PodStatus) (changed bool) {
	ending(status)
	status.Phase, status.Reason, status.Message = corev1.PodFailed, reasonDeadline, messageDeadline
	now, no := metav1.Now(), false
	for _, containers := range [][]corev1.ContainerStatus{
		status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses,
	} {
		for i := range containers {
			container := &containers[i]
			container.Ready, container.Started = false, &no
			if container.State.Terminated != nil {
				continue
			}
			terminated := &corev1.ContainerStateTerminated{
				ExitCode: exitCodeUnknown, Reason: reasonContainerUnknown, FinishedAt: now, ContainerID: container.ContainerID,
				Message: "The container ended with the pod, and its exit code is not known",
			}
			if container.State.Running != nil {
				terminated.StartedAt = container.State.Running.StartedAt
			}
			container.State = corev1.ContainerState{Terminated: terminated}
		}
	}
	return true
}

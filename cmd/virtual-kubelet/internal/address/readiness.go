// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	podstatus "github.com/liqotech/liqo/pkg/liqo-controller-manager/podstatus-controller"
	podutil "github.com/liqotech/liqo/pkg/utils/pod"
	corev1 "k8s.io/api/core/v1"
)

// AdjustReady corrects the Ready condition that is to be shown of a pod of the
// foreign cluster by what this cluster knows of the way to it. The patched reflector
// of pods calls it (patches/liqo-adjust-ready.patch).
//
// A pod that only the foreign cluster leads to is not ready while the tunnel to that
// one is lost. A pod that is reached past it stays ready when the foreign cluster
// itself lost sight of it.
func (a *Addresses) AdjustReady(remote *corev1.Pod, ready *corev1.PodCondition) {
	switch direct := a.reachedDirectly(remote.Status.PodIP); {
	case !direct && a.lost.Load():
		ready.Status = corev1.ConditionFalse
	case direct && outOfSight(remote):
		ready.Status = corev1.ConditionTrue
	}
}

// outOfSight reports whether a pod is called not ready only because the cluster that
// reports it lost its provider. Liqo's podstatus controller puts the label on the pod
// then, and Kubernetes changes no other condition than Ready.
func outOfSight(pod *corev1.Pod) bool {
	containersReady := podutil.GetPodCondition(&pod.Status, corev1.ContainersReady)
	return podstatus.HasRemoteUnavailableLabel(pod) && pod.DeletionTimestamp == nil && len(pod.Spec.ReadinessGates) == 0 &&
		containersReady != nil && containersReady.Status == corev1.ConditionTrue
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// Requests returns what a pod takes of the node that it is bound to, as the
// scheduler of Kubernetes counts it: its containers and sidecars together, or the
// most that they and one init container need while the pod starts; instead of that
// what the pod as a whole requests of cpu, memory and huge pages, where it does; and
// its overhead; and one pod. Sidecars are init containers that are always restarted
// (k8s.io/component-helpers/resource.PodRequests@v0.35). No quantity of the result
// shares memory with the pod.
func Requests(spec *corev1.PodSpec) corev1.ResourceList {
	counted := corev1.PodSpec{Containers: spec.Containers, InitContainers: spec.InitContainers, Overhead: spec.Overhead}
	if spec.Resources != nil {
		counted.Resources = &corev1.ResourceRequirements{Requests: resources.Max(spec.Resources.Requests, nil)}
	}
	total := resourcehelper.PodRequests(&corev1.Pod{Spec: counted}, resourcehelper.PodResourcesOptions{})
	total[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return total
}

// BoundedRequests returns what Requests does, within what can be meant: the API server takes
// more of it, and other things with a hundred thousand digits.
func BoundedRequests(spec *corev1.PodSpec) corev1.ResourceList {
	within := corev1.PodSpec{Overhead: resources.Bounded(spec.Overhead)}
	if spec.Resources != nil {
		within.Resources = &corev1.ResourceRequirements{Requests: resources.Bounded(spec.Resources.Requests)}
	}
	for _, containers := range []struct {
		from []corev1.Container
		to   *[]corev1.Container
	}{{spec.Containers, &within.Containers}, {spec.InitContainers, &within.InitContainers}} {
		for i := range containers.from {
			*containers.to = append(*containers.to, corev1.Container{
				RestartPolicy: containers.from[i].RestartPolicy,
				Resources:     corev1.ResourceRequirements{Requests: resources.Bounded(containers.from[i].Resources.Requests)},
			})
		}
	}
	return resources.Bounded(Requests(&within))
}

// Takes returns what a pod takes of its node, which has so much: what it requests, and no
// more than the node has. A pod that nobody but its owner bound there may request
// anything.
func Takes(pod *corev1.Pod, node corev1.ResourceList) corev1.ResourceList {
	return resources.Within(Requests(&pod.Spec), node)
}

// Counts reports whether a pod takes something of its node: it is bound to one, and
// has not ended. A pod that is being deleted counts until it is gone.
func Counts(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && !podstate.Ended(pod)
}

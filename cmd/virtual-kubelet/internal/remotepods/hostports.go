// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remotepods

import (
	"context"
	"maps"
	"sync"

	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
)

// What a kubelet says of a pod that it refuses because of its host ports
// (kubernetes/pkg/kubelet/kubelet.go@v1.34.4, rejectPod).
const (
	reasonNodePorts  = "NodePorts"
	messageNodePorts = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
	messageRejected  = "Pod was rejected: " + messageNodePorts
)

// hostPorts decides which pods of the virtual node have the host ports that they ask
// for. The scheduler gives a node no pod whose ports another one has there, but a pod that
// names its node does not pass it. What was decided about a pod stays. The zero value is
// ready for use, by any number of goroutines.
type hostPorts struct {
	mu sync.Mutex
	// decided says of each pod that has begun nothing yet whether it is admitted.
	decided map[types.UID]bool
}

// admitPod reports whether a pod may run beside all others on the virtual node; node are
// these, and may contain the pod itself.
func (h *hostPorts) admitPod(pod *corev1.Pod, node []*corev1.Pod) bool {
	ports := hostPortsOf(pod)
	if len(ports) == 0 {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if admitted, ok := h.decided[pod.UID]; ok {
		return admitted
	}
	present := make(map[types.UID]struct{}, len(node))
	admitted := true
	for _, other := range node {
		present[other.UID] = struct{}{}
		if other.UID != pod.UID && !podstate.Ended(other) && (begun(other) || h.decided[other.UID]) {
			admitted = admitted && !conflict(ports, hostPortsOf(other))
		}
	}
	maps.DeleteFunc(h.decided, func(uid types.UID, _ bool) bool {
		_, ok := present[uid]
		return !ok
	})
	if h.decided == nil {
		h.decided = map[types.UID]bool{}
	}
	h.decided[pod.UID] = admitted
	return admitted
}

// begun reports whether the foreign cluster may know of a pod. Liqo marks a pod before it
// makes its ShadowPod. Those of twin namespaces are marked from the beginning: they have
// all passed the scheduler.
func begun(pod *corev1.Pod) bool {
	return pod.Labels[consts.LocalPodLabelKey] == consts.LocalPodLabelValue || !pod.Status.StartTime.IsZero() ||
		pod.Status.Phase != corev1.PodPending && pod.Status.Phase != ""
}

// refused reports whether a virtual kubelet has refused a pod.
func refused(pod *corev1.Pod) bool {
	return podstate.Ended(pod) && pod.Status.Reason == reasonNodePorts && pod.Labels[consts.LocalPodLabelKey] == ""
}

// hostPortsOf returns the ports that a pod takes of its node for as long as it runs.
func hostPortsOf(pod *corev1.Pod) []corev1.ContainerPort {
	var ports []corev1.ContainerPort
	add := func(container *corev1.Container) {
		for _, port := range container.Ports {
			if port.HostPort > 0 {
				ports = append(ports, port)
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		// The others end before the pod is there.
		if policy := pod.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			add(&pod.Spec.InitContainers[i])
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	return ports
}

// conflict reports whether two pods cannot both have their ports: one without an address
// takes the port at all of them.
func conflict(ports, others []corev1.ContainerPort) bool {
	anywhere := func(ip string) bool { return ip == "" || ip == "0.0.0.0" }
	protocol := func(port corev1.ContainerPort) corev1.Protocol {
		if port.Protocol == "" {
			return corev1.ProtocolTCP
		}
		return port.Protocol
	}
	for _, port := range ports {
		for _, other := range others {
			if port.HostPort == other.HostPort && protocol(port) == protocol(other) &&
				(port.HostIP == other.HostIP || anywhere(port.HostIP) || anywhere(other.HostIP)) {
				return true
			}
		}
	}
	return false
}

// refuse shows a pod as one that the node has refused.
func (n *ruledNamespace) refuse(ctx context.Context, local *corev1.Pod) error {
	err := n.update(ctx, local, func(status *corev1.PodStatus) bool {
		status.Phase, status.Reason, status.Message = corev1.PodFailed, reasonNodePorts, messageRejected
		return true
	})
	if err == nil {
		n.events.Event(local, corev1.EventTypeWarning, reasonNodePorts, messageNodePorts)
	}
	return err
}

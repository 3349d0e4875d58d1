// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Ways are by which paths a consumer reaches its pods at brokers.
type Ways struct {
	// Noted tells that virtual kubelets of this project say it themselves: they mark their nodes, and note on each pod its path. Otherwise
	// nobody does, and it follows from the address of a pod.
	Noted bool
	// Through are the prefixes of providers' pods that this cluster reaches through each of its brokers, as they are seen here. A broker of
	// which they are not known has none.
	Through map[cluster.ID][]netip.Prefix
}

// IsOfBroker reports whether a node is a virtual one of a broker.
func (w *Ways) IsOfBroker(node *corev1.Node) bool {
	id := NodeCluster(node)
	if w.Noted {
		return id != "" && node.Labels[LabelVirtualKubelet] != ""
	}
	_, is := w.Through[id]
	return is
}

// PathTo returns by which path a pod on the node of a broker is reached, as users read it; empty if that is not known, or if the pod is at
// the broker itself.
func (w *Ways) PathTo(pod *corev1.Pod, node *corev1.Node) string {
	if w.Noted {
		return pod.Annotations[AnnotationPath]
	}
	address, err := netip.ParseAddr(pod.Status.PodIP)
	through := w.Through[NodeCluster(node)]
	if err != nil || !slices.ContainsFunc(through, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return ""
	}
	return addressing.PathRelay.String()
}

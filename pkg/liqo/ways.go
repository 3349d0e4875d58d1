// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

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

// Way is how a pod at a broker is reached, as far as that is known.
type Way struct {
	// Path is what users read of it; empty if it is not known, or if the pod is at the broker itself.
	Path string
	// Since is since when it is so; zero if nobody says that.
	Since time.Time
	// Provider runs the pod; empty if nobody says who does.
	Provider cluster.Identity
}

// To returns how a pod on the node of a broker is reached.
func (w *Ways) To(pod *corev1.Pod, node *corev1.Node) Way {
	way := Way{Provider: cluster.Identity{ID: cluster.ID(node.Labels[LabelProvider])}}
	if w.Noted {
		way.Path = pod.Annotations[AnnotationPath]
		way.Provider.ID = cmp.Or(cluster.ID(pod.Annotations[AnnotationProvider]), way.Provider.ID)
		way.Provider.Name = pod.Annotations[AnnotationProviderName]
		if since, err := time.Parse(time.RFC3339, pod.Annotations[AnnotationPathSince]); err == nil {
			way.Since = since
		}
		return way
	}
	address, err := netip.ParseAddr(pod.Status.PodIP)
	through := w.Through[NodeCluster(node)]
	if err == nil && slices.ContainsFunc(through, func(p netip.Prefix) bool { return p.Contains(address) }) {
		way.Path = addressing.PathRelay.String()
	}
	return way
}

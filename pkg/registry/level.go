// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/capacity"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/pool"
)

// level says which providers have room for which copies, if the policy of the
// namespace uses another number of providers from time to time.
func (n *Namespace) level() {
	if n.Policy == nil || n.Policy.Spec.Keep == nil {
		return
	}
	n.Snapshot.Level = true
	for i := range n.Snapshot.Copies {
		c := &n.Snapshot.Copies[i]
		pod := n.Pods[c.Pod]
		if pod == nil {
			continue
		}
		if _, pinned := pool.MarkOf(liqo.OriginNode(pod)); pinned {
			continue // Its consumer's scheduler chose the provider.
		}
		requests := capacity.Requests(&pod.Spec)
		for _, p := range n.Snapshot.Providers {
			if fits(requests, n.room[p.ID]) {
				c.Fits = append(c.Fits, p.ID)
			}
		}
	}
}

// fits tells whether a pod with some requests fits where the largest pod is known, which
// says nothing of the number of pods: there is none where no pod fits.
func fits(requests, largest corev1.ResourceList) bool {
	for name, amount := range requests {
		if left := largest[name]; name != corev1.ResourcePods && left.Cmp(amount) < 0 {
			return false
		}
	}
	return len(largest) > 0
}

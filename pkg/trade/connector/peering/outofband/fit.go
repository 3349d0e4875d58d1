// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"cmp"
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// running is a pod and what it requests, with itself as "pods".
type running struct {
	pod      *corev1.Pod
	requests corev1.ResourceList
}

// Fit implements [peering.Buyer].
func (d *Driver) Fit(ctx context.Context, remote cluster.ID, room corev1.ResourceList) (left int, err error) {
	nodes, err := d.nodes(ctx, remote)
	if err != nil {
		return 0, err
	}
	var all []running
	used := corev1.ResourceList{}
	for i := range nodes {
		pods, err := d.pods(ctx, nodes[i].Name)
		if err != nil {
			return 0, err
		}
		for i := range pods {
			if pod := &pods[i]; !podstate.Ended(pod) {
				requests := resources.Sum(capacity.Requests(&pod.Spec),
					corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)})
				resources.Add(used, requests)
				all = append(all, running{pod, requests})
			}
		}
	}
	leaving := leavers(all, used, room)
	if len(leaving) == 0 && !larger(nodes, room) {
		return 0, d.uncordon(ctx, nodes)
	}
	for i := range nodes {
		if err := d.cordon(ctx, &nodes[i]); err != nil {
			return 0, err
		}
	}
	var failed []error
	for _, pod := range leaving {
		failed = append(failed, d.evictPod(ctx, pod))
	}
	return len(leaving), errors.Join(failed...)
}

// Open implements [peering.Buyer].
func (d *Driver) Open(ctx context.Context, remote cluster.ID, room corev1.ResourceList) error {
	nodes, err := d.nodes(ctx, remote)
	if err != nil {
		return err
	}
	if larger(nodes, room) {
		return nil
	}
	return d.uncordon(ctx, nodes)
}

// larger reports whether nodes have more than the room of something that is in it.
func larger(nodes []corev1.Node, room corev1.ResourceList) bool {
	size := corev1.ResourceList{}
	for i := range nodes {
		resources.Add(size, nodes[i].Status.Allocatable)
	}
	for name, most := range room {
		if have := size[name]; have.Cmp(most) > 0 {
			return true
		}
	}
	return false
}

// leavers returns the pods that have to leave until what is used fits into the room: first those that leave already, then those of the
// lowest priority, and of those the youngest.
func leavers(all []running, used, room corev1.ResourceList) []*corev1.Pod {
	slices.SortStableFunc(all, func(a, b running) int {
		stays := func(r running) int32 {
			if r.pod.DeletionTimestamp.IsZero() {
				return 1
			}
			return 0
		}
		priority := func(r running) int32 {
			if r.pod.Spec.Priority == nil {
				return 0
			}
			return *r.pod.Spec.Priority
		}
		return cmp.Or(
			cmp.Compare(stays(a), stays(b)), cmp.Compare(priority(a), priority(b)), b.pod.CreationTimestamp.Compare(a.pod.CreationTimestamp.Time))
	})
	var leaving []*corev1.Pod
	for _, r := range all {
		helps := false
		for name, most := range room {
			have, part := used[name], r.requests[name]
			helps = helps || have.Cmp(most) > 0 && part.Sign() > 0
		}
		if !helps || ofEveryNode(r.pod) {
			continue
		}
		for name, part := range r.requests {
			have := used[name]
			have.Sub(part)
			used[name] = have
		}
		leaving = append(leaving, r.pod)
	}
	return leaving
}

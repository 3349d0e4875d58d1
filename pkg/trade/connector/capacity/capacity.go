// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity counts what a cluster can sell: what its nodes have and its own workloads do not need, or what the broker of the cluster
// gets from its providers. What was sold is a part of it. It does not know what is for sale, nor to whom.
package capacity

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// Source returns what a cluster can sell at this moment, with what is sold already. It can be called concurrently.
type Source func(ctx context.Context) (corev1.ResourceList, error)

// Share is how much of what a cluster has and does not use can be sold, in percent: of devices, such as GPUs, of which there are few and no
// halves, another part than of the rest.
type Share struct{ Rest, Devices int32 }

// part returns the share of a list.
func (s Share) part(list corev1.ResourceList) corev1.ResourceList {
	return resources.ScaleApart(list, s.Rest, s.Devices)
}

// OfCluster returns the capacity of a cluster that sells what its own nodes have: a share of what is left of them by those pods that
// no other cluster has brought. The reader may be a cache; nobody changes what it returns.
func OfCluster(reader client.Reader, share Share) Source {
	return func(ctx context.Context) (corev1.ResourceList, error) {
		var nodes corev1.NodeList
		var pods corev1.PodList
		for _, list := range []client.ObjectList{&nodes, &pods} {
			if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
				return nil, fmt.Errorf("list %T: %w", list, err)
			}
		}
		return Left(nodes.Items, pods.Items, share), nil
	}
}

// OfBroker returns the capacity of a cluster that sells what its broker aggregates: a share of what those providers add to its sum to
// which new pods may go, and that Consumers without a contract have not reserved and do not use. What is reserved for the others is what
// they have bought. A buyer with which the broker has peered in turn is none of the providers.
func OfBroker(reader client.Reader, share Share) Source {
	return func(ctx context.Context) (corev1.ResourceList, error) {
		var providers v1alpha1.ProviderList
		if err := reader.List(ctx, &providers, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list providers: %w", err)
		}
		sum := resources.Sum()
		for i := range providers.Items {
			if p := &providers.Items[i]; sells(p) {
				resources.Add(sum, p.Status.Offered)
			}
		}
		taken, err := unsold(ctx, reader)
		if err != nil {
			return nil, err
		}
		return share.part(resources.Subtract(sum, taken)), nil
	}
}

// sells reports whether new pods may go to a provider.
func sells(provider *v1alpha1.Provider) bool {
	return provider.Spec.Scheduling == "" || provider.Spec.Scheduling == v1alpha1.SchedulingActive
}

// unsold returns what is not for sale of what a broker has: what is reserved for Consumers without a contract, or used by them.
func unsold(ctx context.Context, reader client.Reader) (corev1.ResourceList, error) {
	var consumers v1alpha1.ConsumerList
	var sales connectorv1alpha1.SaleList
	for _, list := range []client.ObjectList{&consumers, &sales} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	buyers := map[string]bool{}
	for i := range sales.Items {
		if status := &sales.Items[i].Status; signed(contract.State(status.State)) {
			buyers[status.Cluster.ID] = true
		}
	}
	taken := corev1.ResourceList{}
	for i := range consumers.Items {
		if c := &consumers.Items[i]; !buyers[c.Name] {
			resources.Add(taken, resources.Max(resources.Bounded(corev1.ResourceList(c.Spec.Capacity.Reserved)), resources.Bounded(c.Status.Used)))
		}
	}
	return taken, nil
}

// Left returns a share of what pods leave of nodes. Nodes that stand for other clusters, that are not ready or take no pods count
// nothing, nor do the pods on them. Pods that other clusters have brought take nothing: they use what was sold.
func Left(nodes []corev1.Node, pods []corev1.Pod, share Share) corev1.ResourceList {
	has, counted := resources.Sum(), map[string]bool{}
	for i := range nodes {
		if node := &nodes[i]; usable(node) {
			resources.Add(has, resources.Bounded(node.Status.Allocatable))
			counted[node.Name] = true
		}
	}
	taken := corev1.ResourceList{}
	for i := range pods {
		if pod := &pods[i]; counted[pod.Spec.NodeName] && own(pod) {
			resources.Add(taken, resources.Bounded(capacity.Requests(&pod.Spec)))
		}
	}
	return share.part(resources.Subtract(has, taken))
}

// usable reports whether a node takes pods of this cluster.
func usable(node *corev1.Node) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return ready && !node.Spec.Unschedulable && node.DeletionTimestamp.IsZero() && node.Labels[liqo.LabelNodeType] != liqo.NodeTypeVirtual
}

// own reports whether a pod runs, and no other cluster has brought it.
func own(pod *corev1.Pod) bool {
	return !podstate.Ended(pod) && pod.Labels[liqo.LabelManagedBy] != liqo.ManagedByShadowPod
}

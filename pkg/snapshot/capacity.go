// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Capacity reads who has, uses and reserved what. A provider counts if its status says that it
// offers something. One that was drained a moment ago does not, and of one that was cordoned
// only what is used does, whatever its status says.
func (r *Reader) Capacity(ctx context.Context) (*capacity.Snapshot, error) {
	var providers v1alpha1.ProviderList
	if err := r.reader.List(ctx, &providers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list providers: %w", err)
	}
	accounts := make(map[cluster.ID]capacity.Account, len(providers.Items))
	for i := range providers.Items {
		p := &providers.Items[i]
		accounts[cluster.ID(p.Name)] = capacity.Account{
			Capacity: p.Status.Offered, Offers: offersOf(p), Used: map[cluster.ID]corev1.ResourceList{},
		}
	}
	var consumers v1alpha1.ConsumerList
	if err := r.reader.List(ctx, &consumers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list consumers: %w", err)
	}
	terms := make(map[cluster.ID]capacity.Terms, len(consumers.Items))
	for i := range consumers.Items {
		c := &consumers.Items[i]
		terms[cluster.ID(c.Name)] = TermsOf(c)
		if !r.served(c) {
			terms[cluster.ID(c.Name)] = capacity.Terms{} // It keeps what it uses.
		}
	}
	offers, err := r.liqo.Offers(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := r.nodes(ctx, consumers.Items, providers.Items, accounts, offers)
	if err != nil {
		return nil, err
	}
	if err := r.count(ctx, accounts, nodes, ownersOf(offers)); err != nil {
		return nil, err
	}
	return capacity.NewSnapshot(accounts, terms, nodes, toldOf(offers)), nil
}

// offersOf returns what of a provider counts.
func offersOf(p *v1alpha1.Provider) capacity.Offers {
	switch wanted := p.EffectiveScheduling(); {
	case len(p.Status.Offered) == 0 || wanted == v1alpha1.SchedulingDrained:
		return capacity.OffersNothing
	case wanted == v1alpha1.SchedulingCordoned:
		return capacity.OffersUsed
	default:
		return capacity.OffersAll
	}
}

// TermsOf returns the terms of a consumer. What is reserved above the limit
// counts for nothing, and so does a negative quantity.
func TermsOf(c *v1alpha1.Consumer) capacity.Terms {
	if isConfused(c) {
		return capacity.Terms{} // What its pods use.
	}
	limit := resources.Subtract(corev1.ResourceList(c.Spec.Capacity.Limit), nil)
	return capacity.Terms{
		Reserved: resources.AtMost(resources.Subtract(corev1.ResourceList(c.Spec.Capacity.Reserved), nil), limit),
		Limit:    limit,
		Share:    c.Spec.Capacity.Share(),
	}
}

// isConfused reports whether a consumer cannot be told apart from another cluster.
func isConfused(c *v1alpha1.Consumer) bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonClusterNameTaken
}

// count reads who uses what of each provider, and on which node of its own.
func (r *Reader) count(
	ctx context.Context, accounts map[cluster.ID]capacity.Account, nodesOf map[cluster.ID][]capacity.Node, owners Owners,
) error {
	// Whose each node is, and what it has.
	var nodes corev1.NodeList
	if err := r.reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	providerOf := make(map[string]cluster.ID, len(nodes.Items))
	has := make(map[string]corev1.ResourceList, len(nodes.Items))
	for i := range nodes.Items {
		providerOf[nodes.Items[i].Name] = owners.Of(&nodes.Items[i])
		has[nodes.Items[i].Name] = nodes.Items[i].Status.Allocatable
	}
	// For whom the pods of a namespace run; nobody for those of the broker's own.
	var namespaces corev1.NamespaceList
	if err := r.reader.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	consumerOf := make(map[string]cluster.ID, len(namespaces.Items))
	for i := range namespaces.Items {
		if id, twin := liqo.TwinOf(&namespaces.Items[i]); twin {
			consumerOf[namespaces.Items[i].Name] = id
		}
	}

	// Each pod counts for the provider where it is, and for the virtual node by which its consumer has placed it.
	var pods corev1.PodList
	if err := r.reader.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		account, known := accounts[providerOf[pod.Spec.NodeName]]
		if !known || !capacity.Counts(pod) {
			continue
		}
		consumer := consumerOf[pod.Namespace]
		if account.Used[consumer] == nil {
			account.Used[consumer] = corev1.ResourceList{}
		}
		requests := capacity.Takes(pod, has[pod.Spec.NodeName])
		resources.Add(account.Used[consumer], requests)
		if own := nodesOf[consumer]; len(own) > 0 {
			use(own, liqo.OriginNode(pod), requests)
		}
	}
	return nil
}

// UseChanged reports whether an update of a pod changes what is used.
func UseChanged(before, after *corev1.Pod) bool {
	return before.Spec.NodeName != after.Spec.NodeName || liqo.OriginNode(before) != liqo.OriginNode(after) ||
		capacity.Counts(before) != capacity.Counts(after) ||
		capacity.Counts(after) && !equality.Semantic.DeepEqual(capacity.Requests(&before.Spec), capacity.Requests(&after.Spec))
}

// AccountChanged reports whether an update of an object changes the snapshot. Most
// updates do not: heartbeats of nodes, conditions of pods, the statuses that the
// broker itself writes.
func (r *Reader) AccountChanged(before, after any) bool {
	switch after := after.(type) {
	case *corev1.Pod:
		return UseChanged(before.(*corev1.Pod), after)
	case *corev1.Node:
		return roomChanged(before.(*corev1.Node), after)
	case *corev1.Namespace:
		return twinChanged(before.(*corev1.Namespace), after) || r.line.AccountChanged(before, after)
	case *v1alpha1.Provider:
		return haveChanged(before.(*v1alpha1.Provider), after)
	case *v1alpha1.Consumer:
		return termsChanged(before.(*v1alpha1.Consumer), after)
	case *v1alpha1.PlacementPolicy:
		return before.(*v1alpha1.PlacementPolicy).Generation != after.Generation // It may apply to others.
	case *v1alpha1.PlacementDecision:
		return ChoiceChanged(before.(*v1alpha1.PlacementDecision), after)
	default:
		return r.line.AccountChanged(before, after)
	}
}

// twinChanged reports whether pods of a namespace count for another consumer, or for one now, or for none any more.
func twinChanged(before, after *corev1.Namespace) bool {
	was, wasTwin := liqo.TwinOf(before)
	is, isTwin := liqo.TwinOf(after)
	return wasTwin != isTwin || isTwin && was != is
}

// roomChanged reports whether a node is another cluster's, or has other room.
func roomChanged(before, after *corev1.Node) bool {
	return liqo.NodeCluster(before) != liqo.NodeCluster(after) ||
		!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
}

// haveChanged reports whether a provider has something else, or its node another name.
func haveChanged(before, after *v1alpha1.Provider) bool {
	return before.EffectiveScheduling() != after.EffectiveScheduling() || before.Status.ClusterName != after.Status.ClusterName ||
		!equality.Semantic.DeepEqual(before.Status.Offered, after.Status.Offered)
}

// termsChanged reports whether a consumer has other terms, or may see other nodes.
func termsChanged(before, after *v1alpha1.Consumer) bool {
	return before.Generation != after.Generation || before.Status.Mode != after.Status.Mode || isConfused(before) != isConfused(after)
}

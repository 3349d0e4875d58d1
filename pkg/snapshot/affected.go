// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/binding"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// AffectedBy returns the names of the twin namespaces whose plan can change with a
// provider: those that have selected it or have pods there, those whose policy has
// chosen it, and those without a policy.
func (r *Reader) AffectedBy(ctx context.Context, id cluster.ID) ([]string, error) {
	involved, err := r.podsOn(ctx, id)
	if err != nil {
		return nil, err
	}
	selecting, err := line.OffloadedTo(ctx, r.reader, r.line, id)
	if err != nil {
		return nil, err
	}
	for _, namespace := range selecting {
		involved[namespace] = true
	}
	type decision struct {
		policy   string
		consumer cluster.ID
	}
	known := map[decision]bool{} // Whether the provider is chosen: a consumer may have many namespaces.
	everybody := func(cluster.ID) bool { return true }
	return r.twins(ctx, everybody, func(ns *corev1.Namespace, consumer cluster.ID, policy *v1alpha1.PlacementPolicy) (bool, error) {
		if involved[ns.Name] || policy == nil {
			return true, nil
		}
		of := decision{policy.Name, consumer}
		if chosen, is := known[of]; is {
			return chosen, nil
		}
		d, err := r.Decision(ctx, policy, consumer)
		if err != nil {
			return false, err
		}
		known[of] = slices.ContainsFunc(d.Chosen, func(c v1alpha1.ChosenProvider) bool { return c.ID == string(id) })
		return known[of], nil
	})
}

// FollowersOf returns the names of the twin namespaces of a consumer that follow a policy.
func (r *Reader) FollowersOf(ctx context.Context, name string, consumer cluster.ID) ([]string, error) {
	its := func(id cluster.ID) bool { return id == consumer }
	return r.twins(ctx, its, func(_ *corev1.Namespace, _ cluster.ID, policy *v1alpha1.PlacementPolicy) (bool, error) {
		return policy != nil && policy.Name == name, nil
	})
}

// twins returns the names of the twin namespaces of some consumers that are asked for. The
// question has the policy that the namespace follows, or nil.
func (r *Reader) twins(
	ctx context.Context, of func(consumer cluster.ID) bool,
	wanted func(*corev1.Namespace, cluster.ID, *v1alpha1.PlacementPolicy) (bool, error),
) ([]string, error) {
	var policies v1alpha1.PlacementPolicyList
	if err := r.reader.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list placement policies: %w", err)
	}
	var namespaces corev1.NamespaceList
	if err := r.reader.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	rules := Rules(policies.Items)
	var names []string
	for i := range namespaces.Items {
		ns := &namespaces.Items[i]
		consumer, twin := liqo.TwinOf(ns)
		if !twin || !of(consumer) {
			continue
		}
		policy, err := r.policyOf(ctx, policies.Items, rules, ns)
		if err != nil {
			return nil, err
		}
		is, err := wanted(ns, consumer, policy)
		if err != nil {
			return nil, err
		}
		if is {
			names = append(names, ns.Name)
		}
	}
	return names, nil
}

// policyOf returns the policy that a namespace follows, or nil.
func (r *Reader) policyOf(
	ctx context.Context, policies []v1alpha1.PlacementPolicy, rules []binding.Policy, ns *corev1.Namespace,
) (*v1alpha1.PlacementPolicy, error) {
	var shadows []metav1.PartialObjectMetadata
	if slices.ContainsFunc(rules, func(rule binding.Policy) bool { return rule.Scope == binding.OnRequest }) {
		var err error
		if shadows, err = r.shadowsIn(ctx, ns.Name); err != nil {
			return nil, err
		}
	}
	return named(policies, binding.Follows(rules, twinOf(ns, shadows))), nil
}

// podsOn returns the names of the namespaces of the pods on a provider.
func (r *Reader) podsOn(ctx context.Context, id cluster.ID) (map[string]bool, error) {
	namespaces := map[string]bool{}
	err := r.eachPodOn(ctx, id, func(_ *VirtualNode, pod *corev1.Pod) { namespaces[pod.Namespace] = true })
	return namespaces, err
}

// PodsOn returns the pods that are with a provider and take something of it, as its account counts them. They share memory with the cache.
func (r *Reader) PodsOn(ctx context.Context, id cluster.ID) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	err := r.eachPodOn(ctx, id, func(node *VirtualNode, pod *corev1.Pod) {
		if node.Own && capacity.Counts(pod) {
			pods = append(pods, *pod)
		}
	})
	return pods, err
}

// eachPodOn calls a function with each pod on a virtual node that is of a provider, or says so. The pods are not to be changed.
func (r *Reader) eachPodOn(ctx context.Context, id cluster.ID, found func(*VirtualNode, *corev1.Pod)) error {
	peer, err := r.Peer(ctx, id)
	if err != nil {
		return err
	}
	nodes, err := r.NodesOf(ctx, id, peer)
	if err != nil {
		return err
	}
	for i := range nodes {
		var pods corev1.PodList
		if err := r.reader.List(ctx, &pods, client.MatchingFields{IndexPodNode: nodes[i].Name}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list the pods of node %s: %w", nodes[i].Name, err)
		}
		for j := range pods.Items {
			found(&nodes[i], &pods.Items[j])
		}
	}
	return nil
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

const (
	// maxPods is how many pods a preview of a drain has at most, and maxCandidates how many providers each of them.
	maxPods       = 250
	maxCandidates = 8
)

// What a preview of a drain says of pods that no Planner plans for.
const (
	whyNobodys   = "it is of no consumer: the broker does not move it"
	whyNotOurs   = "the broker does not offload its namespace"
	whyUnasked   = "its consumer does not ask for it any more: Liqo removes it"
	whyTerminate = "its namespace is being deleted"
)

// verdicts are the fates as people read them, in the order in which they are shown.
var verdicts = map[placement.Fate]string{placement.Stays: "Stays", placement.Later: "Later", placement.Moves: "Moves"}

// PreviewDrain returns what would become of the pods on a provider if people let it be scheduled in some way, which is Drained or Cordoned,
// and the policies had decided without it; ok is false if there is no such provider. For all of it the Planner is asked: it is what the
// controller would do at this moment, and what would follow as far as [placement.Foresee] can tell. It ends with the error of the context
// when that has ended, between two consumers or two namespaces.
func (e *Explainer) PreviewDrain(
	ctx context.Context, id cluster.ID, as v1alpha1.Scheduling,
) (preview apiv1.DrainPreview, ok bool, err error) {
	var p v1alpha1.Provider
	if err := e.Client.Get(ctx, client.ObjectKey{Name: string(id)}, &p); apierrors.IsNotFound(err) {
		return preview, false, nil
	} else if err != nil {
		return preview, false, fmt.Errorf("get provider %s: %w", id, err)
	}
	// Which pods are there, by their namespaces.
	pods, err := e.Reader.PodsOn(ctx, id)
	if err != nil {
		return preview, false, err
	}
	names := map[string][]string{}
	for i := range pods {
		names[pods[i].Namespace] = append(names[pods[i].Namespace], pods[i].Name)
	}
	namespaces, consumers, err := e.twins(ctx, slices.Sorted(maps.Keys(names)))
	if err != nil {
		return preview, false, err
	}

	// The world as it would be: first the provider, and then what policies decide of it.
	objects := snapshot.Assume(e.Client, []v1alpha1.Provider{*snapshot.Scheduled(&p, as)}, nil)
	decisions, err := placementpolicy.Redecide(ctx, e.Reader.Over(objects), objects, e.Planner.clock.Now(), consumers)
	if err != nil {
		return preview, false, err
	}
	objects = snapshot.Assume(objects, nil, decisions)
	then := *e
	then.Client, then.Reader = objects, e.Reader.Over(objects)
	called, err := then.clusters(ctx)
	if err != nil {
		return preview, false, err
	}

	// What becomes of each pod.
	preview = apiv1.DrainPreview{
		Provider: called(id), Scheduling: string(as), Remembers: true, Pods: []apiv1.DrainedPod{},
	}
	for _, ns := range namespaces {
		if err := ctx.Err(); err != nil {
			return preview, false, err
		}
		prospects, err := then.foresee(ctx, ns, id, names[ns.Name])
		if err != nil {
			return preview, false, err
		}
		consumer, isTwin := liqo.TwinOf(ns)
		preview.Remembers = preview.Remembers && (!isTwin || e.Planner.Remembers(ns.Name))
		for _, prospect := range prospects {
			pod := apiv1.DrainedPod{
				Namespace: liqo.OriginalName(ns), BrokerNamespace: ns.Name, Pod: prospect.Pod, Verdict: verdicts[prospect.Fate],
				Why: string(prospect.Reason), MoreCandidates: max(0, len(prospect.Candidates)-maxCandidates),
			}
			if isTwin {
				pod.Consumer = called(consumer)
			}
			for _, candidate := range prospect.Candidates[:min(len(prospect.Candidates), maxCandidates)] {
				pod.Candidates = append(pod.Candidates, called(candidate))
			}
			preview.Pods = append(preview.Pods, pod)
		}
	}
	summarize(&preview, as)
	return preview, true, nil
}

// twins returns the namespaces of some names, and the consumers that some of them are of. One that the cache does not have is nobody's.
func (e *Explainer) twins(ctx context.Context, names []string) ([]*corev1.Namespace, map[cluster.ID]bool, error) {
	all, consumers := make([]*corev1.Namespace, len(names)), map[cluster.ID]bool{}
	for i, name := range names {
		ns := &corev1.Namespace{}
		if err := e.Client.Get(ctx, client.ObjectKey{Name: name}, ns); apierrors.IsNotFound(err) {
			ns.Name = name
		} else if err != nil {
			return nil, nil, fmt.Errorf("get namespace %s: %w", name, err)
		}
		if consumer, is := liqo.TwinOf(ns); is {
			consumers[consumer] = true
		}
		all[i] = ns
	}
	return all, consumers, nil
}

// clusters returns a function that tells what clusters are called.
func (e *Explainer) clusters(ctx context.Context) (func(cluster.ID) apiv1.Cluster, error) {
	var providers v1alpha1.ProviderList
	if err := e.Client.List(ctx, &providers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list providers: %w", err)
	}
	var consumers v1alpha1.ConsumerList
	if err := e.Client.List(ctx, &consumers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list consumers: %w", err)
	}
	names := make(map[cluster.ID]string, len(providers.Items)+len(consumers.Items))
	for i := range consumers.Items {
		names[cluster.ID(consumers.Items[i].Name)] = consumers.Items[i].Status.ClusterName
	}
	for i := range providers.Items {
		names[cluster.ID(providers.Items[i].Name)] = providers.Items[i].Status.ClusterName
	}
	return func(id cluster.ID) apiv1.Cluster { return apiv1.Cluster{ID: string(id), Name: names[id]} }, nil
}

// foresee returns what becomes of some pods of a namespace that are on a provider.
func (e *Explainer) foresee(ctx context.Context, ns *corev1.Namespace, on cluster.ID, pods []string) ([]placement.Prospect, error) {
	stay := func(why string) []placement.Prospect {
		all := make([]placement.Prospect, len(pods))
		for i, pod := range slices.Sorted(slices.Values(pods)) {
			all[i] = placement.Prospect{Pod: pod, Reason: placement.Reason(why)}
		}
		return all
	}
	// Those of which the broker leaves its hands.
	if _, is := liqo.TwinOf(ns); !is {
		return stay(whyNobodys), nil
	}
	if !ns.DeletionTimestamp.IsZero() {
		return stay(whyTerminate), nil
	}
	if ours, err := IsOurs(ctx, e.Reader, ns); err != nil || !ours {
		return stay(whyNotOurs), err
	}
	twin, waiting, err := e.read(ctx, ns)
	if err != nil {
		return nil, err
	}
	if waiting != nil {
		return stay(waiting.Message), nil
	}
	// Those that it plans for, and those that are there although nobody asks for them.
	prospects := e.Planner.Foresee(ns, twin, on)
	known := make(map[string]bool, len(prospects))
	for _, p := range prospects {
		known[p.Pod] = true
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod string) bool { return known[pod] })
	return append(prospects, stay(whyUnasked)...), nil
}

// summarize counts, sorts and bounds the pods of a preview, and says what there is to say of all.
func summarize(preview *apiv1.DrainPreview, as v1alpha1.Scheduling) {
	order := map[string]int{verdicts[placement.Stays]: 0, verdicts[placement.Later]: 1, verdicts[placement.Moves]: 2}
	counts, noRoom := [3]int{}, 0
	for i := range preview.Pods {
		p := &preview.Pods[i]
		counts[order[p.Verdict]]++
		full := p.Why == string(placement.NoRoom) || p.Why == string(placement.NoTarget)
		if full && p.Verdict == verdicts[placement.Stays] {
			noRoom++
		}
	}
	slices.SortStableFunc(preview.Pods, func(a, b apiv1.DrainedPod) int {
		return cmp.Or(cmp.Compare(order[a.Verdict], order[b.Verdict]), cmp.Compare(a.Consumer.ID, b.Consumer.ID),
			cmp.Compare(a.BrokerNamespace, b.BrokerNamespace), cmp.Compare(a.Pod, b.Pod))
	})
	total := len(preview.Pods)
	preview.Stays, preview.Later, preview.Moves = counts[0], counts[1], counts[2]
	preview.Pods, preview.More = preview.Pods[:min(total, maxPods)], max(0, total-maxPods)

	// One sentence.
	switch {
	case total == 0:
		preview.Message = "No pod is on the provider"
	case as == v1alpha1.SchedulingCordoned && preview.Stays == total:
		preview.Message = "All pods on the provider would stay, and no new ones would come"
	default:
		preview.Message = fmt.Sprintf("Of the pods on the provider %d would move at once, %d later, and %d would stay",
			preview.Moves, preview.Later, preview.Stays)
		if noRoom > 0 {
			preview.Message += fmt.Sprintf(": for %d no other provider has room", noRoom)
		}
	}
}

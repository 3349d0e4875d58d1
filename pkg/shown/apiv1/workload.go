// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// WorkloadOf returns a pod of a consumer, given the policy that its namespace follows and why it waits; both may be empty.
func WorkloadOf(p *overview.Placed, policy, why string) Workload {
	w := Workload{
		Namespace: p.Namespace, BrokerNamespace: p.Twin, Pod: p.Pod, Path: p.Path, Address: p.Address, Status: p.Status, Ready: p.Ready,
		Since: p.Since.UTC(), Policy: policy, Why: sheet.Sentence(why),
	}
	if p.Consumer != nil {
		w.Consumer = Cluster(*p.Consumer)
	}
	if p.Provider != nil {
		provider := Cluster(*p.Provider)
		w.Provider = &provider
	}
	if p.Object != nil {
		w.Requests = quantities(requests(&p.Object.Spec))
		delete(w.Requests, string(corev1.ResourcePods)) // Each pod is one.
	}
	return w
}

// requests returns what a pod requests, which is not bounded. Of the pods in a daemon's cache each has a single container, which needs no
// counting.
func requests(spec *corev1.PodSpec) corev1.ResourceList {
	if len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && len(spec.Overhead) == 0 && spec.Resources == nil {
		return spec.Containers[0].Resources.Requests
	}
	return capacity.BoundedRequests(spec)
}

// FlowsOf counts where pods are and by which path they are reached, in order of consumers, providers and paths.
func FlowsOf(placed []overview.Placed) []Flow {
	type way struct{ consumer, provider, path string }
	counted := map[way]*Flow{}
	for i := range placed {
		p := &placed[i]
		consumer, provider := cmp.Or(p.Consumer, &overview.Cluster{}), cmp.Or(p.Provider, &overview.Cluster{})
		of := way{consumer.ID, provider.ID, p.Path}
		flow := counted[of]
		if flow == nil {
			flow = &Flow{Consumer: Cluster(*consumer), Path: p.Path}
			if p.Provider != nil {
				flow.Provider = new(Cluster(*provider))
			}
			counted[of] = flow
		}
		flow.Pods++
		if p.Ready {
			flow.Ready++
		}
	}
	order := func(a, b way) int {
		return cmp.Or(cmp.Compare(a.consumer, b.consumer), cmp.Compare(a.provider, b.provider), cmp.Compare(a.path, b.path))
	}
	flows := make([]Flow, 0, len(counted))
	for _, of := range slices.SortedFunc(maps.Keys(counted), order) {
		flows = append(flows, *counted[of])
	}
	return flows
}

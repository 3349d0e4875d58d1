// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Place makes a pod require one of some clusters, beside what it requires already; with
// none, the pod waits.
func Place(pod *corev1.Pod, on []cluster.ID) {
	if len(on) == 0 {
		require(pod, nowhere...)
		return
	}
	require(pod, requirement(on))
}

// Confine makes a pod require a virtual node, beside what it requires already: it never
// runs on a node of this cluster.
func Confine(pod *corev1.Pod) {
	require(pod, corev1.NodeSelectorRequirement{Key: LabelNodeType, Operator: corev1.NodeSelectorOpIn, Values: []string{NodeTypeVirtual}})
}

// MarkOffloaded labels a pod as one that runs in another cluster, as virtual kubelets do with each pod that is bound to their
// node (LocalPodOffloadedLabel in liqo/pkg/virtualKubelet/forge/pods.go@v0.9.4). They leave alone what has the label already.
func MarkOffloaded(pod *corev1.Pod) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[labelLocalPod] = labelLocalPodValue
}

// Admit makes a pod tolerate virtual nodes, as Liqo's webhook does once an offloading is in
// force (createTolerationFromNamespaceOffloading in
// pkg/liqo-controller-manager/webhooks/pod/mutations.go@v0.9.4).
func Admit(pod *corev1.Pod) {
	if !Admitted(pod) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: taintVirtualNode, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		})
	}
}

// Admitted reports whether a pod tolerates virtual nodes: it has passed Liqo's webhook, which looks at new pods only, or was made so.
func Admitted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, toleratesVirtualNodes)
}

func toleratesVirtualNodes(t corev1.Toleration) bool { return t.Key == taintVirtualNode }

// nowhere is what no node has.
var nowhere = []corev1.NodeSelectorRequirement{
	{Key: LabelRemoteClusterID, Operator: corev1.NodeSelectorOpExists},
	{Key: LabelRemoteClusterID, Operator: corev1.NodeSelectorOpDoesNotExist},
}

// require adds requirements to each alternative of what a pod requires of its node.
func require(pod *corev1.Pod, requirements ...corev1.NodeSelectorRequirement) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := pod.Spec.Affinity.NodeAffinity
	required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		// Liqo's webhook, which comes later, replaces a list without alternatives.
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{}},
		}
	}
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, requirements...)
	}
}

// ForgeSelector returns the selector of the given clusters, and only of them.
func ForgeSelector(selected []cluster.ID) corev1.NodeSelector {
	return corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{requirement(selected)},
	}}}
}

func requirement(selected []cluster.ID) corev1.NodeSelectorRequirement {
	values := make([]string, len(selected))
	for i, id := range selected {
		values[i] = string(id)
	}
	slices.Sort(values)
	return corev1.NodeSelectorRequirement{Key: LabelRemoteClusterID, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// Open reports whether Liqo lets pods of a namespace of this cluster run on virtual
// nodes. It does so where the namespace is offloaded with its pods.
func Open(ns *corev1.Namespace) bool { return ns.Labels[labelScheduling] == labelSchedulingValue }

// Follows reports whether a pod was made to follow a selection: it tolerates virtual nodes,
// and the selection is among what it requires of its node. A pod that follows an empty
// selection waits.
func Follows(pod *corev1.Pod, selected []cluster.ID) bool {
	if len(selected) == 0 {
		return Waits(pod)
	}
	return Admitted(pod) && requires(pod, requirement(selected))
}

// Waits reports whether a pod was made to wait, whatever else it requires.
func Waits(pod *corev1.Pod) bool { return requires(pod, nowhere...) }

// Excludes reports whether a pod cannot run on a cluster because it requires others,
// whichever of the alternatives that it requires a node meets.
func Excludes(pod *corev1.Pod, id cluster.ID) bool {
	terms := required(pod)
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == LabelRemoteClusterID && e.Operator == corev1.NodeSelectorOpIn && !slices.Contains(e.Values, string(id))
		})
	})
}

// Confined reports whether a pod can run on virtual nodes only, whichever of the
// alternatives that it requires a node meets.
func Confined(pod *corev1.Pod) bool {
	terms := required(pod)
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == LabelNodeType && e.Operator == corev1.NodeSelectorOpIn && slices.Equal(e.Values, []string{NodeTypeVirtual})
		})
	})
}

// requires reports whether an alternative of what a pod requires of its node has all of
// some requirements.
func requires(pod *corev1.Pod, requirements ...corev1.NodeSelectorRequirement) bool {
	return slices.ContainsFunc(required(pod), func(term corev1.NodeSelectorTerm) bool {
		for _, want := range requirements {
			if !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
				return e.Key == want.Key && e.Operator == want.Operator && slices.Equal(e.Values, want.Values)
			}) {
				return false
			}
		}
		return true
	})
}

// required returns the alternatives of what a pod requires of its node.
func required(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

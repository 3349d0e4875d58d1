// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Protect makes an offloading of Liqo's own namespace select only the clusters whose
// virtual kubelet is this project's: Liqo's own would hand them the Secrets of the
// namespace. It returns whether the offloading has changed.
func Protect(o *NamespaceOffloading) bool {
	terms := o.Spec.ClusterSelector.NodeSelectorTerms
	if len(terms) == 0 {
		// To Liqo that is all clusters (matchVirtualNodeSelectorTerms in
		// pkg/liqo-controller-manager/namespaceoffloading-controller/clusterselector.go@v0.9.4).
		o.Spec.ClusterSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{signed}}}
		return true
	}
	changed := false
	for i := range terms {
		isSign := func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == signed.Key && e.Operator == signed.Operator
		}
		matchesNone := len(terms[i].MatchExpressions) == 0 && len(terms[i].MatchFields) == 0
		if !matchesNone && !slices.ContainsFunc(terms[i].MatchExpressions, isSign) {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, signed)
			changed = true
		}
	}
	return changed
}

// signed is what a virtual node must have.
var signed = corev1.NodeSelectorRequirement{Key: liqo.LabelVirtualKubelet, Operator: corev1.NodeSelectorOpExists}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Compactor makes objects small of which a cache holds many: they name the same
// clusters again and again, and share these names. The zero Compactor is ready for
// use, also concurrently. It never shrinks, and does not grow beyond maxNames.
type Compactor struct {
	mu    sync.Mutex
	names map[string]string
}

// maxNames is how many names are shared, and maxName how long they are at most: consumers
// write names into their pods as they like.
const (
	maxNames = 10_000
	maxName  = 253
)

// Pod drops the selection from a pod that is bound: the scheduler has done with it.
// What a waiting pod requires of its node is kept.
func (c *Compactor) Pod(pod *corev1.Pod) {
	switch affinity := pod.Spec.Affinity; {
	case pod.Spec.NodeName != "" || affinity == nil || affinity.NodeAffinity == nil:
		pod.Spec.Affinity = nil
	default:
		required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
		if required != nil {
			dropForeign(required)
			c.Selector(required)
		}
	}
}

// dropForeign drops requirements that say nothing of clusters.
func dropForeign(selector *corev1.NodeSelector) {
	for i := range selector.NodeSelectorTerms {
		term := &selector.NodeSelectorTerms[i]
		term.MatchFields = nil
		term.MatchExpressions = slices.DeleteFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key != LabelRemoteClusterID && e.Key != LabelNodeType
		})
	}
}

// Selector replaces the values of a selector by shared ones.
func (c *Compactor) Selector(selector *corev1.NodeSelector) {
	for _, term := range selector.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			for i := range e.Values {
				e.Values[i] = c.Name(e.Values[i])
			}
		}
	}
}

// Name returns a text that is equal to the given one, and shares its memory with all equal ones.
func (c *Compactor) Name(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if shared, ok := c.names[name]; ok {
		return shared
	}
	if c.names == nil {
		c.names = map[string]string{}
	}
	if len(c.names) < maxNames && len(name) <= maxName {
		c.names[name] = name
	}
	return name
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// lostTaints are the keys of the taints that Kubernetes puts on a node that is not
// ready. After tolerationSeconds, by default 300, it deletes the pods there.
var lostTaints = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}

// Hold makes a pod stay on its node for as long as the node is not ready, whatever
// it tolerates beside, so that nobody but the broker decides what becomes of it.
// Kubernetes goes by the first toleration that fits a taint.
func Hold(pod *corev1.Pod) {
	for _, key := range lostTaints {
		at := slices.IndexFunc(pod.Spec.Tolerations, tolerates(key))
		if at < 0 || pod.Spec.Tolerations[at].TolerationSeconds != nil {
			pod.Spec.Tolerations = slices.Insert(pod.Spec.Tolerations, 0, hold(key))
		}
	}
}

// Release takes from a pod what Hold gave to it, as far as it tolerated something
// before: in another cluster, the pod is to leave nodes that are not ready.
func Release(spec *corev1.PodSpec) {
	for _, key := range lostTaints {
		at := slices.IndexFunc(spec.Tolerations, tolerates(key))
		if at < 0 || spec.Tolerations[at] != hold(key) {
			continue
		}
		rest := spec.Tolerations[at+1:]
		if next := slices.IndexFunc(rest, tolerates(key)); next >= 0 && rest[next].TolerationSeconds != nil {
			spec.Tolerations = slices.Delete(slices.Clone(spec.Tolerations), at, at+1)
		}
	}
}

func hold(key string) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
}

func tolerates(key string) func(corev1.Toleration) bool {
	taint := &corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute}
	return func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), taint, false) }
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestHold holds a pod and releases it again.
func TestHold(t *testing.T) {
	forNotReady, forUnreachable := hold(corev1.TaintNodeNotReady), hold(corev1.TaintNodeUnreachable)
	limited := func(t corev1.Toleration, seconds int64) corev1.Toleration {
		t.TolerationSeconds = &seconds
		return t
	}
	defaults := []corev1.Toleration{limited(forNotReady, 300), limited(forUnreachable, 300)}
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	virtual := corev1.Toleration{Key: "virtual-node.liqo.io/not-allowed", Operator: corev1.TolerationOpExists}
	type list = []corev1.Toleration
	cases := map[string]struct {
		reason         string
		before         list
		held, released list
	}{
		"Default": {
			reason: "What Kubernetes gives to every pod comes second, and is all that is left.",
			before: defaults, held: append(list{forUnreachable, forNotReady}, defaults...), released: defaults,
		},
		"OwnWish": {
			reason:   "So does what the consumer wishes.",
			before:   list{virtual, limited(forNotReady, 5), limited(forUnreachable, 7)},
			held:     list{forUnreachable, forNotReady, virtual, limited(forNotReady, 5), limited(forUnreachable, 7)},
			released: list{virtual, limited(forNotReady, 5), limited(forUnreachable, 7)},
		},
		"Forever": {
			reason: "A pod that stays by itself is left alone, and stays so.",
			before: list{forNotReady, forUnreachable}, held: list{forNotReady, forUnreachable}, released: list{forNotReady, forUnreachable},
		},
		"Everything": {
			reason: "So does one that tolerates everything.",
			before: list{everything}, held: list{everything}, released: list{everything},
		},
		"One": {
			reason: "Each taint is for itself.",
			before: list{forNotReady, limited(forUnreachable, 300)}, held: list{forUnreachable, forNotReady, limited(forUnreachable, 300)},
			released: list{forNotReady, limited(forUnreachable, 300)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: tc.before}}
			for range 2 { // Holding twice holds no more.
				Hold(pod)
			}
			if diff := cmp.Diff(tc.held, pod.Spec.Tolerations); diff != "" {
				t.Errorf("%s\nHold(): -want +got\n%s", tc.reason, diff)
			}
			Release(&pod.Spec)
			if diff := cmp.Diff(tc.released, pod.Spec.Tolerations); diff != "" {
				t.Errorf("%s\nRelease(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

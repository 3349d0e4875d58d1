// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWithout(t *testing.T) {
	written := metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}
	drop := Without(func(pod *corev1.Pod) { pod.Labels = nil })
	pod, other := &corev1.Pod{ObjectMeta: written}, &corev1.Node{ObjectMeta: written}
	for _, o := range []any{pod, other, "no object"} {
		if got, err := drop(o); err != nil || got != o {
			t.Errorf("%T: %v, %v", o, got, err)
		}
	}
	if pod.ManagedFields != nil || pod.Labels != nil || other.ManagedFields != nil || other.Labels == nil {
		t.Errorf("left of the pod: %+v, of the node: %+v", pod.ObjectMeta, other.ObjectMeta)
	}
}

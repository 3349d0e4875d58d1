// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"testing"

	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// TestOriginNode reads from a pod what Liqo's virtual kubelets write into it.
func TestOriginNode(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: forge.ReflectionLabelsWithNodeName("liqo-broker")}}
	if got := liqo.OriginNode(pod); got != "liqo-broker" {
		t.Errorf("the pod %v is on node %q of its consumer", pod.Labels, got)
	}
}

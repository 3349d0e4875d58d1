// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/liqotech/liqo/pkg/vkMachinery"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// virtualKubelet returns the pod of a virtual kubelet.
func virtualKubelet(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tenantNamespace, Labels: vkMachinery.KubeletBaseLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Image: image}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// TestSignWaits has Liqo's virtual kubelet run on while this one begins, as the rollout of a Deployment does: until it has ended, the
// node does not get what namespace liqo has to show.
func TestSignWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stock := virtualKubelet("stock", "liqo/virtual-kubelet:v0.9.4")
		replica := virtualKubelet("replica", "broker-vk:1")
		client := fake.NewSimpleClientset(stock, replica, virtualKubelet("this", "broker-vk:1"))
		node := newTestNode(t, client)
		node.config.Pod = "this"
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			node.sign(ctx)
		}()
		time.Sleep(time.Minute)
		if node.steady.isSigned() {
			t.Error("the node is signed while Liqo's virtual kubelet runs")
		}
		stock.Status.Phase = corev1.PodFailed
		if _, err := client.CoreV1().Pods(tenantNamespace).UpdateStatus(ctx, stock, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * signInterval)
		if !node.steady.isSigned() {
			t.Error("the node is not signed, and no virtual kubelet of Liqo runs any more")
		}
		cancel()
		<-ended
	})
}

// TestSignWithoutPod has a virtual kubelet that does not know which of the pods it is: it signs only when there is none.
func TestSignWithoutPod(t *testing.T) {
	node := newTestNode(t, fake.NewSimpleClientset(virtualKubelet("one", "broker-vk:1")))
	if others, err := node.others(t.Context()); err != nil || len(others) != 1 {
		t.Errorf("others() = %v, %v, want one", others, err)
	}
}

// TestSignatureIsShown checks that what is signed is shown, also when this virtual kubelet replaces another one of this project.
func TestSignatureIsShown(t *testing.T) {
	if wrong := validation.IsValidLabelValue(signature()); signature() == "" || len(wrong) > 0 {
		t.Errorf("signature() = %q: %v", signature(), wrong)
	}
	no := func() bool { return false }
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		sign                bool
		want                string
	}{
		"NotYet":    {},
		"Signed":    {sign: true, want: signature()},
		"Successor": {annotations: map[string]string{liqo.LabelVirtualKubelet: "v0"}, want: signature()},
		"Forged":    {labels: map[string]string{liqo.LabelVirtualKubelet: "v0"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSteadyNode(&innerNode{}, corev1.NodeStatus{}, Pods{Present: no, Direct: no}, time.Minute, logr.Discard())
			before := liqoNode(true, true)
			before.Labels, before.Annotations = tc.labels, tc.annotations
			s.begin(before)
			if tc.sign {
				s.sign()
			}
			s.told = liqoNode(true, true)
			s.told.Labels = maps.Clone(tc.labels)
			if _, now := s.current(); now == nil || now.Labels[liqo.LabelVirtualKubelet] != tc.want {
				t.Errorf("the node is shown as %+v, want the label %q", now, tc.want)
			}
			if got := s.completed(s.told).Labels[liqo.LabelVirtualKubelet]; got != tc.want {
				t.Errorf("the node is created with the label %q, want %q", got, tc.want)
			}
			if !maps.Equal(s.told.Labels, tc.labels) {
				t.Errorf("Liqo's node is changed: %v", s.told.Labels)
			}
		})
	}
}

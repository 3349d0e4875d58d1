// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// TestAgentCache keeps of pods and IPs what the agent reads, and nothing else; of IPs only those that Liqo makes for pods.
func TestAgentCache(t *testing.T) {
	cached, err := agentCache()
	if err != nil {
		t.Fatal(err)
	}
	ip := ipOfPod()
	ip.UID, ip.ResourceVersion, ip.DeletionTimestamp = "ip", "7", &metav1.Time{}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "pod", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "broker"},
		Status: corev1.PodStatus{
			PodIP: "10.65.0.12", PodIPs: []corev1.PodIP{{IP: "10.65.0.12"}}, HostIPs: []corev1.HostIP{{IP: "172.30.0.2"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady}},
		},
	}
	fullIP, fullPod := ip.DeepCopy(), pod.DeepCopy()
	fullIP.Annotations, fullIP.Finalizers = map[string]string{"a": "b"}, []string{"ip.liqo.io/finalizer"}
	fullIP.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "liqo"}}
	fullIP.Spec.NetworkRef, fullIP.Spec.Masquerade = &corev1.ObjectReference{Name: "x"}, new(true)
	fullIP.Status = api.IPStatus{IP: "10.70.0.7", CIDR: "10.70.0.0/16"}
	fullPod.Annotations, fullPod.Spec.Containers = map[string]string{"a": "b"}, []corev1.Container{{Name: "c"}}
	fullPod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c"}}

	seen := 0
	for kind, by := range cached.ByObject {
		var full, want client.Object
		switch kind.(type) {
		case *api.IP:
			full, want = fullIP, ip
			if !by.Label.Matches(labels.Set(ip.Labels)) || by.Label.Matches(labels.Set{"app": "web"}) {
				t.Errorf("IPs are read that match %s", by.Label)
			}
		case *corev1.Pod:
			full, want = fullPod, pod
		default:
			continue
		}
		seen++
		got, err := by.Transform(full)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T: -want +cached\n%s", kind, diff)
		}
	}
	if seen != 2 {
		t.Errorf("%d of pods and IPs are cached in their own way", seen)
	}
}

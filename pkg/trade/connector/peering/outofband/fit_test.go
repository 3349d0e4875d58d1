// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// TestFit evicts what does not fit: the least important, then the youngest, and nothing that does not help. Nothing new comes while the
// node is larger than what contracts give.
func TestFit(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	node := liqotest.VirtualNode(remote, true)
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4")}
	w := newWorld(t, node)
	pod := func(name, owner, cores string, priority int32, age time.Duration) {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(at.Add(-age)),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: "o", UID: "o", Controller: new(true)}},
			},
			Spec: corev1.PodSpec{NodeName: node.Name, Priority: &priority, Containers: []corev1.Container{{
				Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cores)}},
			}}},
		}
		if err := w.client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	pod("agent", "DaemonSet", "1", -1, 0)
	pod("important", "ReplicaSet", "1", 10, 0)
	pod("old", "ReplicaSet", "1", 0, 2*time.Hour)
	pod("young", "ReplicaSet", "1", 0, time.Hour)
	pod("idle", "ReplicaSet", "0", 0, 0)
	fit := func(cores string, want int, closed bool, stay ...string) {
		t.Helper()
		left, err := w.Fit(t.Context(), remote.ID, corev1.ResourceList{"cpu": resource.MustParse(cores)})
		var pods corev1.PodList
		if err := w.client.List(t.Context(), &pods); err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range pods.Items {
			names = append(names, pods.Items[i].Name)
		}
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		if err != nil || left != want || !slices.Equal(names, stay) || node.Spec.Unschedulable != closed {
			t.Errorf("into %s cores: %d left, %v; %q stay, the node is closed: %t", cores, left, err, names, node.Spec.Unschedulable)
		}
	}
	open := func(cores string, closed bool) {
		t.Helper()
		if err := w.Open(t.Context(), remote.ID, corev1.ResourceList{"cpu": resource.MustParse(cores)}); err != nil {
			t.Fatal(err)
		}
		state, err := w.State(t.Context(), remote.ID)
		if err := errors.Join(err, w.client.Get(t.Context(), client.ObjectKeyFromObject(node), node)); err != nil {
			t.Fatal(err)
		}
		if node.Spec.Unschedulable != closed || state.Nodes[0].Closed != closed {
			t.Errorf("with %s cores of contracts the node is closed: %t, %+v", cores, node.Spec.Unschedulable, state)
		}
	}
	shrink := func(cores string) {
		t.Helper()
		node.Status.Allocatable["cpu"] = resource.MustParse(cores)
		if err := w.client.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	fit("4", 0, false, "agent", "idle", "important", "old", "young")
	fit("3", 1, true, "agent", "idle", "important", "old")
	fit("3", 0, true, "agent", "idle", "important", "old") // The pod that left may come again: the node has still four cores.
	open("3", true)
	for range 2 { // Another contract with the same seller begins: the first time makes the peering, in this test.
		if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
			t.Fatal(err)
		}
	}
	open("3", true)
	shrink("3")
	open("3", false)
	fit("500m", 2, true, "agent", "idle")
	fit("500m", 0, true, "agent", "idle")
	fit("2", 0, true, "agent", "idle")
	shrink("2")
	fit("2", 0, false, "agent", "idle")
	if left, err := w.Fit(t.Context(), remote.ID, nil); left != 0 || err != nil {
		t.Errorf("without any room that counts: %d, %v", left, err)
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/placement"
	"github.com/capacitorset/liqo-broker/pkg/pool"
)

// TestFits has providers with room for a pod of one core, with too little, and with none that is known; and a pod that may
// run on one provider only, which nobody levels.
func TestFits(t *testing.T) {
	room := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi")}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
	}}}}
	pinned := pod.DeepCopy()
	pinned.Labels = map[string]string{"virtualkubelet.liqo.io/nodename": pool.Name("id-broker", cluster.Identity{ID: "little", Name: "little"})}
	n := &Namespace{
		Policy: &v1alpha1.PlacementPolicy{}, Pods: map[string]*corev1.Pod{"here": pod, "pinned": pinned},
		room: map[cluster.ID]corev1.ResourceList{"enough": room("1"), "little": room("999m"), "full": {}},
	}
	n.Snapshot.Copies = []placement.Copy{{Pod: "here"}, {Pod: "gone"}, {Pod: "pinned"}}
	for _, id := range []cluster.ID{"enough", "little", "full"} {
		n.Snapshot.Providers = append(n.Snapshot.Providers, placement.Provider{ID: id})
	}
	if n.level(); n.Snapshot.Level || n.Snapshot.Copies[0].Fits != nil {
		t.Error("copies are leveled by a policy that uses the same providers all the time")
	}
	n.Policy.Spec.Keep = &v1alpha1.Keep{}
	n.level()
	if fits(corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}, nil) {
		t.Error("a pod without requests fits where no pod fits")
	}
	want := []placement.Copy{{Pod: "here", Fits: []cluster.ID{"enough"}}, {Pod: "gone"}, {Pod: "pinned"}}
	if diff := cmp.Diff(want, n.Snapshot.Copies); diff != "" || !n.Snapshot.Level {
		t.Errorf("level %v, -want +got\n%s", n.Snapshot.Level, diff)
	}
}

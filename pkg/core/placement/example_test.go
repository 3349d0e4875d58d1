// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
)

// Rome is drained while it has three replicas of a shop and the only one of a blog. Of the shop one goes at once, and the next one when
// that serves in Oslo; the blog stays, because nothing would serve meanwhile.
func ExampleDecide() {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("110")}
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	serves := func(workload, pod string, provider cluster.ID, since time.Duration) placement.Copy {
		return placement.Copy{
			Pod: pod, Workload: workload, Spot: placement.OnProvider, Provider: provider, Ready: true, ReadySince: now.Add(-since),
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}
	}
	s := placement.Snapshot{
		Providers: []placement.Provider{
			{ID: "oslo", Health: placement.Ready, Namespace: placement.Present, Room: room},
			{ID: "rome", Health: placement.Ready, Namespace: placement.Present, Room: room, Scheduling: placement.Drained},
		},
		Selected: []cluster.ID{"oslo", "rome"}, Effective: true,
		Copies: []placement.Copy{
			serves("shop", "shop-0", "rome", time.Hour), serves("shop", "shop-1", "rome", time.Hour), serves("shop", "shop-2", "rome", time.Hour),
			serves("blog", "blog-0", "rome", time.Hour),
		},
	}
	show := func(plan placement.Plan) {
		fmt.Println("selected", plan.Select, "recreated", plan.Recreate)
		for _, held := range plan.Held {
			fmt.Printf("  %s stays in %s: %s\n", held.Pod, held.Provider, held.Reason)
		}
	}
	show(placement.Decide(now, s))

	// A little later the first one serves in Oslo.
	s.Copies[0] = serves("shop", "shop-0", "oslo", 5*time.Second)
	show(placement.Decide(now, s))
	// Output:
	// selected [oslo rome] recreated [shop-0]
	//   blog-0 stays in rome: it is the last ready replica of its workload
	//   shop-1 stays in rome: it waits until more replicas of its workload are ready
	//   shop-2 stays in rome: it waits until more replicas of its workload are ready
	// selected [oslo rome] recreated [shop-1]
	//   blog-0 stays in rome: it is the last ready replica of its workload
	//   shop-2 stays in rome: it waits until more replicas of its workload are ready
}

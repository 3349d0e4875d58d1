// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// TestPeek looks at what the memory would be after a pod found its place, and after a long time: it stays as it is.
func TestPeek(t *testing.T) {
	twin := func(spot placement.Spot, at cluster.ID) *snapshot.Twin {
		return &snapshot.Twin{
			Pods: map[string]*corev1.Pod{"web-0": {ObjectMeta: metav1.ObjectMeta{UID: "uid"}}},
			Snapshot: placement.Snapshot{
				Level: true, Selected: []cluster.ID{"a", "b"}, Placing: []cluster.ID{"b"},
				Copies: []placement.Copy{{Pod: "web-0", Workload: "web", Spot: spot, Provider: at}},
			},
		}
	}
	peeked := time.Unix(1_000_000, 0)
	m := newMemory()
	m.recall(peeked, "shop", twin(placement.Nowhere, ""))
	m.recall(peeked.Add(PlaceTime), "shop", twin(placement.Nowhere, ""))
	if len(m.namespaces["shop"].declined["web"]) != 1 {
		t.Fatalf("a pod waited in vain, and what is remembered is %v", m.namespaces)
	}
	before := fmt.Sprint(m.namespaces)
	m.peek(peeked.Add(PlaceTime), "shop", twin(placement.OnProvider, "b"))
	m.peek(peeked.Add(declineTime*2), "shop", twin(placement.Nowhere, ""))
	if after := fmt.Sprint(m.namespaces); after != before {
		t.Errorf("who looks makes of the memory %s\n%s", before, after)
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"encoding/json"
	"slices"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// maxDecisions bounds what decisions and their explanations take of a PlacementPolicy, in
// bytes. etcd takes 1.5 MiB, and what people write needs the rest.
const maxDecisions = 1 << 20

// fit writes decisions into a status, with as many explanations as there is room for. It
// returns the size of the decisions, and false if even they are too large.
func fit(status *v1alpha1.PlacementPolicyStatus, decisions []v1alpha1.ConsumerDecision) (size int, fits bool) {
	status.Decide(decisions)
	size = sizeOf(status.Decisions)
	rest := maxDecisions - size
	for i := range status.Explanations {
		if rest -= sizeOf(status.Explanations[i]); rest < 0 {
			status.Explanations = status.Explanations[:i]
			break
		}
	}
	return size, size <= maxDecisions
}

// sizeOf returns how many bytes something takes in an object.
func sizeOf(what any) int {
	text, err := json.Marshal(what)
	if err != nil {
		return 0 // What is written as JSON anyway can be.
	}
	return len(text)
}

// lasting returns the decisions of before when those of now are too large. Who is not
// chosen any more gets no new pods: the policy may forbid it. Consumers that share a
// decision go on sharing it, or what was small enough would be too large as well: who is
// barred for one of them is barred for all.
func lasting(before *v1alpha1.PlacementPolicyStatus, now []v1alpha1.ConsumerDecision) []v1alpha1.ConsumerDecision {
	shared := map[string]int{} // The number of the decision of each consumer.
	for i := range before.Decisions {
		for _, c := range before.Decisions[i].Consumers {
			shared[c.ID] = i
		}
	}
	type chosen struct {
		decision int
		provider string
	}
	barred := map[chosen]bool{}
	last := make([]v1alpha1.ConsumerDecision, len(now))
	for i := range now {
		last[i] = before.DecisionFor(now[i].Consumer)
		last[i].Consumer, last[i].ConsumerName = now[i].Consumer, now[i].ConsumerName
		last[i].Chosen = slices.Clone(last[i].Chosen)
		open := map[string]bool{}
		for _, c := range now[i].Chosen {
			open[c.ID] = !c.Barred
		}
		for _, c := range last[i].Chosen {
			if !open[c.ID] {
				barred[chosen{shared[now[i].Consumer], c.ID}] = true
			}
		}
	}
	for i := range last {
		for j := range last[i].Chosen {
			last[i].Chosen[j].Barred = barred[chosen{shared[last[i].Consumer], last[i].Chosen[j].ID}]
		}
	}
	return last
}

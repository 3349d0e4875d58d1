// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// level evens out the copies of each workload over the clusters on which new pods
// are placed, so that one that was added gets its share. It does so for one workload
// after the other, and moves one pod at a time, while all copies are ready. It returns
// the clusters that have too few and have room, on which alone pods are to be placed
// meanwhile, also while the pod is on its way; and the pod. Without such clusters, or if
// all have too few, it returns nothing.
func level(now time.Time, s Snapshot, place []cluster.ID) (short []cluster.ID, pod string) {
	// Whoever can take pods of the namespace; with one there is nothing to level.
	var targets []cluster.ID
	room := map[cluster.ID]corev1.ResourceList{}
	for _, p := range s.Providers {
		if p.usable() && p.Namespace == Present && slices.Contains(place, p.ID) {
			targets, room[p.ID] = append(targets, p.ID), p.Room
		}
	}
	if len(targets) < 2 {
		return nil, ""
	}
	// One workload at a time: the first that is uneven, and whose copies all serve or on which a move has begun.
	begun := len(s.Placing) < len(place)
	for _, copies := range byWorkload(s.Copies) {
		short = nil
		on, bound, ready := tally(now, copies, targets)
		settled := bound == len(copies) && ready == len(copies)
		if onItsWay := begun && bound < len(copies); !settled && !onItsWay {
			continue
		}
		// From whom a copy goes, and who has too few and room for one.
		var crowded []Copy
		for _, id := range targets {
			if len(on[id]) > len(crowded) {
				crowded = on[id]
			}
			if len(on[id]) < len(copies)/len(targets) && allFit(copies, room[id]) && !slices.Contains(s.Declined[copies[0].Workload], id) {
				short = append(short, id)
			}
		}
		if len(short) > 0 && len(short) < len(targets) {
			if settled {
				pod = crowded[len(crowded)-1].Pod
			}
			slices.Sort(short)
			return short, pod
		}
	}
	return nil, ""
}

// tally returns the copies that stay on each of some clusters, how many those are, and
// how many can be counted on, wherever they are.
func tally(now time.Time, copies []Copy, targets []cluster.ID) (on map[cluster.ID][]Copy, bound, ready int) {
	on = map[cluster.ID][]Copy{}
	for _, c := range copies {
		if c.Spot == OnProvider && !c.Missing && !c.Leaving && slices.Contains(targets, c.Provider) {
			on[c.Provider] = append(on[c.Provider], c)
			bound++
		}
		if c.settled(now) {
			ready++
		}
	}
	return on, bound, ready
}

// allFit reports whether the copies of a workload that exist may go to a provider and fit it,
// one by one. Those of a StatefulSet do not go: their volumes may be where they are.
func allFit(copies []Copy, room corev1.ResourceList) bool {
	exist := false
	for _, c := range copies {
		if c.Missing {
			continue
		}
		exist = true
		if c.Pinned || c.Sole || !Fits(c.Requests, room) {
			return false
		}
	}
	return exist
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// Fits reports whether a pod with some requests fits where the largest pod is known, which
// says nothing of the number of pods: there is none where no pod fits.
func Fits(requests, largest corev1.ResourceList) bool {
	for name, amount := range requests {
		if left := largest[name]; name != corev1.ResourcePods && left.Cmp(amount) < 0 {
			return false
		}
	}
	return len(largest) > 0
}

// vacancies is the room on the clusters that can take pods at this moment, as a plan
// fills it: where there is room for one pod, no second one is to go. A cluster may have
// further virtual nodes that are not counted. The next plan sees them.
type vacancies struct {
	ids  []cluster.ID
	left map[cluster.ID]corev1.ResourceList
	// placed is where the room of a pod was taken.
	placed map[string]cluster.ID
}

// vacate returns the room on the clusters on which new pods are placed, without what the
// copies need that have no place at this moment.
func vacate(s Snapshot, place []cluster.ID) *vacancies {
	placed := make(map[cluster.ID]bool, len(place))
	for _, id := range place {
		placed[id] = true
	}
	v := &vacancies{left: make(map[cluster.ID]corev1.ResourceList, len(place)), placed: map[string]cluster.ID{}}
	for _, p := range s.Providers {
		if p.usable() && p.Namespace == Present && placed[p.ID] {
			v.ids, v.left[p.ID] = append(v.ids, p.ID), p.Room
		}
	}
	slices.Sort(v.ids)
	for _, copies := range byWorkload(s.Copies) {
		usual := sync.OnceValue(func() corev1.ResourceList { return largest(copies) })
		for _, c := range copies {
			if c.Pod == "" || c.Spot != Nowhere && (!c.Leaving || slices.Contains(v.ids, c.Provider)) {
				continue
			}
			if c.Missing {
				c.Requests = usual()
			}
			v.take(c)
		}
	}
	return v
}

// largest returns the most that the copies of a workload request of each resource.
func largest(copies []Copy) corev1.ResourceList {
	var most corev1.ResourceList
	for _, c := range copies {
		if len(c.Requests) > 0 {
			most = resources.Max(most, c.Requests)
		}
	}
	return most
}

// none reports whether no cluster can take pods at all.
func (v *vacancies) none() bool { return len(v.ids) == 0 }

// take fills the room of a pod, and reports whether there was some for it. A pod on the
// broker's own nodes needs none, because it does not stay there in any case, and a pinned
// one goes back to its consumer.
func (v *vacancies) take(c Copy) bool {
	if v.none() || c.Pinned || c.Spot == OnBroker {
		return !v.none()
	}
	at := slices.IndexFunc(v.ids, func(id cluster.ID) bool { return Fits(c.Requests, v.left[id]) })
	if at >= 0 {
		v.left[v.ids[at]] = resources.Subtract(v.left[v.ids[at]], c.Requests)
		v.placed[c.Pod] = v.ids[at]
	}
	return at >= 0
}

// fitting returns the clusters that have room for a pod at this moment; none for one that goes back to its consumer.
func (v *vacancies) fitting(c Copy) []cluster.ID {
	if c.Pinned {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.ids), func(id cluster.ID) bool { return !Fits(c.Requests, v.left[id]) })
}

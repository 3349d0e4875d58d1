// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

// anyProvider returns a provider in any state, also in one that does not last.
func anyProvider(r *rand.Rand, id cluster.ID) Provider {
	one := func(in int) bool { return r.IntN(in) == 0 }
	p := Provider{
		ID: id, Health: []Health{Ready, Ready, Ready, NotReady, Withdrawn, Ending}[r.IntN(6)],
		Scheduling: []Scheduling{Active, Active, Active, Cordoned, Drained, Closing}[r.IntN(6)],
		Choice:     []Choice{Chosen, Chosen, Chosen, Unchosen, Barred}[r.IntN(5)],
		Namespace:  []Namespace{Present, Present, Present, Present, Absent, Refused, Passed}[r.IntN(7)], Direct: one(4),
		Room: cores(int64(r.IntN(9))),
	}
	if one(9) {
		p.Room = nil
	}
	p.ViewUnknown = one(6)
	if one(5) {
		p.LostSince = now.Add(-time.Duration(r.IntN(60)-5) * time.Second)
		if p.Health == Ready {
			p.Health = NotReady
		}
	}
	return p
}

// anyCopy returns a copy in any state, on one of some clusters.
func anyCopy(r *rand.Rand, pod, workload string, ids []cluster.ID) Copy {
	one := func(in int) bool { return r.IntN(in) == 0 }
	c := Copy{Pod: pod, Workload: workload, Sole: one(5), Pinned: one(9), Requests: cores(int64(r.IntN(3)))}
	switch r.IntN(10) {
	case 0:
		c.Missing, c.Requests = true, nil
	case 1:
		c.Outdated = one(2)
	case 2:
		c.Spot, c.Ready = OnBroker, one(2)
	default:
		c.Spot, c.Provider, c.Ready = OnProvider, ids[r.IntN(len(ids))], !one(4)
		c.Leaving = one(7)
	}
	if c.Ready && one(3) {
		c.ReadySince = now.Add(-time.Duration(r.IntN(5000)-500) * time.Millisecond)
	}
	return c
}

// anySnapshot returns a namespace in any state.
func anySnapshot(r *rand.Rand) Snapshot {
	one := func(in int) bool { return r.IntN(in) == 0 }
	s := Snapshot{Effective: true, Level: one(2), MoveSingletons: one(4), Undecided: one(30), Unserved: one(30), NeedsViews: one(2)}
	s.Failover = Failover{Mode: Mode(r.IntN(3)), Grace: time.Duration(r.IntN(40)) * time.Second, ReplaceSole: one(3)}
	var clusters []cluster.ID
	for i := range 1 + r.IntN(5) {
		id := cluster.ID(fmt.Sprint("p", i))
		clusters = append(clusters, id)
		if !one(12) { // The others are no providers any more.
			s.Providers = append(s.Providers, anyProvider(r, id))
		}
		if !one(4) {
			s.Selected = append(s.Selected, id)
			if !one(3) {
				s.Placing = append(s.Placing, id)
			}
		}
	}
	for w := range 1 + r.IntN(3) {
		workload := fmt.Sprint("w", w)
		for i := range 1 + r.IntN(8) {
			s.Copies = append(s.Copies, anyCopy(r, fmt.Sprintf("%s-%d", workload, i), workload, clusters))
		}
		if one(4) {
			s.Declined = map[string][]cluster.ID{workload: clusters[:1]}
		}
	}
	return s
}

// settleSelection carries out where a plan wants pods to go, again and again, until it wants nothing else.
func settleSelection(t *testing.T, s Snapshot) Snapshot {
	t.Helper()
	for range 8 {
		plan := Decide(now, s)
		if len(plan.Select) == 0 || slices.Equal(plan.Select, s.Selected) && slices.Equal(plan.Place, s.Placing) {
			return s
		}
		s.Selected, s.Placing = plan.Select, append([]cluster.ID{}, plan.Place...)
	}
	t.Fatalf("the selection does not come to rest: %+v", s)
	return s
}

// TestPlans plans in random worlds in which the selection has come to rest.
func TestPlans(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 20))
		before := anySnapshot(r)
		checkViews(t, before, Decide(now, before))
		s := settleSelection(t, before)
		plan := Decide(now, s)
		shuffled := s
		shuffled.Providers, shuffled.Copies = slices.Clone(s.Providers), slices.Clone(s.Copies)
		r.Shuffle(len(s.Providers), func(i, j int) {
			shuffled.Providers[i], shuffled.Providers[j] = shuffled.Providers[j], shuffled.Providers[i]
		})
		r.Shuffle(len(s.Copies), func(i, j int) { shuffled.Copies[i], shuffled.Copies[j] = shuffled.Copies[j], shuffled.Copies[i] })
		if diff := cmp.Diff(plan, Decide(now, shuffled), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the order matters: %s", diff)
		}
		checkSelection(t, s, plan)
		checkRemoved(t, s, plan)
		checkReplaced(t, s, plan)
		checkCordoned(t, s, plan)
		checkViews(t, s, plan)
		if t.Failed() {
			t.Logf("before %+v\n%+v\nplan %+v", before, s, plan)
		}
	})
}

// checkSelection fails unless a plan selects what may be, and keeps what runs and nobody has to leave.
func checkSelection(t *testing.T, s Snapshot, plan Plan) {
	t.Helper()
	usable := slices.ContainsFunc(s.Providers, Provider.usable)
	known := map[cluster.ID]Provider{}
	for _, p := range s.Providers {
		known[p.ID] = p
	}
	for _, id := range plan.Place {
		if !slices.Contains(plan.Select, id) {
			t.Errorf("pods are placed on %s, which is not selected", id)
		}
	}
	for _, id := range plan.Select {
		if p := known[id]; usable && !s.Undecided && !s.Unserved && !p.mayHost() {
			t.Errorf("%s is selected, which passed on or refuses the namespace", id)
		}
	}
	for _, c := range s.Copies {
		p := known[c.Provider]
		if c.Spot == OnProvider && p.mayHost() && slices.Contains(s.Selected, c.Provider) && !slices.Contains(plan.Select, c.Provider) {
			t.Errorf("%s is on %s, which is not selected any more", c.Pod, c.Provider)
		}
	}
}

// checkRemoved fails if a plan takes too many copies that serve, or what is not there.
func checkRemoved(t *testing.T, s Snapshot, plan Plan) {
	t.Helper()
	gone := map[string]bool{}
	for _, pod := range slices.Concat(plan.Replace, plan.Recreate, plan.Move) {
		at := slices.IndexFunc(s.Copies, func(c Copy) bool { return c.Pod == pod })
		if gone[pod] || at < 0 || s.Copies[at].Missing || s.Copies[at].Leaving && !slices.Contains(plan.Replace, pod) {
			t.Errorf("%s goes twice, or is not there", pod)
		}
		gone[pod] = true
	}
	for _, h := range plan.Held {
		if gone[h.Pod] {
			t.Errorf("%s is held, and goes", h.Pod)
		}
	}
	ending := map[cluster.ID]bool{}
	for _, p := range s.Providers {
		ending[p.ID] = p.Health == Ending
	}
	for _, copies := range byWorkload(s.Copies) {
		left, bound, goes, fewer := 0, 0, 0, 0
		alone := len(copies) == 1 && (s.MoveSingletons || copies[0].Spot == OnBroker)
		fromProviders := false
		for _, c := range copies {
			counts := c.settled(now) && !ending[c.Provider]
			switch {
			case c.Spot == OnBroker && (s.Undecided || s.Unserved || len(plan.Select) == 0):
				fewer++ // No policy lets it run there.
			case gone[c.Pod] && c.serves():
				goes++
				fromProviders = fromProviders || c.Spot == OnProvider
			case !counts:
				fewer++
			case c.Spot == OnProvider:
				left++
			default:
				bound++
			}
		}
		if !fromProviders {
			left += bound // Pods on the broker count for each other.
		}
		if goes > 0 && !alone && (left == 0 || goes+fewer > (len(copies)+3)/4) {
			t.Errorf("of %d copies of %s, %d that serve go: %d are left, and %d did not serve before", len(copies), copies[0].Workload, goes,
				left, fewer)
		}
	}
}

// checkCordoned fails if a plan places pods on a provider that is cordoned, or takes some away that are to stay.
func checkCordoned(t *testing.T, s Snapshot, plan Plan) {
	t.Helper()
	for _, p := range s.Providers {
		if p.Scheduling != Cordoned {
			continue
		}
		if slices.Contains(plan.Place, p.ID) {
			t.Errorf("pods are placed on %s, which is cordoned", p.ID)
		}
		for _, c := range s.Copies {
			goes := slices.Contains(slices.Concat(plan.Replace, plan.Recreate, plan.Move), c.Pod)
			if c.Spot == OnProvider && c.Provider == p.ID && goes && p.mayHost() && !p.recedes() && !p.lost() {
				t.Errorf("%s goes from %s, which is cordoned", c.Pod, p.ID)
			}
		}
	}
}

// checkViews fails if a plan places pods where the consumer would show wrong addresses, or takes away what runs there and would stay
// otherwise.
func checkViews(t *testing.T, s Snapshot, plan Plan) {
	t.Helper()
	seen := map[cluster.ID]bool{}
	for _, p := range s.Providers {
		seen[p.ID] = !p.ViewUnknown
		if !p.ViewUnknown {
			continue
		}
		selected, goesOn := slices.Contains(s.Selected, p.ID), p.mayHost() && !p.recedes() && p.Scheduling != Drained && p.Choice != Unchosen
		if !selected && slices.Contains(plan.Select, p.ID) {
			t.Errorf("%s is selected, and the consumer does not reach it", p.ID)
		}
		if selected && goesOn && !slices.Contains(plan.Select, p.ID) {
			t.Errorf("%s is not selected any more because the consumer does not reach it", p.ID)
		}
		for _, c := range s.Copies {
			goes := slices.Contains(slices.Concat(plan.Replace, plan.Recreate, plan.Move), c.Pod)
			if c.Spot == OnProvider && c.Provider == p.ID && goes && goesOn && !p.lost() {
				t.Errorf("%s goes from %s because the consumer does not reach it", c.Pod, p.ID)
			}
		}
	}
	unreached := slices.ContainsFunc(s.Providers, Provider.isUnreached)
	for _, p := range s.Providers {
		if unreached && p.isLeft() && slices.Contains(plan.Place, p.ID) {
			t.Errorf("pods are placed on %s, which people want empty, because the consumer does not reach others", p.ID)
		}
	}
	for _, id := range plan.Place {
		if is, known := seen[id]; known && !is || !known && s.NeedsViews {
			t.Errorf("pods are placed on %s, of which the consumer shows wrong addresses", id)
		}
	}
}

// checkReplaced fails if a plan replaces pods that the rule of failover keeps, or for which there is no room.
func checkReplaced(t *testing.T, s Snapshot, plan Plan) {
	t.Helper()
	free, needed := int64(0), int64(0)
	for _, p := range s.Providers {
		if p.usable() && p.Namespace == Present {
			free += p.Room.Cpu().Value()
		}
	}
	for _, c := range s.Copies {
		at := slices.IndexFunc(s.Providers, func(p Provider) bool { return p.ID == c.Provider })
		replaced := slices.Contains(plan.Replace, c.Pod)
		if !replaced && (c.Spot != OnProvider || !slices.Contains(plan.Recreate, c.Pod) && !slices.Contains(plan.Move, c.Pod)) {
			continue
		}
		ends := s.Providers[at].Health == Ending
		if !c.Pinned && !ends && len(plan.Move) == 0 { // What is evened out has its place.
			needed += c.Requests.Cpu().Value()
		}
		if !replaced {
			continue
		}
		if p := s.Providers[at]; c.Ready || !p.lost() ||
			!ends && (p.Direct || c.Sole && !s.Failover.ReplaceSole || s.Failover.Mode == Never && !p.isLeft()) {
			t.Errorf("%s is replaced on %+v", c.Pod, p)
		}
	}
	if needed > free {
		t.Errorf("pods go that need %d cores, and %d are free", needed, free)
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Fate is what becomes of a pod.
type Fate int

// The fates.
const (
	// Stays: no plan moves it.
	Stays Fate = iota
	// Moves: the next plan does.
	Moves
	// Later: one that follows it does.
	Later
)

// Further reasons, of pods about which plans say nothing.
const (
	// Evicted: who deletes it is not the broker.
	Evicted Reason = "the peering with its provider ends, and Liqo evicts it"
	// GoesAlready: it does not have to be deleted.
	GoesAlready Reason = "it is being deleted already"
	// GoesBack: its consumer's scheduler chose the provider.
	GoesBack Reason = "its consumer chose its provider, and gets it back"
	// Unordered: nobody wants it elsewhere.
	Unordered Reason = "pods may stay on its provider"
)

// Prospect is what becomes of a pod that is on a provider.
type Prospect struct {
	Pod  string
	Fate Fate
	// Reason says why it does not go at once, or what else there is to say of how it goes; it may be empty.
	Reason Reason
	// Candidates are the clusters that have room for it when it goes, in order of their IDs. There are none for a pod that stays, or that goes
	// back to its consumer.
	Candidates []cluster.ID
}

const (
	// maxPlans bounds how many plans are foreseen. A quarter of a workload goes by each, so that few are needed.
	maxPlans = 64
	// maxSelections bounds how often a selection is made again that follows from the one before.
	maxSelections = 8
)

// Foresee returns what becomes of the pods that are on a provider if the plans for a namespace are carried out one after the other and
// nothing else changes, in order of the pods' names. It makes each of these plans by [Decide]. It takes for granted that selected clusters
// make the namespace, that what is placed becomes ready, and so do pods that are not ready where they are, if their provider is in reach;
// and that each pod is placed on the first of its candidates. A provider with several virtual nodes may have more room in the end than is
// foreseen, because only the largest pod is known.
func Foresee(now time.Time, s Snapshot, from cluster.ID) []Prospect {
	s.Providers, s.Copies = slices.Clone(s.Providers), slices.Clone(s.Copies)
	all := s.prospectsOn(from)
	for nth := 0; ; nth++ {
		// A plan says what goes and what is held; then the world is as if that was done.
		plan := s.settleSelection(now)
		held := reasonsOf(plan.Held)
		candidates, changed := s.carryOut(plan, vacate(s, plan.Place))
		left := all.noteFates(nth == 0, candidates, held)

		// If nothing changes any more, time alone may change the next plan: who is lost has none left.
		switch {
		case left > 0 && changed && nth < maxPlans-1:
		case left > 0 && plan.Wait > 0 && nth < maxPlans-1:
			now = now.Add(plan.Wait)
		default:
			s.judge(all, held, from)
			return slices.SortedFunc(maps.Values(all), func(a, b Prospect) int { return strings.Compare(a.Pod, b.Pod) })
		}
	}
}

// outlook is what becomes of pods, by their names.
type outlook map[string]Prospect

// prospectsOn returns what is known of the pods on a provider before any plan is made.
func (s *Snapshot) prospectsOn(from cluster.ID) outlook {
	lost, all := s.lost(), outlook{}
	for i := range s.Copies {
		c := &s.Copies[i]
		switch {
		case !isOn(c, from):
		case c.Leaving && !lost[from]:
			all[c.Pod] = Prospect{Pod: c.Pod, Fate: Moves, Reason: GoesAlready}
		case c.Pinned:
			all[c.Pod] = Prospect{Pod: c.Pod, Reason: GoesBack}
		default:
			all[c.Pod] = Prospect{Pod: c.Pod}
		}
	}
	return all
}

// noteFates notes which pods go by a plan, which may be the first one, with their candidates, and which the first one holds. It returns how
// many are left.
func (o outlook) noteFates(first bool, candidates map[string][]cluster.ID, held map[string]Reason) (left int) {
	for pod, p := range o {
		to, goes := candidates[pod]
		switch {
		case goes && first:
			p.Fate, p.Candidates = Moves, to
		case goes && p.Fate == Stays:
			p.Fate, p.Candidates = Later, to
		case first:
			p.Reason = cmp.Or(held[pod], p.Reason)
		}
		if o[pod] = p; p.Fate == Stays {
			left++
		}
	}
	return left
}

// lost returns the providers that are out of reach.
func (s *Snapshot) lost() map[cluster.ID]bool {
	lost := make(map[cluster.ID]bool, len(s.Providers))
	for i := range s.Providers {
		lost[s.Providers[i].ID] = s.Providers[i].lost()
	}
	return lost
}

// isOn reports whether a copy is a pod on a provider.
func isOn(c *Copy, provider cluster.ID) bool {
	return c.Pod != "" && c.Spot == OnProvider && c.Provider == provider && !c.Missing
}

// judge says of the pods that no plan moves why they stay, or who else lets them go.
func (s *Snapshot) judge(all outlook, held map[string]Reason, from cluster.ID) {
	at := slices.IndexFunc(s.Providers, func(p Provider) bool { return p.ID == from })
	evicts := at >= 0 && s.Providers[at].Health == Ending
	for pod, p := range all {
		switch {
		case p.Fate != Stays:
		case evicts:
			p.Fate, p.Reason = Moves, Evicted
		case held[pod] != "":
			p.Reason = held[pod]
		case p.Reason == "" || p.Reason == GoesBack:
			p.Reason = Unordered
		}
		all[pod] = p
	}
}

func reasonsOf(held []Held) map[string]Reason {
	reasons := make(map[string]Reason, len(held))
	for _, h := range held {
		reasons[h.Pod] = h.Reason
	}
	return reasons
}

// settleSelection lets Liqo do what plans select, until they select nothing else, and returns the plan that is made then. A selection that
// takes effect is seen by pods that are made from then on.
func (s *Snapshot) settleSelection(now time.Time) Plan {
	plan := Decide(now, *s)
	for range maxSelections {
		placing := s.Placing
		if placing == nil {
			placing = s.Selected
		}
		if len(plan.Select) == 0 || s.Effective && slices.Equal(plan.Select, s.Selected) && slices.Equal(plan.Place, placing) {
			break
		}
		s.Selected, s.Placing, s.Effective = plan.Select, append([]cluster.ID{}, plan.Place...), true
		for i := range s.Providers {
			if p := &s.Providers[i]; p.Namespace == Absent && slices.Contains(s.Selected, p.ID) {
				p.Namespace = Present
			}
		}
		plan = Decide(now, *s)
	}
	return plan
}

// placeGoing places the pods that a plan lets go, and returns which these are, and the candidates of each.
func (s *Snapshot) placeGoing(plan Plan, v *vacancies) (goes map[string]bool, candidates map[string][]cluster.ID) {
	goes = make(map[string]bool, len(plan.Recreate)+len(plan.Replace)+len(plan.Move))
	for _, pod := range slices.Concat(plan.Replace, plan.Recreate, plan.Move) {
		goes[pod] = true
	}
	// In the order in which the plan counted the room: of each workload first what is replaced.
	candidates = make(map[string][]cluster.ID, len(goes))
	replaced := make(map[string]bool, len(plan.Replace))
	for _, pod := range plan.Replace {
		replaced[pod] = true
	}
	for _, copies := range byWorkload(s.Copies) {
		for _, replacing := range []bool{true, false} {
			for _, c := range copies {
				if !goes[c.Pod] || replaced[c.Pod] != replacing || c.Pod == "" {
					continue
				}
				candidates[c.Pod] = v.fitting(c)
				if c.Spot != Nowhere { // For those the room is taken already.
					v.take(c)
				}
			}
		}
	}
	return goes, candidates
}

// carryOut lets pods go as a plan has it, and be placed where there is room, as the room was counted for the plan, as which the vacancies
// are given. All that can becomes ready. It returns the candidates of each pod that goes, or went already, and whether anything changed.
func (s *Snapshot) carryOut(plan Plan, v *vacancies) (candidates map[string][]cluster.ID, changed bool) {
	goes, candidates := s.placeGoing(plan, v)
	lost := s.lost()
	for i := range s.Providers {
		if room, placed := v.left[s.Providers[i].ID]; placed {
			s.Providers[i].Room = room
		}
	}
	// Copies that are awaited are not for long. The others end, are placed, and become ready.
	awaited := len(s.Copies)
	s.Copies = slices.DeleteFunc(s.Copies, func(c Copy) bool { return c.Pod == "" })
	changed = len(s.Copies) < awaited
	for i := range s.Copies {
		c := &s.Copies[i]
		at, placed := v.placed[c.Pod]
		ends := c.Leaving && !lost[c.Provider]
		switch {
		case goes[c.Pod] || c.Missing || ends || c.Spot == Nowhere && placed:
			if ends && placed {
				candidates[c.Pod] = []cluster.ID{at}
			}
			changed = true
			c.Missing, c.Leaving, c.Outdated, c.Unheard, c.Ready, c.Pinned = false, false, false, false, placed, false
			if c.Spot, c.Provider = Nowhere, ""; placed {
				c.Spot, c.Provider = OnProvider, at
			}
		case c.Spot == OnProvider && !c.Ready && !c.Unheard && !lost[c.Provider]:
			c.Ready, changed = true, true
		}
		changed = changed || c.Ready && !c.ReadySince.IsZero()
		c.ReadySince = time.Time{}
	}
	return candidates, changed
}

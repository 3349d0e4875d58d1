// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement decides where the pods of a consumer's namespace may run:
// which providers are selected for the namespace, and which pods are recreated
// because they are, or wait, in the wrong place.
//
// It decides from a snapshot of one namespace, with the time as an argument, and
// has no memory: the same input gives the same plan. It knows nothing of how the
// snapshot was taken nor of how the plan is carried out. It never plans to remove
// the last ready copy of a workload from a provider, unless the workload has only
// one and people want it to move all the same.
package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Spot is the kind of place where a copy is.
type Spot int

// The kinds of places.
const (
	// Nowhere: no pod exists for the copy, or it is not yet bound to a node.
	Nowhere Spot = iota
	// OnBroker: the pod is bound to one of the broker's own nodes.
	OnBroker
	// OnProvider: the pod is bound to a provider's virtual node.
	OnProvider
)

// Copy is one copy of a workload: a pod that the consumer asked for, whether or
// not it exists at the moment.
type Copy struct {
	// Pod is the name of the pod, unique in the namespace.
	Pod string
	// Workload is equal for the copies that can stand in for each other.
	Workload string
	Spot     Spot
	// Provider is set if Spot is OnProvider.
	Provider cluster.ID
	// Missing tells that no pod exists for the copy at the moment.
	Missing bool
	// Leaving tells that the pod is being deleted.
	Leaving bool
	// Ready tells that the pod serves, as far as its node knows and can be believed.
	Ready bool
	// Unheard tells that nobody reports on the pod's node: the pod may well serve, and nobody
	// there ends it.
	Unheard bool
	// ReadySince tells since when it does; zero for longer than anybody remembers.
	ReadySince time.Time
	// Sole tells that no second pod of the same name may run anywhere at the same time,
	// as of a StatefulSet.
	Sole bool
	// Requests is what the pod takes of its provider; nil if no pod exists.
	Requests corev1.ResourceList
	// Pinned tells that its consumer's scheduler chose the provider, so that the pod runs
	// there or goes back to its consumer.
	Pinned bool
	// Outdated tells that a pod Nowhere was made with another selection than the
	// current one, so that the scheduler does not see the current one.
	Outdated bool
}

// settle is for how long a copy has to serve before another one may go for it. A copy
// is ready on the broker a moment before its consumer knows, and before the consumer's
// Services lead to it.
const settle = 2 * time.Second

// serves reports whether the copy counts as a ready one.
func (c Copy) serves() bool { return c.Ready && !c.Leaving && !c.Missing }

// settling returns for how long the copy, which serves, is not counted on yet.
func (c Copy) settling(now time.Time) time.Duration {
	return max(0, settle-max(0, now.Sub(c.ReadySince)))
}

// settled reports whether the copy serves and can be counted on.
func (c Copy) settled(now time.Time) bool { return c.serves() && c.settling(now) == 0 }

// Snapshot is one namespace at one moment.
type Snapshot struct {
	// Providers are all the broker's providers or, with a policy, those that it has chosen,
	// those that are selected and those where pods are.
	Providers []Provider
	// Undecided tells that a policy is to choose the providers and has not yet: what runs
	// stays, and new pods wait.
	Undecided bool
	// Unserved tells that the broker does not serve the namespace's consumer: what runs
	// stays, and nothing is added.
	Unserved bool
	// NeedsViews tells that the consumer shows right addresses only of providers of which it has
	// told that it can reach them: of a cluster that is none of Providers it has not.
	NeedsViews bool
	// Level tells that the copies of a workload are to be spread over the providers as
	// evenly as they can.
	Level bool
	// Declined are providers on which copies of a workload waited in vain, by workload: none
	// is evened out onto them.
	Declined map[string][]cluster.ID
	// Selected are the clusters that are selected for the namespace.
	Selected []cluster.ID
	// Placing are those of them on which pods are placed that are made at this moment;
	// nil for all, empty for none.
	Placing []cluster.ID
	// Effective tells that a pod made at this moment follows Selected.
	Effective bool
	// Copies are the copies of the namespace's workloads that have not finished.
	Copies []Copy
	// Failover is the rule for the pods on providers that are out of reach.
	Failover Failover
	// MoveSingletons tells that a workload of one copy moves too, although nothing
	// serves meanwhile.
	MoveSingletons bool
}

// Reason says why a pod is not moved although it is in the wrong place.
type Reason string

// The reasons.
const (
	// NoTarget: no other provider can take the pod.
	NoTarget Reason = "no other provider can take it"
	// NoRoom: no other provider has room for it at this moment.
	NoRoom Reason = "no other provider has room for it"
	// LastReady: it is the last ready replica of its workload.
	LastReady Reason = "it is the last ready replica of its workload"
	// TooManyNotReady: a quarter of the workload's replicas is not ready.
	TooManyNotReady Reason = "it waits until more replicas of its workload are ready"
	// OutOfReach: nobody can end the pod where it is.
	OutOfReach Reason = "its provider is out of reach"
	// NotHeardOf: it may serve, and nobody can end it before somebody reports on its node again.
	NotHeardOf Reason = "the state of its node is unknown"
	// NotServed: nothing is done for the consumer, neither for better nor for worse.
	NotServed Reason = "its consumer is not served"
	// NotDecided: its policy has not chosen yet to where it can go.
	NotDecided Reason = "the policy of its namespace has not chosen any provider yet"
	// MayRunThere: it is of a StatefulSet, and would run twice.
	MayRunThere Reason = "its provider is out of reach, where it may still run, and it must not run twice"
)

// resting returns the pods that stay in the wrong place because nothing is decided for their
// namespace.
func resting(s Snapshot, providers map[cluster.ID]member) []Held {
	reason := NotDecided
	if s.Unserved {
		reason = NotServed
	}
	var held []Held
	for _, c := range s.Copies {
		if c.Spot == OnProvider && !c.Missing && !c.Leaving && misplaced(c, providers) {
			held = append(held, Held{Pod: c.Pod, Provider: c.Provider, Reason: reason})
		}
	}
	slices.SortFunc(held, func(a, b Held) int { return strings.Compare(a.Pod, b.Pod) })
	return held
}

// Held is a pod that stays in the wrong place for the moment.
type Held struct {
	Pod      string
	Provider cluster.ID
	Reason   Reason
}

// Plan is what to do for one namespace.
type Plan struct {
	// Select are the clusters to select, in order. It is empty only if nothing is
	// selected and nothing can be: then the selection is left as it is.
	Select []cluster.ID
	// Place are those of them on which new pods are to be placed; without any, new pods
	// wait. The others are selected because Liqo would remove what runs there if they
	// were not.
	Place []cluster.ID
	// Recreate are the pods to delete, so that they are recreated in the right place.
	Recreate []string
	// Replace are pods on providers that are out of reach, to remove without waiting
	// for the provider, so that they are recreated elsewhere.
	Replace []string
	// Move are further ones to delete, which are well where they are, but for a policy that
	// prefers other providers. They have time.
	Move []string
	// Held are the pods that would have to move but stay for the moment.
	Held []Held
	// Wait is the time until the plan changes, if the snapshot does not; zero if it
	// will not.
	Wait time.Duration
}

// Decide makes the plan for a namespace.
func Decide(now time.Time, s Snapshot) Plan {
	// Which providers are lost, or will be when the time that they have is over.
	providers := make(map[cluster.ID]member, len(s.Providers))
	var wait time.Duration
	for _, p := range s.Providers {
		rest, fails := s.Failover.rest(now, p)
		wait = Sooner(wait, rest)
		providers[p.ID] = member{p, fails && rest == 0}
	}
	if s.Placing == nil {
		s.Placing = s.Selected
	}
	// While nobody decides, everything stays, but for pods that are where none can be.
	if s.Unserved || s.Undecided {
		plan := Plan{Select: s.Selected}
		plan.Recreate = adrift(s.Copies, len(s.Placing) == 0)
		plan.Held = resting(s, providers)
		return plan
	}
	// Where pods may be, and where new ones are to come.
	plan := Plan{Select: choose(s, providers), Wait: wait}
	if len(plan.Select) == 0 {
		plan.Recreate = adrift(s.Copies, false)
		return plan
	}
	plan.Place = place(plan.Select, providers, s.NeedsViews)
	var leveled string
	if s.Level {
		var short []cluster.ID
		if short, leveled = level(now, s, plan.Place); len(short) > 0 {
			plan.Place = short
		}
	}
	if !s.Effective || !slices.Equal(plan.Select, s.Selected) || !slices.Equal(plan.Place, s.Placing) {
		return plan // Pods made before the selection is in force would go astray.
	}

	// Which pods go: first those of lost providers, then those that are elsewhere than they should be.
	room := sync.OnceValue(func() *vacancies { return vacate(s, plan.Place) })
	for _, copies := range byWorkload(s.Copies) {
		plan.replace(copies, providers, s.Failover, room)
		recreate, held := move(now, copies, providers, room, s.MoveSingletons)
		for _, c := range recreate {
			if c.Spot == OnProvider && providers[c.Provider].onlyUnchosen() && c.Ready {
				plan.Move = append(plan.Move, c.Pod)
			} else {
				plan.Recreate = append(plan.Recreate, c.Pod)
			}
		}
		plan.Held = append(plan.Held, held...)
		if len(held) > 0 || s.Level {
			plan.Wait = Sooner(plan.Wait, settling(now, copies))
		}
	}
	if leveled != "" {
		plan.Move = append(plan.Move, leveled)
	}
	return plan
}

// adrift returns the pods that are to wait and do not, while no provider may take them:
// those on the broker's own nodes and, if nothing is placed any more, those that wait for
// a provider that was open before.
func adrift(copies []Copy, closed bool) (names []string) {
	for _, group := range byWorkload(copies) {
		for _, c := range group {
			if !c.Missing && !c.Leaving && (c.Spot == OnBroker || closed && c.Spot == Nowhere && c.Outdated) {
				names = append(names, c.Pod)
			}
		}
	}
	return names
}

// settling returns the time until the next copy settles; zero if all have that serve.
func settling(now time.Time, copies []Copy) (wait time.Duration) {
	for _, c := range copies {
		if c.serves() {
			wait = Sooner(wait, c.settling(now))
		}
	}
	return wait
}

// Sooner returns the shorter of two waits, of which zero is none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// choose returns the clusters to select, in order:
//   - the usable providers;
//   - those selected already that are not drained but not ready, because taking a
//     provider out removes what runs there, and it may only be out of reach;
//   - those selected already that are drained, not chosen, withdrawn or no providers
//     any more, while pods are there or can still come.
//
// With no usable provider the selection stays as it is, because an empty one
// would select every cluster, the consumer included.
func choose(s Snapshot, providers map[cluster.ID]member) []cluster.ID {
	occupied := map[cluster.ID]bool{}
	for _, c := range s.Copies {
		if c.Spot == OnProvider && !c.Missing {
			occupied[c.Provider] = true
		}
	}
	var chosen []cluster.ID
	usable := false
	for id, p := range providers {
		selected := slices.Contains(s.Selected, id) && p.mayHost()
		left := p.Scheduling == Drained || (p.Choice == Unchosen || p.recedes()) && !slices.Contains(s.Placing, id)
		if p.usable() || selected && (!left || occupied[id]) {
			chosen = append(chosen, id)
			usable = usable || p.usable()
		}
	}
	for _, id := range s.Selected {
		if _, known := providers[id]; !known && occupied[id] {
			chosen = append(chosen, id)
		}
	}
	if !usable {
		chosen = slices.Clone(s.Selected)
	}
	slices.Sort(chosen)
	return slices.Compact(chosen)
}

// place returns the selected clusters on which new pods are to be placed: those that are
// known, chosen, not barred, not cordoned, have not failed and are not withdrawn; if that
// leaves none, all that are chosen and neither barred nor cordoned. Where no policy has
// chosen, new pods do not go, nor where the consumer would show wrong addresses. What
// people want empty does not take the place of others that the consumer does not reach
// yet: pods wait for these.
func place(selected []cluster.ID, providers map[cluster.ID]member, needsViews bool) []cluster.ID {
	unreached := slices.ContainsFunc(slices.Collect(maps.Values(providers)), func(m member) bool { return m.isUnreached() }) ||
		needsViews && slices.ContainsFunc(selected, func(id cluster.ID) bool { _, known := providers[id]; return !known })
	chosen := slices.DeleteFunc(slices.Clone(selected), func(id cluster.ID) bool {
		p, known := providers[id]
		return p.Choice != Chosen || p.Scheduling == Cordoned || p.ViewUnknown || needsViews && !known || unreached && p.isLeft()
	})
	left := slices.DeleteFunc(slices.Clone(chosen), func(id cluster.ID) bool {
		p, known := providers[id]
		return !known || p.failed || p.recedes()
	})
	if len(left) > 0 {
		return left
	}
	return chosen
}

// move decides about the copies of one workload that are not on a lost provider.
func move(
	now time.Time, copies []Copy, providers map[cluster.ID]member, room func() *vacancies, singletons bool,
) (recreate []Copy, held []Held) {
	// Those on the broker's own nodes count for each other only: they may be on a virtual
	// node that is gone. Where the peering ends, Liqo evicts all copies at once.
	ready, aside := 0, 0
	for _, c := range copies {
		switch {
		case !c.settled(now) || c.Spot == OnProvider && providers[c.Provider].Health == Ending:
		case c.Spot == OnBroker:
			aside++
		default:
			ready++
		}
	}
	// Of a workload, a quarter of the copies, rounded up, may be not ready because
	// of us, those included that are not ready for other reasons or not yet settled.
	budget := (len(copies)+3)/4 - (len(copies) - ready - aside)
	for _, c := range copies {
		if c.Missing || c.Leaving || c.isLost(providers) || !misplaced(c, providers) {
			continue
		}
		if c.Spot == Nowhere {
			recreate = append(recreate, c)
			continue
		}
		// The broker's own nodes are no place to stay. A single pod got there in its first
		// moments, before the selection was in force.
		serves := c.Ready && (len(copies) > 1 || c.Spot != OnBroker && !singletons)
		others := 0 // That do not count for this one.
		if c.Spot != OnBroker {
			others = aside
		}
		// A copy is kept back if it would have nowhere to go, or if its workload would lack it too much.
		var reason Reason
		switch {
		case c.Unheard:
			reason = NotHeardOf
		case room().none():
			reason = NoTarget
		case serves && ready+aside-others == 1:
			reason = LastReady
		case serves && budget-others <= 0:
			reason = TooManyNotReady
		case !room().take(c):
			reason = NoRoom
		}
		if reason != "" {
			held = append(held, Held{Pod: c.Pod, Provider: c.Provider, Reason: reason})
			continue
		}
		// What goes counts as not ready from here on.
		recreate = append(recreate, c)
		if !serves {
			continue
		}
		budget--
		if c.Spot == OnBroker {
			aside--
		} else {
			ready--
		}
	}
	return recreate, held
}

// misplaced reports whether a pod is, or waits, where it must not.
func misplaced(c Copy, providers map[cluster.ID]member) bool {
	switch c.Spot {
	case Nowhere:
		return c.Outdated
	case OnBroker:
		return true
	case OnProvider:
		p, known := providers[c.Provider]
		return known && p.Health != Ending && (p.leaves() || p.onlyUnchosen())
	default:
		return false
	}
}

// byWorkload groups the copies, workloads and copies in order of their names.
func byWorkload(copies []Copy) [][]Copy {
	sorted := slices.SortedFunc(slices.Values(copies), func(a, b Copy) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Pod, b.Pod))
	})
	var groups [][]Copy
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && sorted[n].Workload == sorted[0].Workload {
			n++
		}
		groups = append(groups, sorted[:n])
		sorted = sorted[n:]
	}
	return groups
}

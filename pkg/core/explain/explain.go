// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain says what is known of a consumer's namespace and what is planned for it, for
// people who ask why a pod waits or stays where it is. What it says is bounded, however large the
// namespace is.
//
// It does not know who asks, and plans nothing: it puts a snapshot and a plan of package
// placement into words.
package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// MaxItems is how many providers and pods an explanation has at most. Those come first that say
// why something waits.
const MaxItems = 250

// maxWorkload is how many bytes of a workload's name are said: it is made of labels, of which a
// consumer may write many.
const maxWorkload = 253

// List is the first of many.
type List[T any] struct {
	// Count is how many there are; Items has at most MaxItems of them.
	Count int `json:"count"`
	Items []T `json:"items"`
}

// Namespace is one namespace at one moment, with its plan.
type Namespace struct {
	Name     string     `json:"namespace"`
	Consumer cluster.ID `json:"consumer"`
	// Policy chooses the providers; empty if none does.
	Policy string `json:"policy,omitempty"`
	// Remembers tells that who made the plan has planned for the namespace before, as the
	// replica that leads does. Another one knows only what stands in objects.
	Remembers bool `json:"remembers"`
	// Waiting says why new pods wait; nil if they do not.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Selected are the providers that are selected, and Placing those of them on which new
	// pods are placed.
	Selected List[cluster.ID] `json:"selected"`
	Placing  List[cluster.ID] `json:"placing"`
	// Effective tells that pods that are made at this moment follow them.
	Effective bool           `json:"effective"`
	Plan      Plan           `json:"plan"`
	Providers List[Provider] `json:"providers"`
	Pods      List[Pod]      `json:"pods"`
	// Awaited is how many pods are counted that the consumer may be replacing.
	Awaited int `json:"awaited"`
}

// Waiting is why new pods of a namespace wait.
type Waiting struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Plan is what is planned for a namespace.
type Plan struct {
	// Select and Place are what Selected and Placing are to become.
	Select List[cluster.ID] `json:"select"`
	Place  List[cluster.ID] `json:"place"`
	// How many pods are recreated at once, replaced without waiting for their provider, or
	// moved when there is time, and how many stay that would have to move.
	Recreate int `json:"recreate"`
	Replace  int `json:"replace"`
	Move     int `json:"move"`
	Stay     int `json:"stay"`
	// AgainSeconds is after how many seconds the plan changes though nothing else does; zero
	// if it does not.
	AgainSeconds float64 `json:"againSeconds,omitempty"`
}

// Provider is a provider that concerns a namespace.
type Provider struct {
	ID cluster.ID `json:"id"`
	// NewPods tells that the plan places new pods there, and Why why it does not.
	NewPods bool     `json:"newPods"`
	Why     []string `json:"why,omitempty"`
	// LargestPod is what the largest pod can request that the scheduler can place there.
	LargestPod corev1.ResourceList `json:"largestPod,omitempty"`
	// UnreachableSince tells since when the provider is out of reach; zero if it is not.
	UnreachableSince time.Time `json:"unreachableSince,omitzero"`
	// Direct tells that the consumer reaches the provider past the broker.
	Direct bool `json:"direct,omitempty"`
}

// Pod is a pod of a namespace.
type Pod struct {
	Name     string `json:"name"`
	Workload string `json:"workload"`
	// At is Nowhere, OnBroker or OnProvider.
	At       string     `json:"at"`
	Provider cluster.ID `json:"provider,omitempty"`
	Ready    bool       `json:"ready"`
	// Plan is Recreate, Replace, Move or Stay; empty if the pod is where it may be.
	Plan string `json:"plan,omitempty"`
	// Why says why the pod waits, or stays.
	Why      string              `json:"why,omitempty"`
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// Of explains a snapshot and the plan that was made from it. The caller adds what neither knows:
// name, consumer, policy and why new pods wait.
func Of(s placement.Snapshot, plan placement.Plan, again time.Duration) Namespace {
	placing := s.Placing
	if placing == nil {
		placing = s.Selected
	}
	n := Namespace{
		Selected: bound(s.Selected), Placing: bound(placing), Effective: s.Effective,
		Plan: Plan{
			Select: bound(plan.Select), Place: bound(plan.Place),
			Recreate: len(plan.Recreate), Replace: len(plan.Replace), Move: len(plan.Move), Stay: len(plan.Held),
			AgainSeconds: again.Seconds(),
		},
	}
	n.Providers, n.Pods = bound(providers(s, plan)), bound(pods(s, plan))
	n.Awaited = len(s.Copies) - n.Pods.Count
	for i := range n.Providers.Items {
		n.Providers.Items[i].LargestPod = resources.Bounded(n.Providers.Items[i].LargestPod)
	}
	for i := range n.Pods.Items {
		n.Pods.Items[i].Requests = resources.Bounded(n.Pods.Items[i].Requests)
	}
	return n
}

// bound returns the first of some items.
func bound[T any](all []T) List[T] {
	first := all[:min(len(all), MaxItems)]
	if first == nil {
		first = []T{}
	}
	return List[T]{Count: len(all), Items: first}
}

// providers returns those that get no new pods first, and within that in order of their IDs.
func providers(s placement.Snapshot, plan placement.Plan) []Provider {
	place := cluster.SetOf(plan.Place)
	all := make([]Provider, 0, len(s.Providers))
	for _, p := range s.Providers {
		known := Provider{ID: p.ID, NewPods: place[p.ID], LargestPod: p.Room, UnreachableSince: p.LostSince, Direct: p.Direct}
		if !known.NewPods {
			known.Why = unused(p)
		}
		if len(known.Why) == 0 && s.Level && len(place) > 0 && !known.NewPods {
			known.Why = []string{"the policy spreads replicas evenly, and fewer run elsewhere"}
		}
		all = append(all, known)
	}
	slices.SortFunc(all, func(a, b Provider) int {
		return cmp.Or(falseFirst(a.NewPods, b.NewPods), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// unused says why a provider gets no new pods.
func unused(p placement.Provider) []string {
	var why []string
	for _, r := range []struct {
		is   bool
		says string
	}{
		{p.Namespace == placement.Passed, "the namespace came from it, or through it"},
		{p.Namespace == placement.Refused, "it cannot create the namespace: it may have another one of that name"},
		{p.Scheduling == placement.Cordoned, "it is cordoned"},
		{p.Scheduling == placement.Closing || p.Scheduling == placement.Drained, "it is drained"},
		{p.Health == placement.Withdrawn, "it takes back what it offers"},
		{p.Health == placement.Ending, "the peering with it ends"},
		{!p.LostSince.IsZero(), "it is out of reach"},
		{p.Health == placement.NotReady, "it is not ready"},
		{p.Choice == placement.Unchosen, "the policy has not chosen it"},
		{p.Choice == placement.Barred, "the policy cannot decide at present, and may exclude it"},
		{p.ViewUnknown, "the consumer has not told that it can reach it"},
	} {
		if r.is {
			why = append(why, r.says)
		}
	}
	return why
}

// pods returns those that exist: first those that are on no provider, then those that are to
// leave theirs, and within that in order of their names.
func pods(s placement.Snapshot, plan placement.Plan) []Pod {
	planned, why := actions(plan)
	var room []corev1.ResourceList
	place := cluster.SetOf(plan.Place)
	for _, p := range s.Providers {
		if place[p.ID] {
			room = append(room, p.Room)
		}
	}
	all := make([]Pod, 0, len(s.Copies))
	for _, c := range s.Copies {
		if c.Pod == "" {
			continue // A copy that is counted as long as it may be replaced.
		}
		pod := Pod{
			Name: c.Pod, Workload: strings.ToValidUTF8(c.Workload[:min(len(c.Workload), maxWorkload)], ""), At: spot(c.Spot), Provider: c.Provider,
			Ready: c.Ready, Plan: planned[c.Pod], Why: why[c.Pod], Requests: c.Requests,
		}
		if pod.Why == "" {
			pod.Why = waits(c, room)
		}
		all = append(all, pod)
	}
	slices.SortFunc(all, func(a, b Pod) int {
		return cmp.Or(
			falseFirst(a.Provider != "", b.Provider != ""), falseFirst(a.Plan == "", b.Plan == ""), cmp.Compare(a.Name, b.Name),
		)
	})
	return all
}

// actions returns what is planned for pods, and why some stay.
func actions(plan placement.Plan) (planned, why map[string]string) {
	planned, why = map[string]string{}, map[string]string{}
	for action, names := range map[string][]string{"Recreate": plan.Recreate, "Replace": plan.Replace, "Move": plan.Move} {
		for _, name := range names {
			planned[name] = action
		}
	}
	for _, h := range plan.Held {
		planned[h.Pod], why[h.Pod] = "Stay", string(h.Reason)
	}
	return planned, why
}

// waits says why a pod is bound to no node; nothing if it is. The room is that of the providers
// on which new pods are placed.
func waits(c placement.Copy, room []corev1.ResourceList) string {
	switch {
	case c.Missing:
		return "it does not exist yet, or no more"
	case c.Leaving:
		return "it is being deleted"
	case c.Spot != placement.Nowhere:
		return ""
	case len(room) == 0:
		return "no provider takes new pods"
	case c.Outdated:
		return "it was made for other providers than those on which pods are placed now"
	case c.Pinned:
		return "its consumer has chosen its provider, which has not taken it yet"
	case !slices.ContainsFunc(room, func(largest corev1.ResourceList) bool { return placement.Fits(c.Requests, largest) }):
		return "no provider that takes new pods has room for what it requests"
	default:
		return "the scheduler has not placed it yet: a provider has room for what it requests"
	}
}

func spot(s placement.Spot) string {
	switch s {
	case placement.OnBroker:
		return "OnBroker"
	case placement.OnProvider:
		return "OnProvider"
	case placement.Nowhere:
	}
	return "Nowhere"
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/core/nodes"
)

// nodeOf returns what the node of a provider is called.
func nodeOf(provider string) string {
	return nodename.OfSlice("broker", cluster.Identity{ID: cluster.ID(provider), Name: provider})
}

func TestMake(t *testing.T) {
	a, b := nodeOf("a"), nodeOf("b")
	other := "liqo-another-" + nodename.Mark("broker", "a")
	now := time.Unix(10_000, 0)
	long, lately := now.Add(-time.Hour), now.Add(-time.Second)
	wants := func(all ...string) map[string]cluster.ID {
		wanted := map[string]cluster.ID{}
		for _, provider := range all {
			wanted[nodeOf(provider)] = cluster.ID(provider)
		}
		return wanted
	}
	for name, tc := range map[string]struct {
		reason string
		state  nodes.State
		ask    []string
		giveUp []string
		said   map[string]string // A part of what is said.
	}{
		"Wanted": {reason: "It asks for what the broker wants.", state: nodes.State{Told: true, Wanted: wants("a", "b")}, ask: []string{a, b}},
		"Kept": {
			reason: "It goes on asking.", state: nodes.State{Told: true, Wanted: wants("a"), Asked: map[string]nodes.Asked{a: {Pods: true}}},
			ask: []string{a},
		},
		"Silent": {
			reason: "Nobody knows what the broker wants.",
			state:  nodes.State{Asked: map[string]nodes.Asked{a: {}}, Unwanted: map[string]time.Time{a: long}},
		},
		"Unwanted": {
			reason: "What is not wanted for long goes.",
			state:  nodes.State{Told: true, Asked: map[string]nodes.Asked{a: {}, b: {}}, Unwanted: map[string]time.Time{a: long, b: long}},
			giveUp: []string{a, b},
		},
		"Lately": {
			reason: "It may be wanted again.",
			state:  nodes.State{Told: true, Asked: map[string]nodes.Asked{a: {}}, Unwanted: map[string]time.Time{a: lately}},
		},
		"Now": {reason: "Since this moment.", state: nodes.State{Told: true, Asked: map[string]nodes.Asked{a: {}}}},
		"Pods": {
			reason: "Pods keep it.",
			state:  nodes.State{Told: true, Asked: map[string]nodes.Asked{a: {Pods: true}}, Unwanted: map[string]time.Time{a: long}},
			said:   map[string]string{a: "kept for the pods"},
		},
		"Ending": {
			reason: "It goes already.",
			state:  nodes.State{Told: true, Asked: map[string]nodes.Asked{a: {Ending: true}}, Unwanted: map[string]time.Time{a: long}},
		},
		"EndingWanted": {
			reason: "It comes back when it is gone.",
			state:  nodes.State{Told: true, Wanted: wants("a"), Asked: map[string]nodes.Asked{a: {Ending: true}}},
			said:   map[string]string{a: "being deleted"},
		},
		"Taken": {
			reason: "What people have made stays theirs.",
			state:  nodes.State{Told: true, Wanted: wants("a", "b"), Taken: map[string]string{a: "ResourceSlice x/y"}},
			ask:    []string{b}, said: map[string]string{a: "taken by ResourceSlice x/y"},
		},
		"TakenByItself": {
			reason: "Liqo has made the node of what was asked for.",
			state: nodes.State{
				Told: true, Wanted: wants("a"), Asked: map[string]nodes.Asked{a: {}}, Taken: map[string]string{a: "VirtualNode x/y"},
			},
			ask: []string{a},
		},
		"Names": {
			reason: "The broker does not choose names.",
			state: nodes.State{Told: true, Wanted: map[string]cluster.ID{
				"worker-1": "a", "kube-system": "a", b: "a", "liqo-x-" + nodename.Mark("other", "a"): "a", a: "a",
			}},
			ask: []string{a}, said: map[string]string{
				"worker-1": "is not the name", "kube-system": "is not", b: "is not", "liqo-x-" + nodename.Mark("other", "a"): "is not",
			},
		},
		"TooLong": {
			reason: "A certificate has no room for it.",
			state: nodes.State{Told: true, Wanted: map[string]cluster.ID{
				"liqo-" + strings.Repeat("x", 29) + "-" + nodename.Mark("broker", "a"): "a",
			}},
			said: map[string]string{"liqo-" + strings.Repeat("x", 29) + "-" + nodename.Mark("broker", "a"): "is not"},
		},
		"NoID": {
			reason: "It is no cluster.", state: nodes.State{Told: true, Wanted: map[string]cluster.ID{nodeOf("A_b"): "A_b"}},
			said: map[string]string{nodeOf("A_b"): "no ID"},
		},
		"Itself": {
			reason: "It does not run its pods at itself.", state: nodes.State{Told: true, Wanted: wants("home")},
			said: map[string]string{nodeOf("home"): "this cluster itself"},
		},
		"Twice": {
			reason: "One node for each provider.", state: nodes.State{Told: true, Wanted: map[string]cluster.ID{a: "a", other: "a"}},
			ask: []string{a}, said: map[string]string{other: "has node " + a},
		},
		"TwiceAsked": {
			reason: "It keeps the one that it has.",
			state:  nodes.State{Told: true, Wanted: map[string]cluster.ID{a: "a", other: "a"}, Asked: map[string]nodes.Asked{other: {}}},
			ask:    []string{other}, said: map[string]string{a: "has node " + other},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.state
			s.Broker, s.Own, s.Now = "broker", "home", now
			p := nodes.Make(&s)
			if got := slices.Sorted(maps.Keys(p.Ask)); !slices.Equal(got, slices.Sorted(slices.Values(tc.ask))) {
				t.Errorf("%s\nit asks for %v, want %v", tc.reason, got, tc.ask)
			}
			for name, provider := range p.Ask {
				if s.Wanted[name] != provider {
					t.Errorf("%s\n%s is of %s", tc.reason, name, provider)
				}
			}
			if want := slices.Sorted(slices.Values(tc.giveUp)); !slices.Equal(p.GiveUp, want) {
				t.Errorf("%s\nit gives up %v, want %v", tc.reason, p.GiveUp, want)
			}
			if len(p.Said) != len(tc.said) {
				t.Errorf("%s\nit says %v, want %v", tc.reason, p.Said, tc.said)
			}
			for name, want := range tc.said {
				if !strings.Contains(p.Said[name], want) {
					t.Errorf("%s\nit says of %s %q, want %q", tc.reason, name, p.Said[name], want)
				}
			}
		})
	}
}

// TestForgets has a node that is not wanted, wanted again and not wanted: each time it is given up a while after.
func TestForgets(t *testing.T) {
	a, at := nodeOf("a"), time.Unix(10_000, 0)
	s := nodes.State{Broker: "broker", Own: "home", Told: true, Asked: map[string]nodes.Asked{a: {}}}
	for _, step := range []struct {
		reason string
		after  time.Duration
		told   bool
		wanted map[string]cluster.ID
		giveUp bool
	}{
		{"It is not wanted.", 0, true, nil, false},
		{"It is wanted again.", 50 * time.Second, true, map[string]cluster.ID{a: "a"}, false},
		{"It is not wanted any more.", 50 * time.Second, true, nil, false},
		{"For too short.", 59 * time.Second, true, nil, false},
		{"The broker says nothing.", time.Hour, false, nil, false},
		{"And the same again.", time.Second, true, nil, true},
	} {
		at = at.Add(step.after)
		s.Now, s.Told, s.Wanted = at, step.told, step.wanted
		p := nodes.Make(&s)
		s.Unwanted = p.Unwanted
		if got := len(p.GiveUp) > 0; got != step.giveUp {
			t.Errorf("%s\ngiven up: %t", step.reason, got)
		}
	}
}

// TestIsBounded has a broker that wants very many nodes: what is asked for stays, and no more than are looked at come.
func TestIsBounded(t *testing.T) {
	s := nodes.State{Broker: "broker", Own: "home", Told: true, Wanted: map[string]cluster.ID{}}
	for i := range 10 * nodes.MaxNodes {
		id := fmt.Sprintf("p%04d", i)
		s.Wanted[nodeOf(id)] = cluster.ID(id)
	}
	last := nodeOf(fmt.Sprintf("p%04d", 10*nodes.MaxNodes-1))
	s.Asked = map[string]nodes.Asked{last: {}}
	p := nodes.Make(&s)
	if _, asked := p.Ask[last]; !asked || len(p.Ask) != nodes.MaxNodes {
		t.Errorf("it asks for %d nodes, and goes on asking for one: %t", len(p.Ask), asked)
	}
	if len(p.Said) == 0 || len(p.Said) > nodes.MaxNodes || len(p.GiveUp) > 0 {
		t.Errorf("it says %d things, and gives up %v", len(p.Said), p.GiveUp)
	}
}

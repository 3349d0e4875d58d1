// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

var ids = []cluster.ID{"a", "b", "c"}

// usable returns providers that can take pods.
func usable(ids ...cluster.ID) []Provider {
	providers := make([]Provider, len(ids))
	for i, id := range ids {
		providers[i] = Provider{ID: id, Health: Ready, Namespace: Present, Room: cores(9)}
	}
	return providers
}

func TestLevel(t *testing.T) {
	ab := ids[:2]
	for name, tc := range map[string]struct {
		reason  string
		copies  []Copy
		placing []cluster.ID
		change  func(*Snapshot)
		place   []cluster.ID
		move    []string
	}{
		"Announce": {
			reason: "At first it is said where the pods go.", copies: copies("web", 4, "a"), placing: ab,
			place: []cluster.ID{"b"},
		},
		"Move": {
			reason: "Then one of the first workload moves.", copies: append(copies("web", 4, "a"), copies("db", 2, "a")...),
			placing: []cluster.ID{"b"}, place: []cluster.ID{"b"}, move: []string{"db-1"},
		},
		"OnItsWay": {
			reason: "Until it is there, no other one moves.", copies: copies("web", 4, "a", missing), placing: []cluster.ID{"b"},
			place: []cluster.ID{"b"},
		},
		"NotReady": {
			reason: "Nor before it is ready.", copies: copies("web", 4, "a", as("b"), func(c *Copy) { c.Provider, c.Ready = "b", false }),
			placing: ab, place: ab,
		},
		"Crashing": {
			reason: "Who does not get ready does not hold up the others.", placing: []cluster.ID{"b"}, place: []cluster.ID{"b"},
			move: []string{"web-1"}, copies: append(copies("db", 4, "a", notReady), copies("web", 2, "a")...),
		},
		"Level": {
			reason: "Half of them are there.", copies: copies("web", 4, "a", as("b"), as("b")), placing: []cluster.ID{"b"}, place: ab,
		},
		"Odd": {
			reason: "One more here or there is even.", copies: copies("web", 3, "a", as("b")), placing: ab, place: ab,
		},
		"Single": {
			reason: "One pod cannot be at two places.", copies: copies("web", 1, "a"), placing: ab, place: ab,
		},
		"Starting": {
			reason: "A workload that comes is placed by the scheduler.", copies: copies("web", 4, "a", waiting), placing: ab, place: ab,
		},
		"NoRoom": {
			reason: "There is no room.", copies: copies("web", 4,
				"a"), placing: ab, place: ab, change: func(s *Snapshot) { s.Providers[1].Room = nil },
		},
		"NoRoomAnyMore": {
			reason: "There was room, and a pod waits for it: it goes elsewhere.",
			copies: copies("web", 4, "a", waiting), placing: []cluster.ID{"b"}, place: ab, change: func(s *Snapshot) { s.Providers[1].Room = nil },
		},
		"TooLarge": {
			reason: "There is room for another pod, but for none of these.", copies: copies("web", 4, "a", func(c *Copy) { c.Requests = cores(10) }),
			placing: ab, place: ab,
		},
		"Pinned": {
			reason: "Nor does a workload move of which the consumer placed a pod.", copies: copies("web", 4, "a", func(c *Copy) { c.Pinned = true }),
			placing: ab, place: ab,
		},
		"StatefulSet": {
			reason: "Nor do pods whose volumes may be where they are.", copies: copies("web", 4, "a", func(c *Copy) { c.Sole = true }),
			placing: ab, place: ab,
		},
		"Declined": {
			reason: "A pod waited there in vain: it goes elsewhere.", copies: copies("web", 4, "a", waiting), placing: []cluster.ID{"b"}, place: ab,
			change: func(s *Snapshot) { s.Declined = map[string][]cluster.ID{"web": {"b"}} },
		},
		"DeclinedBefore": {
			reason: "Nor does another one go there, and other workloads do.", copies: append(copies("web", 4, "a"), copies("x", 4, "a")...),
			placing: []cluster.ID{"b"}, place: []cluster.ID{"b"}, move: []string{"x-3"},
			change: func(s *Snapshot) { s.Declined = map[string][]cluster.ID{"web": {"b"}} },
		},
		"AllAreShort": {
			reason: "Who has a copy nowhere yet does not hold up another workload.",
			copies: append(copies("db", 4, "a", waiting, waiting, waiting, waiting), copies("web", 4, "a")...), placing: []cluster.ID{"b"},
			place: []cluster.ID{"b"}, move: []string{"web-3"},
		},
		"OutOfReach": {
			reason: "The other one cannot be reached.", copies: copies("web", 4, "a"), placing: ab, place: ab,
			change: func(s *Snapshot) { s.Providers[1].Health = NotReady },
		},
		"NotThere": {
			reason: "The namespace is still to be made on the other one.", copies: copies("web", 4, "a", waiting),
			placing: ids[:1], place: ab, change: func(s *Snapshot) { s.Providers[1].Namespace = Absent },
		},
		"Unchosen": {
			reason: "The other one is no longer used: pods leave it, a few at a time.", copies: copies("web", 4, "b", as("a")), placing: ids[:1],
			change: func(s *Snapshot) { s.Providers[1].Choice = Unchosen }, place: ids[:1], move: []string{"web-1"},
		},
		"NotAsked": {
			reason: "Nobody asked for it.", copies: copies("web", 4, "a"), placing: ab, place: ab,
			change: func(s *Snapshot) { s.Level = false },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Providers: usable(ab...), Level: true, Selected: ab, Placing: tc.placing, Effective: true, Copies: tc.copies}
			if tc.change != nil {
				tc.change(&s)
			}
			got := Decide(now, s)
			want := Plan{Select: ab, Place: tc.place, Move: tc.move}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Plan{}, "Held")); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLevelEnds carries plans out, with a scheduler that picks any of the clusters
// that it may, until nothing changes: then the copies are even.
func TestLevelEnds(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := Snapshot{Providers: usable(ids...), Level: true, Selected: ids, Placing: ids, Effective: true}
		for w := range 1 + r.IntN(3) {
			s.Copies = append(s.Copies, copies(fmt.Sprintf("w%d", w), 1+r.IntN(9), ids[r.IntN(3)])...)
		}
		moved, quiet := 0, 0
		for step := 0; quiet < 2; step++ {
			if step > 500 {
				t.Fatalf("seed %d: it does not end: %+v", seed, s)
			}
			plan := Decide(now, s)
			quiet++
			if !slices.Equal(plan.Place, s.Placing) {
				s.Placing, quiet = plan.Place, 0
			}
			for i := range s.Copies {
				if c := &s.Copies[i]; c.Missing {
					c.Missing, c.Ready, c.Spot, c.Provider, quiet = false, true, OnProvider, s.Placing[r.IntN(len(s.Placing))], 0
				} else if slices.Contains(plan.Move, c.Pod) {
					missing(c)
					moved, quiet = moved+1, 0
				}
			}
		}
		if !slices.Equal(s.Placing, ids) || moved > len(s.Copies) {
			t.Errorf("seed %d: pods are placed on %v, and %d of %d were moved", seed, s.Placing, moved, len(s.Copies))
		}
		for _, copies := range byWorkload(s.Copies) {
			for _, id := range ids {
				n := 0
				for _, c := range copies {
					if c.Provider == id {
						n++
					}
				}
				if n < len(copies)/len(ids) {
					t.Errorf("seed %d: %d of %d copies on %s", seed, n, len(copies), id)
				}
			}
		}
	}
}

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
)

// said returns what is foreseen of each pod, in words.
func said(prospects []Prospect) []string {
	var all []string
	for _, p := range prospects {
		fate := map[Fate]string{Moves: "moves", Later: "later", Stays: "stays"}[p.Fate]
		all = append(all, fmt.Sprintf("%s %s %v %s", p.Pod, fate, p.Candidates, p.Reason))
	}
	return all
}

func needsTwo(c *Copy) { c.Requests = cores(2) }

func TestForesee(t *testing.T) {
	both := []cluster.ID{"a", "b"}
	tight := on
	tight.Room = cores(3)
	other := Provider{ID: "c", Health: Ready, Room: cores(9)} // The namespace is not there yet.
	ending, unchosen, cordoned, active := off, off, off, on
	ending.Health, unchosen.Choice, cordoned.Scheduling, active.ID = Ending, Unchosen, Cordoned, "a"
	unreached := off
	unreached.LostSince = now.Add(-20 * time.Second)
	grace := Failover{Mode: AfterGrace, Grace: 30 * time.Second}
	cases := map[string]struct {
		reason    string
		providers []Provider // off and on if nil.
		copies    []Copy
		rule      Failover
		change    func(*Snapshot)
		want      []string
	}{
		"Quarters": {
			reason: "Of a workload a quarter goes at once, and the others when those are ready.", copies: copies("web", 5, "a"),
			want: []string{
				"web-0 moves [b] ", "web-1 moves [b] ", "web-2 later [b] " + string(TooManyNotReady),
				"web-3 later [b] " + string(TooManyNotReady), "web-4 later [b] " + string(TooManyNotReady),
			},
		},
		"Last ready replica": {
			reason: "The only replica stays; the second of two goes after the first.",
			copies: slices.Concat(copies("db", 1, "a"), copies("web", 2, "a")),
			want:   []string{"db-0 stays [] " + string(LastReady), "web-0 moves [b] ", "web-1 later [b] " + string(LastReady)},
		},
		"Only replica that may move": {
			reason: "Unless a policy lets it go.", copies: copies("db", 1, "a"), change: func(s *Snapshot) { s.MoveSingletons = true },
			want: []string{"db-0 moves [b] "},
		},
		"Not ready elsewhere": {
			reason: "What is not ready elsewhere counts for nothing until it is.", copies: copies("web", 2, "a", as("b")),
			change: func(s *Snapshot) { s.Copies[0].Ready = false },
			want:   []string{"web-1 later [b] " + string(LastReady)},
		},
		"A moment ago": {
			reason: "Nor does one that is ready for a moment only.", copies: copies("web", 2, "a", as("b")),
			change: func(s *Snapshot) { s.Copies[0].ReadySince = now },
			want:   []string{"web-1 later [b] " + string(LastReady)},
		},
		"No room": {
			reason: "There is room for one of three, whichever workload it is of.", providers: []Provider{off, tight},
			copies: slices.Concat(copies("api", 2, "a", needsTwo, needsTwo), copies("web", 1, "a", needsTwo, needsTwo)),
			want: []string{
				"api-0 moves [b] ", "api-1 stays [] " + string(NoRoom), "web-0 stays [] " + string(LastReady),
			},
		},
		"Room of two": {
			reason: "Where there is room is said of each pod as it goes.", providers: []Provider{off, tight, other},
			copies: slices.Concat(copies("api", 1, "a", needsTwo, needsTwo), copies("web", 1, "a", needsTwo)),
			change: func(s *Snapshot) { s.MoveSingletons = true },
			want:   []string{"api-0 moves [b c] ", "web-0 moves [c] "},
		},
		"Nowhere to go": {
			reason: "There is no other provider.", providers: []Provider{off}, copies: copies("web", 4, "a"),
			want: []string{
				"web-0 stays [] " + string(NoTarget), "web-1 stays [] " + string(NoTarget), "web-2 stays [] " + string(NoTarget),
				"web-3 stays [] " + string(NoTarget),
			},
		},
		"Pinned": {
			reason: "What its consumer placed there goes back to the consumer.", copies: copies("web", 2, "a", func(c *Copy) { c.Pinned = true }),
			want: []string{"web-0 moves [] " + string(GoesBack), "web-1 later [b] " + string(LastReady)},
		},
		"Leaving": {
			reason: "What is being deleted goes in any case.", copies: copies("web", 2, "a", leaving),
			want: []string{"web-0 moves [b] " + string(GoesAlready), "web-1 later [b] " + string(LastReady)},
		},
		"Ending": {
			reason: "Where the peering ends, Liqo evicts.", providers: []Provider{ending, on}, copies: copies("db", 1, "a"),
			want: []string{"db-0 moves [] " + string(Evicted)},
		},
		"Out of reach": {
			reason: "What is lost is replaced after the grace, but for what must not run twice.", providers: []Provider{unreached, on}, rule: grace,
			copies: slices.Concat(copies("db", 1, "a", sole), copies("web", 1, "a", notReady)),
			want:   []string{"db-0 stays [] " + string(MayRunThere), "web-0 later [b] " + string(OutOfReach)},
		},
		"Unheard": {
			reason: "Nobody can end it.", copies: copies("web", 1, "a", unheard), want: []string{"web-0 stays [] " + string(NotHeardOf)},
		},
		"Unserved": {
			reason: "Nothing is done for the consumer.", copies: copies("web", 2, "a"), change: func(s *Snapshot) { s.Unserved = true },
			want: []string{"web-0 stays [] " + string(NotServed), "web-1 stays [] " + string(NotServed)},
		},
		"Undecided": {
			reason: "The policy has to decide first.", copies: copies("web", 1, "a"), change: func(s *Snapshot) { s.Undecided = true },
			want: []string{"web-0 stays [] " + string(NotDecided)},
		},
		"Policy": {
			reason: "A policy that does not choose it any more changes nothing.", providers: []Provider{unchosen, on}, copies: copies("web", 2, "a"),
			want: []string{"web-0 moves [b] ", "web-1 later [b] " + string(LastReady)},
		},
		"Cordoned": {
			reason: "From one that is cordoned nothing goes.", providers: []Provider{cordoned, on},
			copies: copies("web", 2, "a", func(c *Copy) { c.Pinned = true }),
			want:   []string{"web-0 stays [] " + string(Unordered), "web-1 stays [] " + string(Unordered)},
		},
		"Active": {
			reason: "Nor from one that people want.", providers: []Provider{active, on}, copies: copies("web", 1, "a"),
			want: []string{"web-0 stays [] " + string(Unordered)},
		},
		"Elsewhere": {reason: "Of other pods nothing is said.", copies: copies("web", 4, "b", missing, onBroker, waiting)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Providers: []Provider{off, on}, Selected: both, Effective: true, Copies: tc.copies, Failover: tc.rule}
			if tc.providers != nil {
				s.Providers = tc.providers
			}
			if tc.change != nil {
				tc.change(&s)
			}
			before := fmt.Sprintf("%+v", s)
			if diff := cmp.Diff(tc.want, said(Foresee(now, s, "a")), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nForesee(): -want +got\n%s", tc.reason, diff)
			}
			if after := fmt.Sprintf("%+v", s); after != before {
				t.Errorf("%s\nForesee() changes what it is given from\n%s\nto\n%s", tc.reason, before, after)
			}
		})
	}
}

// TestForeseen drains a provider in random worlds, and compares what was foreseen with what goes at once, and with what is left in the end.
func TestForeseen(t *testing.T) {
	fates := map[Fate]int{}
	for seed := range uint64(300) {
		w := newWorld(seed)
		for range w.rnd.IntN(60) {
			w.disturb()
			w.apply(Decide(now, w.s))
			w.advance()
		}
		for i := range w.s.Providers[1:] {
			w.s.Providers[1+i] = Provider{ID: w.s.Providers[1+i].ID, Health: Ready, Namespace: Present, Room: cores(9)}
		}
		w.s.Providers[1].Scheduling = Drained
		foreseen := map[Fate][]string{}
		for _, p := range Foresee(now, w.s, "a") {
			if p.Reason != GoesAlready {
				foreseen[p.Fate] = append(foreseen[p.Fate], p.Pod)
			}
			fates[p.Fate]++
		}

		// The selection comes first, and then pods go.
		onA := func(c Copy) bool { return c.Spot == OnProvider && c.Provider == "a" && !c.Leaving && !c.Missing }
		pods := func(is func(Copy) bool) []string {
			var names []string
			for _, c := range w.s.Copies {
				if is(c) {
					names = append(names, c.Pod)
				}
			}
			slices.Sort(names)
			return names
		}
		plan := Decide(now, w.s)
		for range maxSelections {
			w.s.Selected, w.s.Placing = plan.Select, append([]cluster.ID{}, plan.Place...)
			plan = Decide(now, w.s)
		}
		moves := pods(func(c Copy) bool { return onA(c) && slices.Contains(plan.Recreate, c.Pod) })
		for range 400 {
			w.apply(Decide(now, w.s))
			w.advance()
		}
		for what, sets := range map[string][2][]string{
			"moves": {foreseen[Moves], moves}, "stays": {foreseen[Stays], pods(onA)},
		} {
			if !slices.Equal(sets[0], sets[1]) {
				t.Fatalf("seed %d: %s: foreseen %v, and it is %v", seed, what, sets[0], sets[1])
			}
		}
	}
	for _, fate := range []Fate{Moves, Later, Stays} {
		if fates[fate] < 50 {
			t.Errorf("only %d pods have the fate %d", fates[fate], fate)
		}
	}
}

// TestForeseeAnything looks at what becomes of pods in any state, also in one that does not last: of each pod there one thing is said.
func TestForeseeAnything(t *testing.T) {
	for seed := range uint64(400) {
		s := anySnapshot(rand.New(rand.NewPCG(seed, 21)))
		for _, from := range []cluster.ID{"p0", "p1"} {
			var want, got []string
			for i := range s.Copies {
				if isOn(&s.Copies[i], from) {
					want = append(want, s.Copies[i].Pod)
				}
			}
			for _, p := range Foresee(now, s, from) {
				got = append(got, p.Pod)
				if p.Fate == Stays && (p.Reason == "" || len(p.Candidates) > 0) || slices.Contains(p.Candidates, from) {
					t.Errorf("seed %d: of a pod on %s is said %+v", seed, from, p)
				}
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: something is said of %v, and on %s are %v", seed, got, from, want)
			}
		}
	}
}

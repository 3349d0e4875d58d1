// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// asking returns copies whose pods request so many cores each.
func asking(n int64, copies []Copy) []Copy {
	for i := range copies {
		if !copies[i].Missing {
			copies[i].Requests = cores(n)
		}
	}
	return copies
}

// TestRoom has pods that are to leave provider a, and little room on b.
func TestRoom(t *testing.T) {
	const none = 0
	failed, pinned := lost(time.Hour), func(c *Copy) { c.Ready, c.Pinned = false, true }
	for name, tc := range map[string]struct {
		reason   string
		provider Provider
		room     int64 // Of b, in cores.
		more     []Provider
		copies   []Copy
		recreate []string
		replace  []string
		held     []Held
	}{
		"LostAndNoRoom": {
			reason:   "Pods of a lost provider stay if no other one has room for them: it may be the first to return.",
			provider: failed, room: 1, copies: asking(2, copies("web", 2, "a", notReady, notReady)),
			held: []Held{{"web-0", "a", NoRoom}, {"web-1", "a", NoRoom}},
		},
		"LostAndFull": {
			reason:   "Nor does a pod that requests nothing fit where no pod fits.",
			provider: failed, room: none, copies: copies("web", 1, "a", notReady), held: []Held{{"web-0", "a", NoRoom}},
		},
		"LostAndLittleRoom": {
			reason:   "As many are replaced as there is room for, of whichever workload.",
			provider: failed, room: 4, copies: slices.Concat(asking(1, copies("db", 2, "a", notReady, notReady)),
				asking(2, copies("web", 2, "a", notReady, notReady))),
			replace: []string{"db-0", "db-1", "web-0"}, held: []Held{{"web-1", "a", NoRoom}},
		},
		"SeveralTargets": {
			reason:   "The room of all is counted, and each for itself.",
			provider: failed, room: 3, more: []Provider{{ID: "c", Health: Ready, Namespace: Present, Room: cores(2)}},
			copies:  asking(2, copies("web", 3, "a", notReady, notReady, notReady)),
			replace: []string{"web-0", "web-1"}, held: []Held{{"web-2", "a", NoRoom}},
		},
		"LostAndPinned": {
			reason:   "Pods that go back to their consumer need no room.",
			provider: failed, room: none, copies: asking(2, copies("web", 2, "a", pinned, pinned)), replace: []string{"web-0", "web-1"},
		},
		"OffAndNoRoom": {
			reason:   "A copy that is ready does not go for one that could not start.",
			provider: off, room: 1, copies: asking(2, copies("web", 8, "a", notReady)),
			held: []Held{
				{"web-0", "a", NoRoom}, {"web-1", "a", NoRoom}, {"web-2", "a", NoRoom}, {"web-3", "a", NoRoom},
				{"web-4", "a", NoRoom}, {"web-5", "a", NoRoom}, {"web-6", "a", NoRoom}, {"web-7", "a", NoRoom},
			},
		},
		"OffAndLittleRoom": {
			reason:   "A quarter of eight are two, and there is room for one.",
			provider: off, room: 3, copies: asking(2, copies("web", 8, "a", as("b"), as("b"), as("b"), as("b"), as("b"), as("b"))),
			recreate: []string{"web-6"}, held: []Held{{"web-7", "a", NoRoom}},
		},
		"WaitingFirst": {
			reason:   "Who waits for the room comes first.",
			provider: off, room: 3, copies: slices.Concat(asking(2, copies("db", 1, "b", waiting)), asking(2, copies("web", 2, "a"))),
			held: []Held{{"web-0", "a", NoRoom}, {"web-1", "a", NoRoom}},
		},
		"MissingFirst": {
			reason:   "So does who is about to: it requests what the other copies request.",
			provider: off, room: 3, copies: asking(2, copies("web", 5, "b", missing, as("a"))), held: []Held{{"web-1", "a", NoRoom}},
		},
		"LeavingFirst": {
			reason:   "So does who is on its way from the provider that is left, and not who goes where it is.",
			provider: off, room: 5, copies: asking(2,
				slices.Concat(copies("db", 2, "a", leaving, func(c *Copy) { c.Provider, c.Leaving = "b", true }), copies("web", 2, "a"),
					copies("x", 2, "a"))),
			recreate: []string{"web-0"}, held: []Held{{"web-1", "a", LastReady}, {"x-0", "a", NoRoom}, {"x-1", "a", NoRoom}},
		},
		"OnBroker": {
			reason:   "A pod leaves the broker's own nodes in any case, and waits.",
			provider: off, room: none, copies: copies("web", 1, "", onBroker), recreate: []string{"web-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := on
			if b.Room = cores(tc.room); tc.room == none {
				b.Room = corev1.ResourceList{}
			}
			s := Snapshot{
				Providers: append([]Provider{tc.provider, b}, tc.more...), Selected: []cluster.ID{"a"}, Effective: true, Copies: tc.copies,
				Failover: Failover{Mode: AfterGrace, Grace: time.Second},
			}
			for range 2 { // Until it is said where new pods go.
				plan := Decide(now, s)
				s.Selected, s.Placing = plan.Select, plan.Place
			}
			got := Decide(now, s)
			want := Plan{Select: s.Selected, Place: s.Placing, Recreate: tc.recreate, Replace: tc.replace, Held: tc.held}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

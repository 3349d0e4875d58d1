// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// now is the time of all tests in which none passes.
var now = time.Unix(1_000_000, 0)

// lost returns a provider, a, that has been out of reach for some time.
func lost(since time.Duration) Provider {
	return Provider{ID: "a", Namespace: Present, LostSince: now.Add(-since)}
}

// gone returns a provider, a, whose peering ends, that consumers reach, and that is lost for the broker.
func gone(since time.Duration) Provider {
	p := lost(since)
	p.Health, p.Direct = Ending, true
	return p
}

func forgotten(c *Copy) { c.Ready, c.Leaving = false, true }
func sole(c *Copy)      { c.Ready, c.Sole = false, true }

func TestFailover(t *testing.T) {
	const grace = 30 * time.Second
	both, onlyB := []cluster.ID{"a", "b"}, []cluster.ID{"b"}
	after := Failover{Mode: AfterGrace, Grace: grace}
	failed := lost(grace)
	turnedOff := failed
	turnedOff.Scheduling = Drained
	turnedOffLater := turnedOff
	turnedOffLater.LostSince = now.Add(-10 * time.Second)
	cordoned := failed
	cordoned.Scheduling = Cordoned
	unchosen := failed
	unchosen.Choice = Unchosen
	future := lost(-time.Hour)
	direct := failed
	direct.Direct = true
	turnedOffDirect := turnedOff
	turnedOffDirect.Direct = true

	cases := map[string]struct {
		reason   string
		rule     Failover
		provider Provider
		copies   []Copy
		placing  []cluster.ID // Both if nil.
		noTarget bool
		want     Plan
	}{
		"Grace": {
			reason: "During the grace everything stays, and the plan says when it ends.",
			rule:   after, provider: lost(10 * time.Second), copies: copies("web", 2, "a", notReady, notReady),
			want: Plan{Select: both, Place: both, Wait: 20 * time.Second},
		},
		"Steer": {
			reason: "After it, new pods are led past the provider first.",
			rule:   after, provider: failed, copies: copies("web", 2, "a", notReady, notReady),
			want: Plan{Select: both, Place: onlyB},
		},
		"Replace": {
			reason: "Then all pods there are replaced at once, also those that are leaving and the only copies.",
			rule:   after, provider: failed, placing: onlyB,
			copies: slices.Concat(
				copies("db", 1, "a", notReady), copies("old", 1, "a", func(c *Copy) { c.Ready, c.Leaving = false, true }),
				copies("web", 4, "a", notReady, notReady, notReady, as("b"))),
			want: Plan{Select: both, Place: onlyB, Replace: []string{"db-0", "old-0", "web-0", "web-1", "web-2"}},
		},
		"Immediate": {
			reason: "Immediate has no grace.",
			rule:   Failover{Mode: Immediate, Grace: grace}, provider: lost(0), placing: onlyB, copies: copies("web", 1, "a", notReady),
			want: Plan{Select: both, Place: onlyB, Replace: []string{"web-0"}},
		},
		"Never": {
			reason: "Never is never.",
			rule:   Failover{Mode: Never, Grace: grace}, provider: lost(1000 * time.Hour), copies: copies("web", 2, "a", notReady, leaving),
			want: Plan{Select: both, Place: both},
		},
		"NeverTurnedOff": {
			reason: "A provider that people disable is left, also out of reach and with Never.",
			rule:   Failover{Mode: Never, Grace: grace}, provider: turnedOff, copies: copies("web", 1, "a", notReady), placing: onlyB,
			want: Plan{Select: both, Place: onlyB, Replace: []string{"web-0"}},
		},
		"TurnedOffGrace": {
			reason: "But not before the grace: its pods may be about to move in order.",
			rule:   Failover{Mode: Never, Grace: grace}, provider: turnedOffLater, copies: copies("web", 1, "a", notReady),
			want: Plan{Select: both, Place: both, Wait: 20 * time.Second, Held: []Held{{"web-0", "a", OutOfReach}}},
		},
		"Direct": {
			reason: "Pods that the consumer reaches without the broker serve, and stay.",
			rule:   Failover{Mode: Immediate}, provider: direct, copies: copies("web", 2, "a", notReady, notReady),
			want: Plan{Select: both, Place: both},
		},
		"DirectTurnedOff": {
			reason: "They do also if people turn the provider off: nobody would know when the last one goes.",
			rule:   after, provider: turnedOffDirect, copies: copies("web", 2, "a", notReady, notReady),
			want: Plan{Select: both, Place: both, Held: []Held{{"web-0", "a", OutOfReach}, {"web-1", "a", OutOfReach}}},
		},
		"Unchosen": {
			reason: "Nor does it matter that the provider is not chosen any more.",
			rule:   after, provider: unchosen, copies: copies("web", 1, "a", notReady), placing: onlyB,
			want: Plan{Select: both, Place: onlyB, Replace: []string{"web-0"}},
		},
		"Returned": {
			reason: "A pod that is ready again stays: the provider is back, and only its record is late.",
			rule:   after, provider: failed, copies: copies("web", 2, "a", as("a"), notReady), placing: onlyB,
			want: Plan{Select: both, Place: onlyB, Replace: []string{"web-1"}},
		},
		"Sole": {
			reason: "A pod that must not run twice stays, since it may still run.",
			rule:   after, provider: failed, copies: copies("db", 2, "a", sole, sole), placing: onlyB,
			want: Plan{Select: both, Place: onlyB, Held: []Held{{"db-0", "a", MayRunThere}, {"db-1", "a", MayRunThere}}},
		},
		"ReplaceSole": {
			reason: "Unless people want it replaced.",
			rule:   Failover{Mode: AfterGrace, Grace: grace, ReplaceSole: true}, provider: failed, copies: copies("db", 1, "a", sole),
			placing: onlyB, want: Plan{Select: both, Place: onlyB, Replace: []string{"db-0"}},
		},
		"Cordoned": {
			reason: "What runs on a provider that is cordoned is replaced as on any other.",
			rule:   after, provider: cordoned, copies: copies("web", 2, "a", notReady, notReady), placing: onlyB,
			want: Plan{Select: both, Place: onlyB, Replace: []string{"web-0", "web-1"}},
		},
		"CordonedNever": {
			reason: "Nobody gave it up.",
			rule:   Failover{Mode: Never}, provider: cordoned, copies: copies("web", 1, "a", notReady), placing: onlyB,
			want: Plan{Select: both, Place: onlyB},
		},
		"NoTarget": {
			reason: "Without another provider everything stays: this one may be the first to return.",
			rule:   after, provider: failed, copies: copies("web", 1, "a", notReady), placing: onlyB, noTarget: true,
			want: Plan{Select: both, Place: onlyB, Held: []Held{{"web-0", "a", NoTarget}}},
		},
		"Budget": {
			reason: "What is lost counts against the quarter that may be not ready.",
			rule:   after, provider: failed, placing: onlyB, copies: copies("web", 4, "a", notReady, onBroker, as("b"), as("b")),
			want: Plan{Select: both, Place: onlyB, Replace: []string{"web-0"}, Held: []Held{{"web-1", "", TooManyNotReady}}},
		},
		"PeeringEnds": {
			reason: "Where the peering ends, Liqo evicts what runs there.",
			rule:   Failover{Mode: Never}, provider: Provider{ID: "a", Namespace: Present, Health: Ending}, copies: copies("web", 4, "a", leaving),
			placing: onlyB, want: Plan{Select: both, Place: onlyB},
		},
		"PeeringEnding": {
			reason: "It has its time to do so, also when the tunnel is gone already.",
			rule:   Failover{Mode: Never}, provider: gone(10 * time.Second), copies: copies("web", 1, "a", notReady), placing: onlyB,
			want: Plan{Select: both, Place: onlyB, Wait: 20 * time.Second, Held: []Held{{"web-0", "a", OutOfReach}}},
		},
		"PeeringEnded": {
			reason: "What it could not end goes in any case: nothing comes back.",
			rule:   Failover{Mode: Never}, provider: gone(DefaultGrace), copies: copies("db", 2, "a", sole, forgotten), placing: onlyB,
			noTarget: true, want: Plan{Select: both, Place: onlyB, Replace: []string{"db-0", "db-1"}},
		},
		"ClockSetBack": {
			reason: "A loss in the future begins at this moment.",
			rule:   after, provider: future, copies: copies("web", 1, "a", notReady),
			want: Plan{Select: both, Place: both, Wait: grace},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			other := on
			if tc.noTarget {
				other.Namespace = Absent
			}
			s := Snapshot{
				Providers: []Provider{tc.provider, other}, Selected: both, Placing: tc.placing, Effective: true,
				Copies: tc.copies, Failover: tc.rule,
			}
			if diff := cmp.Diff(tc.want, Decide(now, s), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDecide(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEndingIsNoSubstitute disables one provider while the peering with another one ends, whose pods Liqo evicts at once.
func TestEndingIsNoSubstitute(t *testing.T) {
	ending := usable("e")[0]
	ending.Health = Ending
	for name, tc := range map[string]struct {
		reason   string
		copies   []Copy
		recreate []string
	}{
		"Last": {"The last copy that stays ready stays.", copies("web", 2, "a", as("e")), nil},
		"Some": {"A quarter of eight are two, and one of them goes already.", copies("web", 8, "a", as("e")), []string{"web-1"}},
	} {
		s := Snapshot{Providers: []Provider{off, on, ending}, Selected: []cluster.ID{"a", "b", "e"}, Effective: true, Copies: tc.copies}
		s.Placing = Decide(now, s).Place
		if diff := cmp.Diff(tc.recreate, Decide(now, s).Recreate, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s\n-want +got\n%s", name, tc.reason, diff)
		}
	}
}

// TestWithdrawn drains a provider that takes its offer back.
func TestWithdrawn(t *testing.T) {
	both, onlyB := []cluster.ID{"a", "b"}, []cluster.ID{"b"}
	s := Snapshot{
		Providers: []Provider{{ID: "a", Health: Withdrawn, Namespace: Present}, on},
		Selected:  both, Effective: true, Copies: copies("web", 4, "a"),
	}
	steps := []Plan{
		{Select: both, Place: onlyB},
		{
			Select: both, Place: onlyB, Recreate: []string{"web-0"},
			Held: []Held{{"web-1", "a", TooManyNotReady}, {"web-2", "a", TooManyNotReady}, {"web-3", "a", TooManyNotReady}},
		},
	}
	for i, want := range steps {
		if diff := cmp.Diff(want, Decide(now, s), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("step %d: -want +got\n%s", i, diff)
		}
		s.Placing = onlyB
	}
	s.Copies = copies("web", 4, "b")
	if diff := cmp.Diff(Plan{Select: onlyB, Place: onlyB}, Decide(now, s), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("when all have left: -want +got\n%s", diff)
	}
}

// TestMoveSingletons moves a workload of one copy if people want that.
func TestMoveSingletons(t *testing.T) {
	s := Snapshot{
		Providers: []Provider{off, on}, Selected: []cluster.ID{"a", "b"}, Effective: true, MoveSingletons: true,
		Copies: slices.Concat(copies("db", 1, "a"), copies("web", 2, "a", notReady)),
	}
	plan := Decide(now, s)
	if diff := cmp.Diff([]string{"db-0", "web-0"}, plan.Recreate); diff != "" {
		t.Errorf("Recreate: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]Held{{"web-1", "a", LastReady}}, plan.Held); diff != "" {
		t.Errorf("the last ready one of two moves: -want +got\n%s", diff)
	}
}

// losses is a world in which providers are lost and return.
type losses struct {
	*world

	now time.Time
}

func newLosses(seed uint64) *losses {
	w := &losses{world: newWorld(seed), now: now}
	w.s.Failover = Failover{Mode: Mode(w.rnd.IntN(3)), Grace: time.Duration(w.rnd.IntN(4)) * time.Second, ReplaceSole: w.rnd.IntN(2) == 0}
	for i := range w.s.Copies {
		w.s.Copies[i].Sole = w.rnd.IntN(4) == 0
	}
	return w
}

// tick lets a second pass, in which a provider may be lost or return. Its pods are
// not ready then, and ready again.
func (w *losses) tick() {
	w.now = w.now.Add(time.Second)
	p := &w.s.Providers[1+w.rnd.IntN(3)]
	if w.rnd.IntN(3) > 0 {
		return
	}
	if p.lost() {
		p.Health, p.LostSince = Ready, time.Time{}
	} else {
		p.Health, p.LostSince = NotReady, w.now
	}
	for i := range w.s.Copies {
		if c := &w.s.Copies[i]; c.Spot == OnProvider && c.Provider == p.ID {
			c.Ready = p.Health == Ready
		}
	}
}

// settle lets what is deleted go where there is somebody to end it, and the rest start.
func (w *losses) settle() {
	for i := range w.s.Copies {
		c := &w.s.Copies[i]
		at := slices.IndexFunc(w.s.Providers, func(p Provider) bool { return p.ID == c.Provider })
		switch reached := at < 0 || !w.s.Providers[at].lost(); {
		case !reached:
		case c.Leaving:
			*c = Copy{Pod: c.Pod, Workload: c.Workload, Sole: c.Sole, Missing: true}
		case c.Missing:
			c.Missing = false
		case c.Spot == Nowhere:
			w.place(c)
		default:
			c.Ready = true
		}
	}
}

// check fails unless a plan keeps what a rule of failover promises.
func (w *losses) check(t *testing.T, plan Plan, where string) {
	t.Helper()
	for _, pod := range plan.Replace {
		c := w.s.Copies[slices.IndexFunc(w.s.Copies, func(c Copy) bool { return c.Pod == pod })]
		p := w.s.Providers[slices.IndexFunc(w.s.Providers, func(p Provider) bool { return p.ID == c.Provider })]
		switch {
		case c.Ready:
			t.Fatalf("%s: %s is ready and is replaced", where, pod)
		case !p.lost():
			t.Fatalf("%s: %s is replaced on %s, which is back", where, pod, p.ID)
		case w.s.Failover.Mode == Never:
			t.Fatalf("%s: %s is replaced, and the mode is Never", where, pod)
		case w.s.Failover.Mode == AfterGrace && w.now.Sub(p.LostSince) < w.s.Failover.Grace:
			t.Fatalf("%s: %s is replaced during the grace", where, pod)
		case c.Sole && !w.s.Failover.ReplaceSole:
			t.Fatalf("%s: %s is replaced and may run twice", where, pod)
		}
	}
}

// TestFailoverInvariants walks random worlds in which providers are lost and return
// at any moment, and ends each with one provider lost for good.
func TestFailoverInvariants(t *testing.T) {
	replaced := 0
	for seed := range uint64(300) {
		w := newLosses(seed)
		for step := range 60 {
			where := fmt.Sprintf("seed %d step %d", seed, step)
			w.tick()
			before, _ := w.ready()
			plan := Decide(w.now, w.s)
			w.check(t, plan, where)
			replaced += len(plan.Replace)
			w.apply(plan)
			after, _ := w.ready()
			for name := range before {
				if after[name] == 0 {
					t.Fatalf("%s: plan %+v removed the last ready copy of %s", where, plan, name)
				}
			}
			w.settle()
		}
		w.loseForGood(t, seed)
	}
	if replaced < 1000 {
		t.Errorf("only %d pods were replaced: the worlds test little", replaced)
	}
}

// loseForGood loses provider a alone: within the grace and some steps nothing is on
// it any more that may be replaced.
func (w *losses) loseForGood(t *testing.T, seed uint64) {
	t.Helper()
	for i := range w.s.Providers {
		p := &w.s.Providers[i]
		p.Health, p.LostSince = Ready, time.Time{}
		if p.ID == "a" {
			p.Health, p.LostSince = NotReady, w.now
		}
	}
	for range 20 {
		for i := range w.s.Copies {
			if c := &w.s.Copies[i]; c.Provider == "a" {
				c.Ready = false
			}
		}
		w.now = w.now.Add(time.Second)
		w.apply(Decide(w.now, w.s))
		w.settle()
	}
	for _, c := range w.s.Copies {
		stays := w.s.Failover.Mode == Never || c.Sole && !w.s.Failover.ReplaceSole
		if c.Provider == "a" && !stays || c.Provider != "a" && !c.Ready {
			t.Fatalf("seed %d, rule %+v: %+v", seed, w.s.Failover, c)
		}
	}
}

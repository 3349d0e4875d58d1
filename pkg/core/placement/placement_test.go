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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// The providers of most tests: a has been disabled, b can take pods.
var (
	off    = Provider{ID: "a", Scheduling: Drained, Namespace: Present}
	on     = Provider{ID: "b", Health: Ready, Namespace: Present, Room: cores(9)}
	origin = Provider{ID: "consumer", Health: Ready, Namespace: Passed}
)

// cores returns so many, as what a provider has room for, or a pod requests.
func cores(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
}

// copies returns n ready copies of workload w on a provider, with the states
// that the changes make of the first ones.
func copies(w string, n int, on cluster.ID, changes ...func(*Copy)) []Copy {
	all := make([]Copy, n)
	for i := range all {
		all[i] = Copy{Pod: fmt.Sprintf("%s-%d", w, i), Workload: w, Spot: OnProvider, Provider: on, Ready: true}
		if i < len(changes) {
			changes[i](&all[i])
		}
	}
	return all
}

func notReady(c *Copy) { c.Ready = false }
func unheard(c *Copy)  { c.Ready, c.Unheard = false, true }
func leaving(c *Copy)  { c.Leaving = true }
func missing(c *Copy)  { c.Spot, c.Provider, c.Ready, c.Missing = Nowhere, "", false, true }
func outdated(c *Copy) { c.Spot, c.Provider, c.Ready, c.Outdated = Nowhere, "", false, true }
func waiting(c *Copy)  { c.Spot, c.Provider, c.Ready = Nowhere, "", false }
func onBroker(c *Copy) { c.Spot, c.Provider = OnBroker, "" }
func as(id cluster.ID) func(*Copy) {
	return func(c *Copy) { c.Provider = id }
}

func TestSelect(t *testing.T) {
	notReadyYet := Provider{ID: "c"}
	cases := map[string]struct {
		reason string
		in     Snapshot
		want   []cluster.ID
	}{
		"Usable": {
			reason: "All usable providers are selected, in order, the origin never.",
			in:     Snapshot{Providers: []Provider{on, origin, {ID: "a", Health: Ready}, notReadyYet}},
			want:   []cluster.ID{"a", "b"},
		},
		"OriginOnly": {
			reason: "If only the origin offers anything, nothing is selected.",
			in:     Snapshot{Providers: []Provider{origin}},
		},
		"NothingUsable": {
			reason: "Without a usable provider the selection stays, because an empty one selects all clusters.",
			in:     Snapshot{Providers: []Provider{off}, Selected: []cluster.ID{"a"}},
			want:   []cluster.ID{"a"},
		},
		"OutOfReach": {
			reason: "A provider that is only out of reach stays selected, or Liqo would remove what runs there.",
			in:     Snapshot{Providers: []Provider{on, notReadyYet}, Selected: []cluster.ID{"b", "c"}},
			want:   []cluster.ID{"b", "c"},
		},
		"DisabledWithPods": {
			reason: "A provider that is disabled stays selected while it runs pods.",
			in: Snapshot{Providers: []Provider{on, off}, Selected: []cluster.ID{"a", "b"},
				Copies: copies("web", 1, "a", leaving)},
			want: []cluster.ID{"a", "b"},
		},
		"DisabledNotClosed": {
			reason: "A provider on which pods can still land stays selected.",
			in:     Snapshot{Providers: []Provider{on, {ID: "a", Scheduling: Closing}}, Selected: []cluster.ID{"a", "b"}},
			want:   []cluster.ID{"a", "b"},
		},
		"Drained": {
			reason: "A provider that is disabled leaves when no pod is left.",
			in:     Snapshot{Providers: []Provider{on, off}, Selected: []cluster.ID{"a", "b"}, Copies: copies("web", 3, "b")},
			want:   []cluster.ID{"b"},
		},
		"Refusing": {
			reason: "A provider on which the namespace cannot be made leaves, though it is enabled.",
			in: Snapshot{
				Providers: []Provider{on, {ID: "a", Health: Ready, Namespace: Refused}},
				Selected:  []cluster.ID{"a", "b"}, Copies: copies("web", 1, "a", notReady),
			},
			want: []cluster.ID{"b"},
		},
		"AllRefusing": {
			reason: "If the namespace can be made on no provider, the selection stays.",
			in: Snapshot{
				Providers: []Provider{{ID: "a", Health: Ready, Namespace: Refused}}, Selected: []cluster.ID{"a"},
			},
			want: []cluster.ID{"a"},
		},
		"Gone": {
			reason: "A cluster that is no provider any more leaves.",
			in:     Snapshot{Providers: []Provider{on}, Selected: []cluster.ID{"b", "z"}},
			want:   []cluster.ID{"b"},
		},
		"GoneWithPods": {
			reason: "But not while pods are there: somebody may have deleted its record, which is made again at once.",
			in:     Snapshot{Providers: []Provider{on}, Selected: []cluster.ID{"b", "z"}, Copies: copies("web", 2, "z")},
			want:   []cluster.ID{"b", "z"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Decide(now, tc.in).Select
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDecide().Select: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMove(t *testing.T) {
	both := []cluster.ID{"a", "b"}
	cases := map[string]struct {
		reason    string
		providers []Provider
		copies    []Copy
		pending   bool // the selection is not in force
		recreate  []string
		held      []Held
	}{
		"InPlace": {
			reason: "Pods on an enabled provider stay.",
			copies: copies("web", 6, "b"),
		},
		"Refused": {
			reason:    "Pods that wait for a provider on which the namespace cannot be made go elsewhere, the others stay.",
			providers: []Provider{{ID: "a", Health: Ready, Namespace: Refused}, on},
			copies:    append(copies("web", 2, "a", notReady, notReady), copies("db", 1, "b")...),
			recreate:  []string{"web-0", "web-1"},
		},
		"Quarter": {
			reason:   "A quarter of the copies, rounded up, leaves at a time.",
			copies:   copies("web", 6, "a"),
			recreate: []string{"web-0", "web-1"},
			held: []Held{
				{"web-2", "a", TooManyNotReady}, {"web-3", "a", TooManyNotReady},
				{"web-4", "a", TooManyNotReady}, {"web-5", "a", TooManyNotReady},
			},
		},
		"Underway": {
			reason: "Copies that are leaving, missing or waiting count as not ready.",
			copies: copies("web", 9, "a", leaving, missing, waiting),
			held: []Held{
				{"web-3", "a", TooManyNotReady}, {"web-4", "a", TooManyNotReady}, {"web-5", "a", TooManyNotReady},
				{"web-6", "a", TooManyNotReady}, {"web-7", "a", TooManyNotReady}, {"web-8", "a", TooManyNotReady},
			},
		},
		"Unheard": {
			reason: "Pods may serve on a node that nobody reports on. They stay: all would go at once when somebody does.",
			copies: append(copies("web", 2, "a", unheard, unheard), copies("db", 2, "a", unheard)...),
			held:   []Held{{"db-0", "a", NotHeardOf}, {"db-1", "a", LastReady}, {"web-0", "a", NotHeardOf}, {"web-1", "a", NotHeardOf}},
		},
		"OnlyCopy": {
			reason: "A pod that is the only copy stays.",
			copies: copies("db", 1, "a"),
			held:   []Held{{"db-0", "a", LastReady}},
		},
		"LastReadyCopy": {
			reason: "The last ready copy stays while the others are not ready.",
			copies: copies("web", 8, "a", as("a"), missing, missing, missing, missing, missing, missing, missing),
			held:   []Held{{"web-0", "a", LastReady}},
		},
		"NotReady": {
			reason:   "A copy that is not ready can leave at once.",
			copies:   copies("web", 4, "a", notReady, as("b"), as("b"), as("b")),
			recreate: []string{"web-0"},
		},
		"WorkloadsApart": {
			reason:   "Each workload has a quarter of its own; one cannot stand in for another.",
			copies:   slices.Concat(copies("db", 1, "a"), copies("web", 2, "a")),
			recreate: []string{"web-0"},
			held:     []Held{{"db-0", "a", LastReady}, {"web-1", "a", LastReady}},
		},
		"NoTarget": {
			reason:    "Without a provider that has the namespace, nobody leaves.",
			providers: []Provider{off, {ID: "b", Health: Ready}},
			copies:    copies("web", 2, "a", notReady),
			held:      []Held{{"web-0", "a", NoTarget}, {"web-1", "a", NoTarget}},
		},
		"NotClosed": {
			reason:    "Nobody leaves while the scheduler could send them back.",
			providers: []Provider{{ID: "a", Namespace: Present, Scheduling: Closing}, on},
			copies:    copies("web", 2, "a"),
		},
		"NotEffective": {
			reason:  "Nobody leaves before the selection is in force.",
			copies:  copies("web", 2, "a"),
			pending: true,
		},
		"Outdated": {
			reason:   "Pods that wait with an older selection are recreated.",
			copies:   copies("web", 3, "b", outdated, waiting, outdated),
			recreate: []string{"web-0", "web-2"},
		},
		"OnBroker": {
			reason:   "Pods leave the broker's own nodes, a single one too.",
			copies:   slices.Concat(copies("one", 1, "", onBroker), copies("two", 2, "", onBroker, onBroker)),
			recreate: []string{"one-0", "two-0"},
			held:     []Held{{"two-1", "", LastReady}},
		},
		"OnNoNode": {
			reason:   "Nobody knows whether a pod serves that is on none of the virtual nodes: it may be on one that is gone.",
			copies:   slices.Concat(copies("web", 2, "a", as("a"), onBroker), copies("x", 8, "a", onBroker, onBroker)),
			recreate: []string{"web-1", "x-0", "x-1"},
			held: []Held{
				{"web-0", "a", LastReady}, {"x-2", "a", TooManyNotReady}, {"x-3", "a", TooManyNotReady}, {"x-4", "a", TooManyNotReady},
				{"x-5", "a", TooManyNotReady}, {"x-6", "a", TooManyNotReady}, {"x-7", "a", TooManyNotReady},
			},
		},
		"BackAtTheOrigin": {
			reason:    "Pods leave a cluster that the namespace came from.",
			providers: []Provider{origin, off, on},
			copies:    copies("web", 2, "b", as("consumer")),
			recreate:  []string{"web-0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Providers: []Provider{off, on}, Selected: both, Effective: !tc.pending, Copies: tc.copies}
			if tc.providers != nil {
				s.Providers = tc.providers
			}
			s.Selected = Decide(now, s).Select
			got := Decide(now, s)
			got.Select, got.Place = nil, nil
			want := Plan{Recreate: tc.recreate, Held: tc.held}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDecide(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// world is a namespace whose pods behave as on a broker: a deleted pod is recreated
// and placed on any selected provider that is not closed.
type world struct {
	rnd *rand.Rand
	s   Snapshot
}

func newWorld(seed uint64) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 0))}
	w.s.Effective = true
	w.s.Providers = []Provider{{ID: "origin", Health: Ready, Namespace: Passed}}
	for _, id := range []cluster.ID{"a", "b", "c"} {
		w.s.Providers = append(w.s.Providers, Provider{ID: id, Health: Ready, Namespace: Present, Room: cores(9)})
		w.s.Selected = append(w.s.Selected, id)
	}
	for i := range 1 + w.rnd.IntN(3) {
		w.s.Copies = append(w.s.Copies, copies(fmt.Sprint("w", i), 1+w.rnd.IntN(9), "a")...)
	}
	return w
}

// disturb changes something that people, networks or kubelets change.
func (w *world) disturb() {
	if p := &w.s.Providers[w.rnd.IntN(len(w.s.Providers))]; p.Namespace != Passed {
		switch w.rnd.IntN(4) {
		case 0:
			p.Choice = Unchosen - p.Choice
		case 3:
			p.Scheduling = map[Scheduling]Scheduling{Active: Closing, Closing: Active, Drained: Active}[p.Scheduling]
		case 1:
			p.Health = Ready - p.Health
		default:
			if p.Scheduling == Closing {
				p.Scheduling = Drained
			}
		}
	}
	c := &w.s.Copies[w.rnd.IntN(len(w.s.Copies))]
	if c.Spot == OnProvider {
		c.Ready = w.rnd.IntN(3) > 0
	}
}

// advance lets a pod that leaves go, then be missing, be placed and get ready.
func (w *world) advance() {
	for i := range w.s.Copies {
		c := &w.s.Copies[i]
		switch {
		case w.rnd.IntN(2) == 0:
		case c.Leaving:
			*c = Copy{Pod: c.Pod, Workload: c.Workload, Missing: true}
		case c.Missing:
			c.Missing = false
		case c.Spot == Nowhere:
			w.place(c)
		case c.Ready:
			c.ReadySince = time.Time{}
		default:
			c.Ready, c.ReadySince = true, now
		}
	}
}

func (w *world) place(c *Copy) {
	var open []cluster.ID
	for _, p := range w.s.Providers {
		if slices.Contains(w.s.Placing, p.ID) && p.Scheduling != Drained && p.Health == Ready {
			open = append(open, p.ID)
		}
	}
	if len(open) > 0 {
		c.Spot, c.Provider, c.Outdated = OnProvider, open[w.rnd.IntN(len(open))], false
	}
}

func (w *world) apply(p Plan) {
	if len(p.Select) > 0 {
		w.s.Selected, w.s.Placing = p.Select, p.Place
	}
	for i := range w.s.Copies {
		c := &w.s.Copies[i]
		switch {
		case slices.Contains(p.Replace, c.Pod):
			*c = Copy{Pod: c.Pod, Workload: c.Workload, Sole: c.Sole, Missing: true}
		case slices.Contains(p.Recreate, c.Pod) || slices.Contains(p.Move, c.Pod):
			c.Leaving = true
		}
	}
}

// ready counts the copies that can be counted on, and all copies, of each workload.
func (w *world) ready() (ready, all map[string]int) {
	ready, all = map[string]int{}, map[string]int{}
	for _, c := range w.s.Copies {
		all[c.Workload]++
		if c.settled(now) {
			ready[c.Workload]++
		}
	}
	return ready, all
}

// TestInvariants walks random worlds: whatever happens, no plan removes the last
// ready copy or more than a quarter, selects the origin, or selects nothing.
func TestInvariants(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(seed)
		for step := range 60 {
			w.disturb()
			before, all := w.ready()
			plan := Decide(now, w.s)
			w.apply(plan)
			after, _ := w.ready()
			for name, n := range before {
				if after[name] == 0 {
					t.Fatalf("seed %d step %d: plan %+v removed the last ready copy of %s", seed, step, plan, name)
				}
				if gone := all[name] - after[name]; after[name] < n && gone > (all[name]+3)/4 {
					t.Fatalf("seed %d step %d: plan %+v leaves %d of %d copies of %s not ready", seed, step, plan, gone, all[name], name)
				}
			}
			if len(plan.Select) == 0 || slices.Contains(plan.Select, "origin") {
				t.Fatalf("seed %d step %d: selected %v", seed, step, plan.Select)
			}
			w.advance()
		}
	}
}

// TestSettling has two copies, one of which has moved to b: the other one follows when
// the consumer had time to learn of the first.
func TestSettling(t *testing.T) {
	both := []cluster.ID{"a", "b"}
	for served, want := range map[time.Duration]Plan{
		-time.Hour: {Held: []Held{{"web-1", "a", LastReady}}, Wait: settle}, // The clock was set back.
		0:          {Held: []Held{{"web-1", "a", LastReady}}, Wait: settle},
		settle / 2: {Held: []Held{{"web-1", "a", LastReady}}, Wait: settle / 2},
		settle:     {Recreate: []string{"web-1"}},
		3 * settle: {Recreate: []string{"web-1"}},
	} {
		moved := func(c *Copy) { c.Provider, c.ReadySince = "b", now.Add(-served) }
		s := Snapshot{
			Providers: []Provider{off, on}, Selected: both, Placing: both, Effective: true, Copies: copies("web", 2, "a", moved),
		}
		want.Select, want.Place = both, both
		if diff := cmp.Diff(want, Decide(now, s), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("ready for %s: -want +got\n%s", served, diff)
		}
		s.Providers[0] = usable("a")[0]
		s.Level, s.Copies = true, append(s.Copies, copies("web", 5, "a")[2:]...)
		s.Placing = Decide(now, s).Place
		if got := Decide(now, s); len(got.Move) > 0 != (served >= settle) || got.Wait != want.Wait && served < settle {
			t.Errorf("ready for %s: plan %+v to even out", served, got)
		}
	}
}

// TestPolicy has two providers, of which a policy chose b.
func TestPolicy(t *testing.T) {
	unchosen := Provider{ID: "a", Health: Ready, Namespace: Present, Choice: Unchosen}
	outOfReach := unchosen
	outOfReach.Health = NotReady
	cordoned := Provider{ID: "a", Health: Ready, Scheduling: Cordoned, Namespace: Present, Room: cores(9)}
	cordonedUnchosen, cordonedWithdrawn := cordoned, cordoned
	cordonedUnchosen.Choice, cordonedWithdrawn.Health = Unchosen, Withdrawn
	unreached := Provider{ID: "a", Health: Ready, Namespace: Present, Room: cores(9), ViewUnknown: true}
	unreachedUnchosen, drainedB := unreached, Provider{ID: "b", Health: Ready, Scheduling: Drained, Namespace: Present}
	closingB, unreachedCordoned := drainedB, unreached
	unreachedUnchosen.Choice, closingB.Scheduling, unreachedCordoned.Scheduling = Unchosen, Closing, Cordoned
	both, onlyA, onlyB := []cluster.ID{"a", "b"}, []cluster.ID{"a"}, []cluster.ID{"b"}
	cases := map[string]struct {
		reason string
		in     Snapshot
		want   Plan
	}{
		"New": {
			reason: "Only chosen providers are selected.",
			in:     Snapshot{Providers: []Provider{unchosen, on}},
			want:   Plan{Select: onlyB, Place: onlyB},
		},
		"PodsThere": {
			reason: "What runs on another provider stays until new pods go elsewhere.",
			in:     Snapshot{Providers: []Provider{unchosen, on}, Selected: both, Copies: copies("web", 4, "a")},
			want:   Plan{Select: both, Place: onlyB},
		},
		"Move": {
			reason: "Then it moves, a quarter at a time, and what is not ready at once.",
			in: Snapshot{Providers: []Provider{unchosen, on}, Selected: both, Placing: onlyB, Copies: slices.Concat(
				copies("web", 4, "a"), copies("slow", 4, "a", notReady), copies("db", 1, "a"))},
			want: Plan{
				Select: both, Place: onlyB, Recreate: []string{"slow-0"}, Move: []string{"web-0"},
				Held: []Held{
					{"db-0", "a", LastReady}, {"slow-1", "a", TooManyNotReady}, {"slow-2", "a", TooManyNotReady}, {"slow-3", "a", TooManyNotReady},
					{"web-1", "a", TooManyNotReady}, {"web-2", "a", TooManyNotReady}, {"web-3", "a", TooManyNotReady},
				},
			},
		},
		"Moved": {
			reason: "A provider that is not chosen leaves when no pod is left and none can come.",
			in:     Snapshot{Providers: []Provider{unchosen, on}, Selected: both, Placing: onlyB, Copies: copies("web", 2, "b")},
			want:   Plan{Select: onlyB, Place: onlyB},
		},
		"PodsCanCome": {
			reason: "Nor does it leave while new pods can be placed on it.",
			in:     Snapshot{Providers: []Provider{unchosen, on}, Selected: both, Copies: copies("web", 2, "b")},
			want:   Plan{Select: both, Place: onlyB},
		},
		"OutOfReach": {
			reason: "Pods on a provider that is out of reach are not moved because another one is chosen.",
			in:     Snapshot{Providers: []Provider{outOfReach, on}, Selected: both, Placing: onlyB, Copies: copies("web", 4, "a", notReady)},
			want:   Plan{Select: both, Place: onlyB},
		},
		"ChosenIsDown": {
			reason: "If no chosen provider can be used, what runs stays, and new pods wait.",
			in: Snapshot{Providers: []Provider{unchosen, {ID: "b"}}, Selected: []cluster.ID{"a"}, Placing: []cluster.ID{},
				Copies: copies("web", 4, "a")},
			want: Plan{Select: []cluster.ID{"a"}, Held: []Held{
				{"web-0", "a", NoTarget}, {"web-1", "a", NoTarget}, {"web-2", "a", NoTarget}, {"web-3", "a", NoTarget},
			}},
		},
		"Undecided": {
			reason: "While a policy has not chosen, what runs stays and says why, and new pods wait.",
			in: Snapshot{Providers: []Provider{off, unchosen}, Undecided: true, Selected: both, Placing: onlyB,
				Copies: copies("web", 2, "a", outdated)},
			want: Plan{Select: both, Held: []Held{{"web-1", "a", NotDecided}}},
		},
		"UndecidedClosed": {
			reason: "Pods that were made before, and wait for a provider, wait for the policy too.",
			in: Snapshot{Providers: []Provider{off, unchosen}, Undecided: true, Selected: both, Placing: []cluster.ID{},
				Copies: copies("web", 3, "a", outdated, waiting)},
			want: Plan{Select: both, Recreate: []string{"web-0"}, Held: []Held{{"web-2", "a", NotDecided}}},
		},
		"UndecidedOnBroker": {
			reason: "Nor do pods run on the broker meanwhile, whether or not their namespace was offloaded before.",
			in:     Snapshot{Providers: []Provider{unchosen}, Undecided: true, Copies: copies("web", 2, "", onBroker, missing)},
			want:   Plan{Recreate: []string{"web-0"}},
		},
		"NothingUsableOnBroker": {
			reason: "Nor while no provider can be used.",
			in:     Snapshot{Providers: []Provider{off}, Copies: copies("web", 1, "", onBroker)},
			want:   Plan{Recreate: []string{"web-0"}},
		},
		"Unknown": {
			reason: "No new pods go to a cluster that is no provider at this moment, and none leave it.",
			in:     Snapshot{Providers: []Provider{on}, Selected: both, Placing: onlyB, Copies: copies("web", 2, "a")},
			want:   Plan{Select: both, Place: onlyB},
		},
		"Barred": {
			reason: "What a policy may exclude keeps what runs there and gets nothing new; the others do.",
			in: Snapshot{Providers: []Provider{{ID: "a", Health: Ready, Namespace: Present, Choice: Barred}, on}, Selected: both, Placing: onlyB,
				Copies: copies("web", 4, "a")},
			want: Plan{Select: both, Place: onlyB},
		},
		"AllBarred": {
			reason: "If it may exclude all, new pods wait.",
			in: Snapshot{Providers: []Provider{{ID: "b", Health: Ready, Namespace: Present, Choice: Barred}}, Selected: onlyB, Placing: onlyB,
				Copies: copies("web", 4, "b")},
			want: Plan{Select: onlyB},
		},
		"ViewUnknown": {
			reason: "What the consumer would show wrongly keeps what runs there and gets nothing new; the others do.",
			in: Snapshot{Providers: []Provider{unreached, on}, NeedsViews: true, Selected: both, Placing: onlyB,
				Copies: copies("web", 4, "a", notReady)},
			want: Plan{Select: both, Place: onlyB},
		},
		"ViewUnknownWaits": {
			reason: "A pod that waits, and may go there, is made again for the others.",
			in: Snapshot{Providers: []Provider{unreached, on}, NeedsViews: true, Selected: both, Placing: onlyB,
				Copies: copies("web", 1, "", outdated)},
			want: Plan{Select: both, Place: onlyB, Recreate: []string{"web-0"}},
		},
		"ViewUnknownEmpty": {
			reason: "A silent consumer takes no namespace away, also where nothing runs.",
			in: Snapshot{Providers: []Provider{unreached, on}, NeedsViews: true, Selected: both, Placing: onlyB,
				Copies: copies("web", 2, "b")},
			want: Plan{Select: both, Place: onlyB},
		},
		"ViewUnknownNew": {
			reason: "No namespace comes to it.", in: Snapshot{Providers: []Provider{unreached, on}, NeedsViews: true},
			want: Plan{Select: onlyB, Place: onlyB},
		},
		"ViewTold": {
			reason: "It does when the consumer has told that it can reach the provider.",
			in: Snapshot{Providers: []Provider{{ID: "a", Health: Ready, Room: cores(9)}, on}, NeedsViews: true, Selected: onlyB,
				Copies: copies("web", 2, "b")},
			want: Plan{Select: both, Place: both},
		},
		"AllViewsUnknown": {
			reason: "Of a consumer that is silent all stays selected, and new pods wait.",
			in: Snapshot{Providers: []Provider{unreached}, NeedsViews: true, Selected: onlyA, Placing: []cluster.ID{},
				Copies: copies("web", 4, "a", waiting)},
			want: Plan{Select: onlyA},
		},
		"NoView": {
			reason: "Of one that never told anything nothing is selected, because an empty selection would be all.",
			in:     Snapshot{Providers: []Provider{unreached}, NeedsViews: true},
		},
		"ViewUnknownDrained": {
			reason: "What has to leave its provider does not go there.",
			in: Snapshot{Providers: []Provider{drainedB, unreached}, NeedsViews: true, Selected: both, Placing: onlyB,
				Copies: copies("web", 2, "b")},
			want: Plan{Select: both},
		},
		"ViewUnknownDrainedHeld": {
			reason: "It stays meanwhile.",
			in: Snapshot{Providers: []Provider{drainedB, unreached}, NeedsViews: true, Selected: both, Placing: []cluster.ID{},
				Copies: copies("web", 2, "b")},
			want: Plan{Select: both, Held: []Held{{"web-0", "b", NoTarget}, {"web-1", "b", NoTarget}}},
		},
		"ViewUnknownClosing": {
			reason: "Nothing new goes to what people want empty, because others are not reached; not selected ones either.",
			in: Snapshot{Providers: []Provider{closingB, unreached}, NeedsViews: true, Selected: onlyB, Placing: onlyB,
				Copies: copies("web", 1, "", outdated)},
			want: Plan{Select: onlyB},
		},
		"ViewUnknownClosingWaits": {
			reason: "A pod that waits, and may go there, is made again.",
			in: Snapshot{Providers: []Provider{closingB, unreached}, NeedsViews: true, Selected: onlyB, Placing: []cluster.ID{},
				Copies: copies("web", 1, "", outdated)},
			want: Plan{Select: onlyB, Recreate: []string{"web-0"}},
		},
		"ViewUnknownClosingLost": {
			reason: "Whatever else is the matter with the others.",
			in: Snapshot{Providers: []Provider{closingB, {ID: "a", Namespace: Present, ViewUnknown: true, LostSince: now}},
				NeedsViews: true, Selected: both, Placing: onlyB},
			want: Plan{Select: both},
		},
		"ClosingNoProvider": {
			reason: "Also while one of them is no provider.",
			in: Snapshot{Providers: []Provider{closingB}, NeedsViews: true, Selected: both, Placing: onlyB,
				Copies: copies("web", 1, "a")},
			want: Plan{Select: both},
		},
		"ViewUnknownClosingCordoned": {
			reason: "Others that get nothing by other wishes are not waited for.",
			in: Snapshot{Providers: []Provider{closingB, unreachedCordoned}, NeedsViews: true, Selected: both, Placing: onlyB,
				Copies: copies("web", 2, "b")},
			want: Plan{Select: both, Place: onlyB},
		},
		"ViewUnknownClosingUnchosen": {
			reason: "Nor by that of a policy.",
			in:     Snapshot{Providers: []Provider{closingB, unreachedUnchosen}, NeedsViews: true, Selected: onlyB, Placing: onlyB},
			want:   Plan{Select: onlyB, Place: onlyB},
		},
		"ViewUnknownClosingRefused": {
			reason: "Nor those that never get the namespace.",
			in: Snapshot{Providers: []Provider{closingB, {ID: "a", Health: Ready, Namespace: Refused, ViewUnknown: true}},
				NeedsViews: true, Selected: onlyB, Placing: onlyB},
			want: Plan{Select: onlyB, Place: onlyB},
		},
		"Closing": {
			reason: "Where nobody is asked, the last one takes pods until the scheduler follows.",
			in:     Snapshot{Providers: []Provider{closingB, {ID: "a", Namespace: Present}}, Selected: onlyB, Copies: copies("web", 2, "b")},
			want:   Plan{Select: onlyB, Place: onlyB},
		},
		"UnreachedUnchosen": {
			reason: "What a policy has not chosen is left, whatever the consumer tells.",
			in: Snapshot{Providers: []Provider{unreachedUnchosen, on}, NeedsViews: true, Selected: both, Placing: onlyB,
				Copies: copies("web", 1, "a", notReady)},
			want: Plan{Select: both, Place: onlyB, Recreate: []string{"web-0"}},
		},
		"NoProviderNoView": {
			reason: "A cluster that is no provider at this moment is not reached either, also if no other one is left.",
			in:     Snapshot{NeedsViews: true, Selected: onlyA, Copies: copies("web", 1, "a")},
			want:   Plan{Select: onlyA},
		},
		"NoProvider": {
			reason: "Where nobody is asked, it is all that is left for new pods.", in: Snapshot{Selected: onlyA, Copies: copies("web", 1, "a")},
			want: Plan{Select: onlyA, Place: onlyA},
		},
		"Cordoned": {
			reason: "What runs on a provider that is cordoned stays, and nothing new goes there.",
			in:     Snapshot{Providers: []Provider{cordoned, on}, Selected: both, Copies: copies("web", 4, "a", notReady)},
			want:   Plan{Select: both, Place: onlyB},
		},
		"CordonedEmpty": {
			reason: "What the namespace has there beside pods stays too.",
			in:     Snapshot{Providers: []Provider{cordoned, on}, Selected: both, Placing: onlyB, Copies: copies("web", 2, "b")},
			want:   Plan{Select: both, Place: onlyB},
		},
		"CordonedNew": {
			reason: "No namespace comes to it.",
			in:     Snapshot{Providers: []Provider{cordoned, on}},
			want:   Plan{Select: onlyB, Place: onlyB},
		},
		"AllCordoned": {
			reason: "If all are cordoned, new pods wait.",
			in: Snapshot{
				Providers: []Provider{cordoned}, Selected: []cluster.ID{"a"}, Placing: []cluster.ID{}, Copies: copies("web", 4, "a", waiting),
			},
			want: Plan{Select: []cluster.ID{"a"}},
		},
		"CordonedUnchosen": {
			reason: "A policy that prefers others does not move what is to stay.",
			in:     Snapshot{Providers: []Provider{cordonedUnchosen, on}, Selected: both, Placing: onlyB, Copies: copies("web", 4, "a")},
			want:   Plan{Select: both, Place: onlyB},
		},
		"CordonedWithdrawn": {
			reason: "What the provider itself takes back goes.",
			in:     Snapshot{Providers: []Provider{cordonedWithdrawn, on}, Selected: both, Placing: onlyB, Copies: copies("web", 1, "a", notReady)},
			want:   Plan{Select: both, Place: onlyB, Recreate: []string{"web-0"}},
		},
		"Unserved": {
			reason: "A consumer that is not served keeps what runs, which says why, and gets nothing new.",
			in: Snapshot{Providers: []Provider{off, unchosen}, Unserved: true, Selected: both, Placing: onlyB,
				Copies: copies("web", 2, "a", outdated)},
			want: Plan{Select: both, Held: []Held{{"web-1", "a", NotServed}}},
		},
		"UnservedNew": {
			reason: "Nothing is selected for it.",
			in:     Snapshot{Providers: []Provider{{ID: "a", Health: Ready}}, Unserved: true},
		},
		"UndecidedNew": {
			reason: "Nothing is selected before a policy has chosen.",
			in:     Snapshot{Providers: []Provider{unchosen}, Undecided: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.in.Effective = true
			if diff := cmp.Diff(tc.want, Decide(now, tc.in), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDecide(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPolicyIsFollowed lets a policy choose another provider in random worlds: in
// the end the first runs only pods that are the only copy of their workload, and is
// selected only if it does.
func TestPolicyIsFollowed(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(seed)
		w.s.Providers[1].Choice = Unchosen
		for range 400 {
			w.apply(Decide(now, w.s))
			w.advance()
		}
		_, all := w.ready()
		alone := false
		for _, c := range w.s.Copies {
			if c.Provider == "a" && all[c.Workload] > 1 {
				t.Fatalf("seed %d: %s is still there", seed, c.Pod)
			}
			alone = alone || c.Provider == "a"
		}
		if slices.Contains(w.s.Selected, "a") != alone {
			t.Fatalf("seed %d: selected %v, only copies left: %v", seed, w.s.Selected, alone)
		}
	}
}

// TestDrainEnds disables a provider in random worlds: in the end it runs only
// pods that are the only copy of their workload.
func TestDrainEnds(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(seed)
		w.s.Providers[1].Scheduling = Drained
		for range 400 {
			w.apply(Decide(now, w.s))
			w.advance()
		}
		_, all := w.ready()
		alone := false
		for _, c := range w.s.Copies {
			if c.Provider == "a" && all[c.Workload] > 1 {
				t.Fatalf("seed %d: %s is still there", seed, c.Pod)
			}
			alone = alone || c.Provider == "a"
		}
		if slices.Contains(w.s.Selected, "a") != alone {
			t.Fatalf("seed %d: selected %v, only copies left: %v", seed, w.s.Selected, alone)
		}
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package views_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
)

// world is a consumer with Liqo, in which anything may happen at any time.
type world struct {
	*testing.T
	seed uint64
	rand *rand.Rand
	// own is the broker's network, the pool what views are made of, and remaps under what else Liqo shows these.
	own          netip.Prefix
	pool, remaps []netip.Prefix

	now     time.Time
	granted map[string]netip.Prefix
	// What Kubernetes keeps.
	list       []netip.Prefix
	record     views.Record
	generation int64
	// What Liqo has decided, of which generation, and which prefix each network gets.
	decided int64
	seen    map[netip.Prefix]netip.Prefix
	status  []netip.Prefix // What it has written of that last, in the order of the list.
	// What virtual kubelets have read: nil if Liqo was deciding.
	kubelets map[string]*read
	makes    int                         // So many were made.
	shown    map[netip.Addr]netip.Prefix // With the network in which the pod is.
	looked   time.Time
	at       int64 // The generation at which the agent has looked last, and since when.
	since    time.Time
	last     views.Plan
	// acknowledged is what the agent acknowledged last.
	acknowledged map[string]netip.Prefix
	known        map[netip.Prefix]netip.Prefix // What the agent has seen of seen.
	held         int                           // So much was acknowledged while Liqo decided.
}

type read struct {
	made  time.Time
	ready bool
	table map[netip.Prefix]netip.Prefix
}

func (w *world) write(list []netip.Prefix) {
	if !slices.Equal(w.list, list) {
		w.list, w.known = slices.Clone(list), nil
		w.generation++
	}
}

// state returns what the agent sees.
func (w *world) state() *views.State {
	s := &views.State{
		Granted: w.granted, Generation: w.generation, Decided: w.decided == w.generation, Record: w.record, Looked: w.looked, Now: w.now,
		Observed: w.decided, Acknowledged: w.acknowledged,
	}
	if w.at == w.generation {
		s.Since = w.since
	}
	for _, own := range w.list {
		s.Networks = append(s.Networks, addressing.View{Own: own, Seen: w.seen[own]})
	}
	for name, k := range w.kubelets {
		s.Kubelets = append(s.Kubelets, views.Kubelet{Name: name, Made: k.made.Truncate(time.Second), Ready: k.ready})
	}
	for a := range w.shown {
		s.Shown = append(s.Shown, a)
	}
	return s
}

// newWorld returns the world of a seed, in which nothing has happened yet.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	own := netip.MustParsePrefix("10.201.0.0/16")
	w := &world{
		T: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), own: own, now: at(0), generation: 1, decided: 1,
		granted: map[string]netip.Prefix{}, kubelets: map[string]*read{}, shown: map[netip.Addr]netip.Prefix{},
		pool:   list("10.65.0.0/16", "10.66.0.0/16", "10.67.0.0/16", "10.68.0.0/16"),
		remaps: list("10.100.0.0/16", "10.101.0.0/16", "10.102.0.0/16", "10.103.0.0/16"),
		seen:   map[netip.Prefix]netip.Prefix{own: own}, list: []netip.Prefix{own}, status: []netip.Prefix{own},
	}
	w.start()
	return w
}

// start starts another virtual kubelet.
func (w *world) start() {
	k := &read{made: w.now}
	if w.decided == w.generation {
		k.table = map[netip.Prefix]netip.Prefix{}
		for _, p := range w.list {
			k.table[p] = w.seen[p]
		}
	}
	w.kubelets[fmt.Sprint("vk-", w.makes)] = k
	w.makes++
}

// stop ends a virtual kubelet, unless it is the only one.
func (w *world) stop() {
	for name := range w.kubelets {
		if len(w.kubelets) > 1 {
			delete(w.kubelets, name)
		}
		return
	}
}

// ready has all virtual kubelets be ready.
func (w *world) ready() {
	for _, k := range w.kubelets {
		k.ready = true
	}
}

// decide has Liqo decide about the list.
func (w *world) decide() {
	for p := range w.seen {
		if !slices.Contains(w.list, p) {
			delete(w.seen, p)
		}
	}
	for i, p := range w.pool {
		if slices.Contains(w.list, p) && !w.seen[p].IsValid() {
			if w.seen[p] = p; w.rand.IntN(2) == 0 {
				w.seen[p] = w.remaps[(i+w.rand.IntN(2)*2)%4]
				for q, s := range w.seen {
					if q != p && s == w.seen[p] {
						w.seen[p] = p
					}
				}
			}
		}
	}
	// Without another change it does not say that it has decided.
	var status []netip.Prefix
	for _, p := range w.list {
		status = append(status, w.seen[p])
	}
	if !slices.Equal(status, w.status) {
		w.status, w.decided = status, w.generation
	}
}

// shows returns under which prefix a virtual kubelet shows pods in a view.
func (k *read) shows(view netip.Prefix) netip.Prefix {
	if shown, is := k.table[view]; is {
		return shown
	}
	return view
}

// look has the agent look, and do what it plans, and reports whether it did so.
func (w *world) look() bool {
	w.Helper()
	plan := views.Make(w.state())
	w.check(&plan)
	if w.rand.IntN(8) == 0 {
		return false // Somebody has written in between.
	}
	if w.at != w.generation {
		w.at, w.since = w.generation, w.now
	}
	w.looked, w.last, w.acknowledged = w.now, plan, plan.Acknowledged
	if w.decided != w.generation || !slices.Equal(w.list, plan.List) {
		w.held += len(plan.Acknowledged)
	}
	if w.decided == w.generation {
		w.known = maps.Clone(w.seen)
	}
	w.write(plan.List)
	w.record = plan.Record
	if plan.Restart != "" {
		delete(w.kubelets, plan.Restart)
		w.now = w.now.Add(time.Duration(w.rand.IntN(1500)) * time.Millisecond)
		w.start()
	}
	return true
}

// check checks that what a plan acknowledges is granted and shown right by every virtual kubelet, and that views with pods stay.
func (w *world) check(plan *views.Plan) {
	w.Helper()
	for key, prefix := range plan.Acknowledged {
		for name, k := range w.kubelets {
			if k.table == nil || k.shows(prefix) != w.seen[prefix] {
				w.Fatalf("seed %d: view %s=%s is acknowledged, and %s has read %v, not %s", w.seed, key, prefix, name, k.table, w.seen[prefix])
			}
		}
		if w.granted[key] != prefix {
			w.Fatalf("seed %d: view %s=%s is acknowledged, and not granted", w.seed, key, prefix)
		}
	}
	for a, in := range w.shown {
		stuck := len(w.record.Views) == 1 && w.decided != w.generation && w.now.Sub(w.since) >= 5*time.Minute
		if slices.Contains(w.list, in) && !slices.Contains(plan.List, in) && !stuck {
			w.Fatalf("seed %d: network %s goes with the pod at %s", w.seed, in, a)
		}
		if slices.Contains(w.record.Views, in) && !slices.Contains(plan.Record.Views, in) {
			w.Fatalf("seed %d: network %s is forgotten with the pod at %s", w.seed, in, a)
		}
	}
}

// begin has the agent start again: it remembers nothing.
func (w *world) begin() { w.looked, w.at, w.acknowledged = time.Time{}, 0, nil }

// grant has the broker grant a view, as it does or otherwise, or withdraw one.
func (w *world) grant() {
	key := fmt.Sprint("n", w.rand.IntN(3))
	if w.rand.IntN(2) == 0 {
		delete(w.granted, key)
		return
	}
	w.granted[key] = w.pool[w.rand.IntN(len(w.pool))]
}

// TestWorlds lets consumers, brokers, people and Liqo do what they like, and checks that what is acknowledged is shown right by every
// virtual kubelet, that views with pods stay, and that everything is acknowledged once nothing happens any more.
func TestWorlds(t *testing.T) {
	held := 0
	for seed := range uint64(300) {
		w := newWorld(t, seed)
		for range 200 {
			w.now = w.now.Add(time.Duration(w.rand.IntN(20_000)) * time.Millisecond)
			switch w.rand.IntN(18) {
			case 0, 1:
				w.grant()
			case 2: // liqoctl
				w.write([]netip.Prefix{w.own})
				if w.rand.IntN(2) == 0 {
					w.decide()
				}
			case 3:
				w.start()
			case 4:
				w.stop()
			case 5:
				p := w.pool[w.rand.IntN(len(w.pool))]
				if s := w.seen[p]; s.IsValid() && s == w.known[p] && slices.Contains(w.record.Views, p) {
					w.shown[s.Addr().Next()] = p
				}
			case 6:
				clear(w.shown)
			case 7:
				w.begin()
			case 8:
				w.ready()
			case 9, 10, 11:
				w.decide()
			default:
				w.look()
			}
		}

		// Nothing happens any more.
		clear(w.shown)
		for range 60 {
			w.now = w.now.Add(time.Minute)
			w.decide()
			w.ready()
			w.look()
		}
		held += w.held
		want := map[string]netip.Prefix{}
		for key, prefix := range w.granted {
			if _, refused := w.last.Refused[key]; !refused {
				want[key] = prefix
			}
		}
		if !maps.Equal(w.last.Acknowledged, want) || len(w.last.Waiting) > 0 || w.last.Restart != "" {
			t.Fatalf("seed %d: acknowledged %v, want %v; waiting %v", seed, w.last.Acknowledged, want, w.last.Waiting)
		}
		if len(w.list) != 1+len(slices.Compact(slices.SortedFunc(maps.Values(want), netip.Prefix.Compare))) {
			t.Fatalf("seed %d: %v is listed for %v", seed, w.list, want)
		}
	}
	if held == 0 {
		t.Error("nothing was acknowledged while Liqo decided")
	}
}

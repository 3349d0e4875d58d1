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
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
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

	// telling is what the agent tells the broker, and sent the reports that may arrive yet, the last one of which it waits for.
	telling *views.Telling
	sent    []told
	waits   bool
	// ahead is by how much the clock of the consumer is.
	ahead time.Duration
	// told is what the broker was told, of what it has read the last one alone.
	told []told
	cut  bool // All reports are lost.
	kept int  // So often a view stayed for nothing but what the broker may believe.
}

// told is a report, and when it was written, by the clock of the consumer, and read, by that of the broker.
type told struct {
	acknowledged map[string]netip.Prefix
	at, read     time.Time
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
		Observed: w.decided, Acknowledged: w.acknowledged, Belief: w.telling.Believed(w.now),
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
		telling: views.NewTelling(at(0)),
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

// look has the agent look, and do what it plans.
func (w *world) look() {
	w.Helper()
	plan := views.Make(w.state())
	w.check(&plan)
	if w.rand.IntN(4) == 0 {
		w.tell() // That is done by another part of the agent.
	}
	if w.rand.IntN(8) == 0 {
		return // Somebody has written in between.
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
	w.telling.Plan(plan.Acknowledged, w.now)
}

// tell has the agent begin to tell the broker what it has planned, or wait until it has. One report in three is lost, and of one in three
// the agent does not learn whether it has arrived.
func (w *world) tell() {
	if acknowledged, begins := w.telling.Begin(true, w.now); begins {
		w.sent, w.waits = append(w.sent, told{acknowledged: maps.Clone(acknowledged), at: w.now.Add(w.ahead)}), true
		return
	}
	switch last, lost := len(w.sent)-1, w.rand.IntN(3); {
	case !w.waits: // It has planned nothing for long.
	case lost == 0 || w.cut:
		w.sent = w.sent[:last]
	case lost == 1: // It may arrive yet.
	default:
		w.arrive(last)
		w.end(true)
	}
	w.end(false) // Unless it has heard of it.
}

// end has the agent wait for nothing any more.
func (w *world) end(arrived bool) {
	if w.waits {
		w.telling.End(arrived, w.now)
	}
	w.waits = false
}

// late has a report arrive from which the agent has heard nothing. It cannot write another one then that it has begun to.
func (w *world) late() {
	if len(w.sent) > 0 {
		w.arrive(w.rand.IntN(len(w.sent)))
		w.end(false)
	}
}

// arrive has a report arrive at the broker, which reads it soon. None arrives that was sent before: what is written is what was read.
func (w *world) arrive(sent int) {
	report := w.sent[sent]
	report.read = w.now.Add(time.Duration(w.rand.IntN(5000)) * time.Millisecond)
	w.told, w.sent = append(w.told, report), nil
}

// believes returns by what the broker goes.
func (w *world) believes() told {
	for len(w.told) > 1 && slices.ContainsFunc(w.told[1:], func(t told) bool { return !t.read.After(w.now) }) {
		w.told = w.told[1:]
	}
	if len(w.told) > 0 && !w.told[0].read.After(w.now) {
		return w.told[0]
	}
	return told{}
}

// check checks that what a plan acknowledges is granted and shown right by every virtual kubelet, and that views stay which have pods, or
// in which the broker believes.
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
	broker := w.believes()
	for key, prefix := range broker.acknowledged {
		if slices.Contains(w.list, prefix) && !slices.Contains(plan.List, prefix) && grant.IsFresh(broker.at, w.now) {
			w.Fatalf("seed %d: network %s goes, and the broker was told at %s, and believes at %s, that view %s is there",
				w.seed, prefix, broker.at, w.now, key)
		}
	}
	granted := slices.Collect(maps.Values(w.granted))
	for _, prefix := range plan.Record.Views {
		if !slices.Contains(granted, prefix) && !slices.Contains(slices.Collect(maps.Values(w.shown)), prefix) {
			w.kept++
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

// begin has the agent start again: it remembers nothing. What it told may arrive yet.
func (w *world) begin() {
	w.looked, w.at, w.acknowledged, w.telling, w.waits = time.Time{}, 0, nil, views.NewTelling(w.now), false
}

// grant has the broker grant a view, as it does or otherwise, or withdraw one.
func (w *world) grant() {
	key := fmt.Sprint("n", w.rand.IntN(3))
	if w.rand.IntN(2) == 0 {
		delete(w.granted, key)
		return
	}
	w.granted[key] = w.pool[w.rand.IntN(len(w.pool))]
}

// TestWorlds lets consumers, brokers, people and Liqo do what they like, while reports get lost, and checks that what is acknowledged is
// shown right by every virtual kubelet, that views stay which have pods or in which the broker believes, and that everything is
// acknowledged and nothing else is listed once nothing happens any more.
func TestWorlds(t *testing.T) {
	held, kept := 0, 0
	for seed := range uint64(300) {
		w := newWorld(t, seed)
		for range 200 {
			w.now = w.now.Add(time.Duration(w.rand.IntN(20_000)) * time.Millisecond)
			switch w.rand.IntN(22) {
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
			case 12, 13:
				w.tell()
			case 14:
				w.late()
			default:
				w.look()
			}
		}

		// Nothing happens any more, and of half of the consumers the broker hears nothing any more.
		clear(w.shown)
		w.cut = seed%2 == 0
		for range 60 {
			w.now = w.now.Add(time.Minute)
			w.decide()
			w.ready()
			w.look()
			w.tell()
		}
		held, kept = held+w.held, kept+w.kept
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
	if held == 0 || kept == 0 {
		t.Errorf("%d views were acknowledged while Liqo decided, and %d stayed for the broker: the test does not try both", held, kept)
	}
}

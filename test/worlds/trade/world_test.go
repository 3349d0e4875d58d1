// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/test/worlds/apiserver"
)

// mostSellers and mostBuyers bound who is in a world.
const mostSellers, mostBuyers = 3, 5

// begin is when all worlds begin.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is all who trade, and what happens to them.
type world struct {
	t      *testing.T
	r      *rand.Rand
	scheme *runtime.Scheme
	now    time.Time

	faults
	// calm is whether nothing goes wrong any more.
	calm   bool
	habits []event
	// wrong counts what has gone wrong.
	wrong int

	parties   []*somebody
	sellers   []*seller
	buyers    []*buyer
	slows     []*slow
	processes int

	// failure is the first promise that was broken.
	failure error
	log     []line
	seen
}

// seen is what was seen, so that worlds in which nothing happens are noticed.
type seen struct{ worlds, steps, ordered, active, changed, ended, kills, slow, deeds, restored, unused, renewed int }

// host is a cluster with its own clock.
type host struct {
	w      *world
	name   string
	server *apiserver.Server
	live   *apiserver.Cache
	// skew is how wrong its clock is.
	skew time.Duration
}

func (w *world) newHost(name string) host {
	server := apiserver.New(func() time.Time { return w.now })
	return host{w: w, name: name, server: server, live: apiserver.NewCache(server, true)}
}

// elapsed is the clock that never leaps.
func (w *world) elapsed() time.Duration { return w.now.Sub(begin) }

func (h *host) clock() time.Time { return h.w.now.Add(h.skew) }

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 17)), scheme: runtime.NewScheme(), now: begin, calm: true,
	}
	if err := errors.Join(connectorv1alpha1.AddToScheme(w.scheme), v1alpha1.AddToScheme(w.scheme)); err != nil {
		t.Fatal(err)
	}
	w.faults = anyFaults(w.r)
	for i := range 1 + w.r.IntN(mostSellers) {
		w.newSeller(fmt.Sprint("seller-", i))
	}
	for i := range 1 + w.r.IntN(mostBuyers) {
		name := fmt.Sprint("buyer-", i)
		id := cluster.Identity{ID: cluster.ID(name), Name: name}
		if i > 0 && w.r.IntN(10) == 0 {
			id = w.buyers[i-1].identity // Two parties for one cluster.
		}
		w.newBuyer(name, id)
	}
	w.habits = w.events()
	return w
}

func (w *world) close() {
	w.stopSlow()
	for _, s := range w.sellers {
		s.close()
	}
}

// event is something that happens in a world, one time or another.
type event struct {
	often int
	do    func(s *seller, b *buyer)
}

// events returns what happens in a world: some of it often, some never, so that worlds differ.
func (w *world) events() []event {
	always := func(do func()) func(*seller, *buyer) { return func(*seller, *buyer) { do() } }
	at := func(do func(*seller)) func(*seller, *buyer) { return func(s *seller, _ *buyer) { do(s) } }
	by := func(do func(*buyer)) func(*seller, *buyer) { return func(_ *seller, b *buyer) { do(b) } }
	usual := []event{
		{34, by((*buyer).act)}, {20, at((*seller).act)}, {6, by((*buyer).serveOne)}, {8, always(w.pass)},
		{5, by((*buyer).resize)}, {2, at((*seller).decide)}, {6, func(s *seller, b *buyer) { b.work(s) }},
		{3, func(s *seller, b *buyer) { b.shrink(s) }},
	}
	seldom := []event{
		{2, by((*buyer).renew)}, {3, by((*buyer).move)}, {1, by((*buyer).leave)}, {1, by((*buyer).regret)}, {2, by((*buyer).ask)},
		{1, by((*buyer).askNoMore)},
		{1, at((*seller).notice)}, {1, at((*seller).suspend)}, {1, at((*seller).evict)}, {1, at((*seller).reprice)},
		{4, at((*seller).comeLate)},
		{1, at((*seller).vanish)},
		{6, at((*seller).slowly)}, {12, always(w.hurry)},
		{1, at((*seller).tidy)}, {2, at((*seller).rekey)}, {2, at((*seller).takeOver)}, {1, by((*buyer).takeOver)},
		{2, at((*seller).leap)}, {1, by((*buyer).leap)},
		{1, at((*seller).shut)}, {1, at((*seller).rotate)}, {1, by((*buyer).rotate)}, {2, always(w.showOne)},
		{9, by((*buyer).slowly)},
	}
	if w.r.IntN(5) == 0 {
		seldom = append(seldom, event{1, at((*seller).restore)})
	}
	for i := range seldom {
		seldom[i].often *= w.r.IntN(4)
	}
	return slices.Concat(usual, seldom)
}

// happen lets one thing happen.
func (w *world) happen() {
	sum := 0
	for _, e := range w.habits {
		sum += e.often
	}
	n := w.r.IntN(sum)
	for _, e := range w.habits {
		if n -= e.often; n < 0 {
			e.do(w.sellers[w.r.IntN(len(w.sellers))], w.buyers[w.r.IntN(len(w.buyers))])
			return
		}
	}
}

// act lets a connector look at something.
func (b *buyer) act() {
	if all := b.all(); len(all) > 0 {
		b.reconcile(all[b.w.r.IntN(len(all))].Name)
	}
}

func (b *buyer) serveOne() {
	if wishes := b.wishes(); len(wishes) > 0 {
		b.serve(wishes[b.w.r.IntN(len(wishes))].Name)
		b.collect()
	}
}

func (s *seller) act() {
	if all := s.all(); len(all) > 0 {
		s.reconcile(all[s.w.r.IntN(len(all))].Name)
	}
}

// slowly has an old leader, or another replica, begin something: to answer a message that comes late, or to look at a Sale.
func (s *seller) slowly() {
	w := s.w
	if len(w.slows) >= mostSlow {
		return
	}
	if m, is := s.late(); is && w.r.IntN(2) == 0 {
		r := s.newReplica()
		w.slowly(r.process, m.String(), func() { m.deliver(r.server()) })
	} else if all := s.all(); len(all) > 0 {
		r, name := s.newReplica(), all[w.r.IntN(len(all))].Name
		w.slowly(r.process, "look at "+name, func() { _ = r.reconcile(name) })
	}
}

// slowly has an old leader begin to look at a Purchase, mostly at one whose clusters are about to peer or to part.
func (b *buyer) slowly() {
	all := b.all()
	moving := slices.DeleteFunc(slices.Clone(all), func(p *connectorv1alpha1.Purchase) bool {
		return b.stored(p).Purchase.Peering != contract.Begun && p.Status.State != string(contract.Provisioning) &&
			p.Status.State != string(contract.Terminating)
	})
	if len(moving) > 0 && b.w.r.IntN(4) > 0 {
		all = moving
	}
	if len(all) > 0 && len(b.w.slows) < mostSlow {
		s, name := b.newShopper(), all[b.w.r.IntN(len(all))].Name
		b.w.slowly(s.process, "look at "+name, func() { _ = s.reconcile(name) })
	}
}

// takeOver has another replica lead.
func (s *seller) takeOver() {
	s.lead()
	s.w.notef("%s leads", s.leader.name)
}

func (b *buyer) takeOver() {
	b.lead()
	b.w.notef("%s leads", b.leader.name)
}

// pass lets some time pass, sometimes much.
func (w *world) pass() {
	by := time.Duration(w.r.IntN(150)) * time.Second
	if w.r.IntN(30) == 0 {
		by = time.Duration(w.r.IntN(300)) * time.Minute
	}
	w.now = w.now.Add(by)
}

func (s *seller) leap() { s.host.leap() }
func (b *buyer) leap()  { b.host.leap() }

// leap makes a clock wrong, sometimes by a day, or right again.
func (h *host) leap() {
	most := 30 * time.Minute
	if h.w.r.IntN(6) == 0 {
		most = 20 * time.Hour
	}
	if h.skew != 0 && h.w.r.IntN(2) == 0 {
		h.skew = 0
	} else {
		h.skew += (time.Duration(h.w.r.Int64N(int64(2*most))) - most).Truncate(time.Second)
	}
	h.w.notef("the clock of %s is wrong by %s", h.name, h.skew)
}

// line is one of the log of a world. Most are never read: what is in it must not change, and is written when it is read.
type line struct {
	at     time.Time
	format string
	args   []any
}

func (l line) String() string { return l.at.Format("02 15:04:05 ") + fmt.Sprintf(l.format, l.args...) }

func (w *world) notef(format string, args ...any) { w.log = append(w.log, line{w.now, format, args}) }

// failf notes a promise that is broken. It can be called in the middle of anything: the world ends at its next step.
func (w *world) failf(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
		w.notef("BROKEN: %v", w.failure)
	}
}

// fail ends the test if a promise is broken.
func (w *world) fail() {
	w.t.Helper()
	if w.failure != nil {
		var last strings.Builder
		for _, l := range w.log[max(0, len(w.log)-lines()):] {
			fmt.Fprintln(&last, l)
		}
		w.t.Fatalf("%v\n%s", w.failure, last.String())
	}
}

// all returns the objects of a kind, by name. They must not be changed.
func all[T client.Object](c *apiserver.Cache, like T) []T {
	var found []T
	for _, o := range c.All(like) {
		found = append(found, o.(T))
	}
	slices.SortFunc(found, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found
}

func requestOf(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// thing is an object as it is stored, which says what is in it, without what is long.
type thing struct{ client.Object }

func (h *host) thing(o client.Object) thing { return thing{h.server.Stored(o)} }

func (t thing) String() string {
	var what any
	switch o := t.Object.(type) {
	case *connectorv1alpha1.Sale:
		what = []any{o.Spec, o.Status.State, o.Status.PendingRevision, readableOf(o)}
	case *connectorv1alpha1.SalesLedger:
		what = o.Holds
	case *connectorv1alpha1.Purchase:
		what = []any{o.Spec, o.Status.State, reasonOf(o.Status.Conditions), o.Status.Cluster.ID, o.DeletionTimestamp}
	case *connectorv1alpha1.CapacityRequest:
		what = []any{o.Spec, o.Status.Purchase, reasonOf(o.Status.Conditions)}
	default:
		return "gone"
	}
	text, _ := json.Marshal(what) //nolint:errchkjson // It is for people.
	return string(text)
}

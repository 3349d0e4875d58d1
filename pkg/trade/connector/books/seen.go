// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// seenWithin is how long it takes at most until a watch shows what this process has written.
const seenWithin = time.Minute

// Known is a Sale, and the record that it has.
type Known struct {
	Name    string
	Created time.Time
	Key     contract.Key
	// Record is nil if it is not written yet, or cannot be read. It has no superseded terms, and of a contract that is over no signatures but
	// that there were some.
	Record *contract.Record

	uid   types.UID
	bytes int                     // Of the text of the record.
	sale  *connectorv1alpha1.Sale // As a watch has shown it: nobody changes it.
}

// open reports whether the contract counts as one that is not over.
func (k Known) open() bool { return k.Record == nil || !k.Record.State.Final() }

// archived reports whether the contract is kept for people alone: it has been over for so long that it counts for no limit of its buyer,
// and nothing is left to withdraw.
func (k Known) archived(now time.Time) bool {
	return !k.open() && k.Record.Duty() == contract.NoDuty && now.Sub(k.changed()) >= negotiation.CountedFor
}

// changed returns when the record changed last.
func (k Known) changed() time.Time {
	if k.Record == nil || len(k.Record.History) == 0 {
		return k.Created
	}
	return k.Record.History[len(k.Record.History)-1].At
}

// known returns what a Sale says.
func known(sale *connectorv1alpha1.Sale) Known {
	k := Known{Name: sale.Name, Created: sale.CreationTimestamp.Time, Key: Key(sale), uid: sale.UID, bytes: len(sale.Status.Record)}
	record, err := Record(sale)
	if err != nil || record == nil {
		return k
	}
	shorten(record)
	// The signatures are most of a record, and are kept once.
	record.Signature, record.Countersignature = within(sale.Status.Record, record.Signature),
		within(sale.Status.Record, record.Countersignature)
	if resources.Same(sale.Status.Resources, record.Terms.Resources) {
		record.Terms.Resources = sale.Status.Resources // So are the resources.
	}
	k.Record = record
	return k
}

// within returns the part of a text that says the same as another one; that one if there is none.
func within(text, same string) string {
	if i := strings.Index(text, same); i >= 0 {
		return text[i : i+len(same)]
	}
	return same
}

// seen is all Sales, as a watch has shown them and this process has written them. It can be used concurrently.
type seen struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	ready func() bool // Whether the watch has shown all; nil if there is none.
	shown map[string]Known
	wrote map[string]written
	// labelled is what was shown, by labels with the buyer and its key.
	labelled map[label]map[string]*connectorv1alpha1.Sale
	// changes counts what was shown, written, removed or forgotten.
	changes int64
}

func newSeen(now clock.PassiveClock) seen {
	return seen{clock: now, shown: map[string]Known{}, wrote: map[string]written{}, labelled: map[label]map[string]*connectorv1alpha1.Sale{}}
}

// label is a label of a Sale by which it is found.
type label struct{ name, value string }

// labels returns those of a Sale; none of nil.
func labels(sale *connectorv1alpha1.Sale) []label {
	if sale == nil {
		return nil
	}
	return []label{{BuyerLabel, sale.Labels[BuyerLabel]}, {BuyerKeyLabel, sale.Labels[BuyerKeyLabel]}}
}

// file has a Sale be found by its labels, and no more by those that it had; nil is none.
func (s *seen) file(was, is *connectorv1alpha1.Sale) {
	for _, l := range labels(was) {
		if delete(s.labelled[l], was.Name); len(s.labelled[l]) == 0 {
			delete(s.labelled, l)
		}
	}
	for _, l := range labels(is) {
		if s.labelled[l] == nil {
			s.labelled[l] = map[string]*connectorv1alpha1.Sale{}
		}
		s.labelled[l][is.Name] = is
	}
}

// with returns the Sales that were shown with a label, in the order of their names. Complete is as that of all.
func (s *seen) with(l label) (sales []*connectorv1alpha1.Sale, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil || !s.ready() {
		return nil, false
	}
	return slices.SortedFunc(maps.Values(s.labelled[l]), func(a, b *connectorv1alpha1.Sale) int { return strings.Compare(a.Name, b.Name) }),
		true
}

// written is what this process has written and no watch has shown yet.
type written struct {
	Known

	at time.Time
}

// newer reports whether it counts beside what was shown. What should have been shown by now has gone, for example because somebody has
// restored the API server from a copy.
func (w written) newer(shown Known, is bool, now time.Time) bool {
	later := !is || w.uid != shown.uid || shown.Record == nil || w.Record.Version > shown.Record.Version
	return later && now.Sub(w.at) < seenWithin
}

// show takes what a watch shows.
func (s *seen) show(sale *connectorv1alpha1.Sale) {
	k := known(sale)
	k.sale = sale
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	s.file(s.shown[k.Name].sale, sale)
	s.shown[k.Name] = k
	if w, is := s.wrote[k.Name]; is && !w.newer(k, true, s.clock.Now()) {
		delete(s.wrote, k.Name)
	}
}

// remove takes that a Sale is gone.
func (s *seen) remove(sale *connectorv1alpha1.Sale) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	s.file(s.shown[sale.Name].sale, nil)
	delete(s.shown, sale.Name)
	if s.wrote[sale.Name].uid == sale.UID {
		delete(s.wrote, sale.Name)
	}
}

// note takes what this process has written.
func (s *seen) note(sale *connectorv1alpha1.Sale) {
	k := known(sale)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready != nil && k.Record != nil {
		s.changes++
		s.wrote[k.Name] = written{k, s.clock.Now()}
	}
}

// count returns a number that is another one when what all returns has changed. Complete is as that of all.
func (s *seen) count() (changes int64, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil || !s.ready() {
		return 0, false
	}
	for name, w := range s.wrote {
		if s.clock.Now().Sub(w.at) >= seenWithin {
			s.changes++
			delete(s.wrote, name)
		}
	}
	return s.changes, true
}

// get returns one Sale. Complete is false if it is not known what there is.
func (s *seen) get(name string) (k Known, found, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil || !s.ready() {
		return Known{}, false, false
	}
	k, found = s.shown[name]
	if w, is := s.wrote[name]; is && w.newer(k, found, s.clock.Now()) {
		return w.Known, true, true
	}
	return k, found, true
}

// all returns all Sales, in no order. Complete is false if it is not known what there is.
func (s *seen) all() (all []Known, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil || !s.ready() {
		return nil, false
	}
	now := s.clock.Now()
	all = make([]Known, 0, len(s.shown)+len(s.wrote))
	for name, k := range s.shown {
		if w, is := s.wrote[name]; is && w.newer(k, true, now) {
			k = w.Known
		}
		all = append(all, k)
	}
	for name, w := range s.wrote {
		if _, is := s.shown[name]; !is && w.newer(Known{}, false, now) {
			all = append(all, w.Known)
		}
	}
	return all, true
}

// Watch has the store know of all Sales what an informer shows: then nothing is asked of the API server to find out that a contract is as
// it was. It must be called before the store is used.
func (s *Store) Watch(ctx context.Context, informers cache.Informers) error {
	informer, err := informers.GetInformer(ctx, &connectorv1alpha1.Sale{})
	if err != nil {
		return fmt.Errorf("watch sales: %w", err)
	}
	registered, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: s.show, UpdateFunc: func(_, after any) { s.show(after) }, DeleteFunc: s.gone,
	})
	if err != nil {
		return fmt.Errorf("watch sales: %w", err)
	}
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	if s.seen.ready = informer.HasSynced; registered != nil {
		s.seen.ready = registered.HasSynced
	}
	return nil
}

// show takes an object of the informer, and wakes those who wait for it.
func (s *Store) show(object any) {
	if sale, ok := object.(*connectorv1alpha1.Sale); ok {
		s.seen.show(sale)
		s.wake(sale.Name)
	}
}

// gone takes that an object of the informer is not there any more.
func (s *Store) gone(object any) {
	if last, unknown := object.(toolscache.DeletedFinalStateUnknown); unknown {
		object = last.Obj
	}
	if sale, ok := object.(*connectorv1alpha1.Sale); ok {
		s.seen.remove(sale)
		s.wake(sale.Name)
	}
}

// Recent implements negotiation.Store.
func (s *Store) Recent(key contract.Key) (contract.Record, bool) {
	k, found, _ := s.seen.get(Name(key))
	if !found || k.Key != key || k.Record == nil || k.Record.State.Final() {
		return contract.Record{}, false
	}
	return *k.Record, true
}

// All returns all Sales, in no order, as this process has seen or written them last; without [Store.Watch], as they are stored. Nobody
// changes their records.
func (s *Store) All(ctx context.Context) ([]Known, error) {
	if all, complete := s.seen.all(); complete {
		return all, nil
	}
	var sales connectorv1alpha1.SaleList
	if err := s.cfg.Reader.List(ctx, &sales); err != nil {
		return nil, fmt.Errorf("list sales: %w", err)
	}
	all := make([]Known, len(sales.Items))
	for i := range sales.Items {
		all[i] = known(&sales.Items[i])
	}
	return all, nil
}

// with returns the Sales with a label, as a watch has shown them; without [Store.Watch], as the client lists them. They are not to be
// changed.
func (s *Store) with(ctx context.Context, l label) ([]*connectorv1alpha1.Sale, error) {
	if sales, complete := s.seen.with(l); complete {
		return sales, nil
	}
	var list connectorv1alpha1.SaleList
	if err := s.cfg.Client.List(ctx, &list, client.MatchingLabels{l.name: l.value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the sales with label %s=%s: %w", l.name, l.value, err)
	}
	return pointers(list.Items), nil
}

// pointers returns pointers to all Sales.
func pointers(sales []connectorv1alpha1.Sale) []*connectorv1alpha1.Sale {
	all := make([]*connectorv1alpha1.Sale, len(sales))
	for i := range sales {
		all[i] = &sales[i]
	}
	return all
}

// Changes returns a number that is another one when what [Store.All] returns has changed; false if that is not known.
func (s *Store) Changes() (int64, bool) { return s.seen.count() }

// Count implements negotiation.Store. A Sale whose record is not written yet counts as well, as one that is open. One that has been over
// for negotiation.CountedFor counts no more: Forget bounds those.
func (s *Store) Count(ctx context.Context, buyer string) (negotiation.Count, error) {
	all, err := s.All(ctx)
	if err != nil {
		return negotiation.Count{}, err
	}
	count, now := negotiation.Count{}, s.seen.clock.Now()
	for _, k := range all {
		if k.archived(now) {
			continue
		}
		open := 0
		if k.open() {
			open = 1
		}
		count.AllOpen += open
		count.AllKept++
		count.AllBytes += k.bytes
		if k.Key.Buyer == buyer {
			count.Open += open
			count.Kept++
			count.Bytes += k.bytes
			if k.Record != nil && k.Record.Lapsed() {
				count.Lapsed++
			}
		}
	}
	return count, nil
}

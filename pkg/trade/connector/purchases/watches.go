// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// mostWatches is how many sellers are waited for at once. Purchases beyond are looked at from time to time.
const mostWatches = 256

// watches wait for sellers to change contracts, and wake the controller then. It can be used concurrently.
type watches struct {
	woken chan event.GenericEvent
	// after is time.After.
	after func(time.Duration) <-chan time.Time

	mu      sync.Mutex
	base    context.Context //nolint:containedctx // It is that of Start, in which all waiting ends.
	waiting map[string]func()
	told    map[string]told // by the Purchase's name
	group   sync.WaitGroup
}

// told is a version that a seller has told of, after one that was seen, and how often in vain: it did not come.
type told struct {
	after  int64
	inVain int
}

// pause is how long nobody waits for a seller that told of versions in vain.
func (t told) pause() time.Duration {
	if t.inVain == 0 {
		return 0
	}
	return min(firstPause<<min(t.inVain, 16), watched)
}

func newWatches() *watches {
	return &watches{woken: make(chan event.GenericEvent), after: time.After, waiting: map[string]func(){}, told: map[string]told{}}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*watches) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it returns when ctx has ended, and nobody waits any more.
func (w *watches) Start(ctx context.Context) error {
	w.mu.Lock()
	w.base = ctx
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.base = nil
	w.mu.Unlock()
	w.group.Wait()
	return nil
}

// start waits until a contract has a higher version than after, or cannot be asked for, and wakes its Purchase then. It replaces an earlier
// wait for the same Purchase. It reports whether there was room.
func (w *watches) start(purchase string, c *negotiation.Client, id string, after int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop, is := w.waiting[purchase]; is {
		stop()
		delete(w.waiting, purchase)
	}
	if w.base == nil || len(w.waiting) >= mostWatches {
		return false
	}
	ctx, cancel := context.WithCancel(w.base)
	w.waiting[purchase] = cancel
	last, is := w.told[purchase]
	if is && last.after != after {
		delete(w.told, purchase)
		last = told{}
	}
	w.group.Go(func() {
		defer cancel()
		select { // What it told last did not come.
		case <-w.after(last.pause()):
		case <-ctx.Done():
		}
		news := false
		for ctx.Err() == nil {
			view, err := c.Get(ctx, id, after, negotiation.MaxWait)
			pause := firstPause // A seller that does not wait is not asked all the time.
			if errors.Is(err, negotiation.ErrTooMany) {
				pause, err = lookAgain, nil // Too many wait there: it answers who does not.
			}
			if news = err == nil && view.Version > after; err != nil || news {
				break
			}
			select {
			case <-w.after(pause):
			case <-ctx.Done():
			}
		}
		w.mu.Lock()
		mine := ctx.Err() == nil
		if mine {
			delete(w.waiting, purchase)
		}
		if mine && news {
			w.told[purchase] = told{after: after, inVain: last.inVain + 1}
		}
		w.mu.Unlock()
		if !mine {
			return
		}
		select {
		case w.woken <- event.GenericEvent{Object: &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: purchase}}}:
		case <-ctx.Done():
		}
	})
	return true
}

// stop waits no more for a Purchase.
func (w *watches) stop(purchase string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.told, purchase)
	if stop, is := w.waiting[purchase]; is {
		stop()
		delete(w.waiting, purchase)
	}
}

// connection is a client and what it was made for.
type connection struct {
	client *negotiation.Client
	made   string
}

// sellers are clients of sellers, which keep their connections. It can be used concurrently.
type sellers struct {
	mu      sync.Mutex
	clients map[string]connection // by the seller's ID
}

// client returns a client of a seller.
func (s *sellers) client(cfg negotiation.ClientConfig) (*negotiation.Client, error) {
	made := fmt.Sprintf("%s %s %s", cfg.Endpoint, party.Fingerprint(cfg.Seller.Current()), party.Fingerprint(cfg.Buyer.Current()))
	id := string(cfg.Seller.ID())
	s.mu.Lock()
	defer s.mu.Unlock()
	known, is := s.clients[id]
	if is && known.made == made {
		return known.client, nil
	}
	c, err := negotiation.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	if is {
		c.Replace(known.client)
		known.client.Close()
	}
	s.clients[id] = connection{c, made}
	return c, nil
}

// passed is until when time was counted for each Purchase, by a clock that never leaps. It can be used concurrently.
type passed struct {
	mu      sync.Mutex
	counted map[types.UID]time.Duration
}

// begin counts from now on.
func (p *passed) begin(purchase types.UID, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted[purchase] = now
}

// since returns how much has passed, and counts from now on; zero, without counting, if it is less than least. It is zero as well for a
// Purchase that nobody has counted for.
func (p *passed) since(purchase types.UID, now, least time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.counted[purchase]
	switch {
	case !known:
		before = now
	case now-before < least:
		return 0
	}
	p.counted[purchase] = now
	return now - before
}

// forgetPurchase counts no more.
func (p *passed) forgetPurchase(purchase types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.counted, purchase)
}

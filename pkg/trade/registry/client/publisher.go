// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/wake"
)

const (
	// lookAgain is after how long a registry is asked again what it has: it may have been restored from an older copy.
	lookAgain = 5 * time.Minute
	// renewals is how many times a lease is renewed in its length, and maxLease how long one is at most; how short one is at least a
	// PublisherConfig says.
	renewals, maxLease = 3, time.Hour
	// tellEvery is how often a new status is told in the long run, and tellAtOnce how many may be told one after the other.
	tellEvery, tellAtOnce = 10 * time.Second, 3
	// waiting is how often a party that waits for approval asks, and refused after how long something is tried again that was refused.
	waiting, refused = 15 * time.Second, 10 * time.Minute
)

// Wanted is what a party wants to be known at a registry.
type Wanted struct {
	// Enrolment is the announcement, and what lets the party in.
	Enrolment registryv1.Enrolment
	// Offers are the signed offers, by their IDs. All others are withdrawn; but as long as it is nil, the registry keeps what it has.
	Offers map[string]string
}

// PublisherConfig is what a publisher needs.
type PublisherConfig struct {
	// Client returns a client that shows the certificate of the party's current key. It is asked before each round.
	Client func() *Client
	// Party is the ID of the party.
	Party string
	// Backoff is how long it waits after failures.
	Backoff Backoff
	// LookAgain is after how long at most the registry is asked again which offers it has; 5 min if it is zero. After each failure it is, too.
	LookAgain time.Duration
	// MinLease is how long a lease counts at least, whatever the registry says; 10 s if it is zero. An hour is the most.
	MinLease time.Duration
	// Tell is told of a status in which more has changed than times, if it is not nil: soon, but of many that follow each other no more than
	// one in 10 s. It must not block.
	Tell func(PublisherStatus)
}

// PublisherStatus is how far a registry knows what it should.
type PublisherStatus struct {
	// State is what the registry has decided about the party; empty if it has not answered yet.
	State registryv1.State
	// Published are the offers that the registry has, as they were signed, by their IDs; "?" for those that are not as they are wanted.
	Published map[string]string
	// Refused are the offers that the registry does not take, and why.
	Refused map[string]*RefusalError
	// Error is why the last round failed; nil if it did not.
	Error error
	// Contact is when the registry answered last.
	Contact time.Time
	// LeaseUntil is until when the party counts as alive there.
	LeaseUntil time.Time
}

// Publisher keeps one registry told of what a party wants to be known: it announces the party, publishes and withdraws offers, and
// renews the lease. What fails is tried again for ever, with growing pauses. It is safe for concurrent use.
type Publisher struct {
	cfg     PublisherConfig
	changed wake.Signal

	mu     sync.Mutex
	wanted Wanted
	status PublisherStatus
}

// NewPublisher returns a publisher that wants nothing yet.
func NewPublisher(cfg PublisherConfig) *Publisher {
	return &Publisher{cfg: cfg, changed: wake.New()}
}

// Set replaces what is wanted. Nothing happens if it is what was wanted before.
func (p *Publisher) Set(w Wanted) {
	w = Wanted{Enrolment: w.Enrolment, Offers: maps.Clone(w.Offers)}
	w.Enrolment.Keys = slices.Clone(w.Enrolment.Keys)
	p.mu.Lock()
	same := sameEnrolment(p.wanted.Enrolment, w.Enrolment) && maps.Equal(p.wanted.Offers, w.Offers) &&
		(p.wanted.Offers == nil) == (w.Offers == nil)
	p.wanted = w
	p.mu.Unlock()
	if !same {
		p.changed.Set()
	}
}

func sameEnrolment(a, b registryv1.Enrolment) bool {
	return slices.Equal(a.Keys, b.Keys) && a.Announcement == b.Announcement && a.Token == b.Token && a.Certificates == b.Certificates
}

// Status returns how far the registry knows what it should.
func (p *Publisher) Status() PublisherStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	s.Published, s.Refused = maps.Clone(s.Published), maps.Clone(s.Refused)
	return s
}

// Run keeps the registry told, until ctx ends.
func (p *Publisher) Run(ctx context.Context) error {
	r := &round{p: p, differs: pauses{Backoff: p.cfg.Backoff}}
	failures := pauses{Backoff: p.cfg.Backoff}
	tells := &teller{p: p, limit: rate.NewLimiter(rate.Every(tellEvery), tellAtOnce)}
	for ctx.Err() == nil {
		p.mu.Lock()
		wanted := p.wanted
		p.mu.Unlock()
		var rest time.Duration
		if wanted.Enrolment.Announcement == "" {
			rest = refused // Until something is wanted.
		} else {
			var err error
			if rest, err = r.make(ctx, wanted); err == nil {
				failures.reset()
			} else {
				rest = failures.next(err)
			}
			if ctx.Err() == nil {
				p.note(r, err)
			}
		}
		tells.rest(ctx, rest)
	}
	return nil
}

// note notes how a round went.
func (p *Publisher) note(r *round, err error) {
	s := PublisherStatus{State: r.state, Refused: map[string]*RefusalError{}, Error: err, Contact: r.contact, LeaseUntil: r.leaseUntil}
	for id, no := range r.refused {
		s.Refused[id] = no.why
	}
	s.Published = maps.Clone(r.there)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = s
}

// teller tells what has changed, and no more often than it may.
type teller struct {
	p     *Publisher
	limit *rate.Limiter
	told  PublisherStatus
}

// rest waits until it is time, unless ctx ends or something else is wanted, and tells meanwhile what is to be told.
func (t *teller) rest(ctx context.Context, d time.Duration) {
	for until := time.Now().Add(d); ctx.Err() == nil; {
		wait := time.Until(until)
		if now := t.p.Status(); t.p.cfg.Tell != nil && !t.told.same(&now) {
			if t.limit.Allow() {
				t.told = now
				t.p.cfg.Tell(now)
				continue
			}
			wait = min(wait, tellEvery/tellAtOnce)
		}
		if sleep(ctx, wait, t.p.changed.Taken()) || !time.Now().Before(until) {
			return
		}
	}
}

// same reports whether two are the same but for their times.
func (s *PublisherStatus) same(other *PublisherStatus) bool {
	return s.State == other.State && maps.Equal(s.Published, other.Published) && fmt.Sprint(s.Error) == fmt.Sprint(other.Error) &&
		maps.EqualFunc(s.Refused, other.Refused, func(a, b *RefusalError) bool { return a.Error() == b.Error() })
}

// round is what a publisher knows of the registry. It is for one goroutine.
type round struct {
	p *Publisher

	state      registryv1.State
	announced  registryv1.Enrolment // With which the registry knows the party.
	there      map[string]string    // The offers that the registry has, as they are wanted, or other; nil if that is not known.
	refused    map[string]no
	looked     time.Time // When it was asked.
	contact    time.Time
	leaseUntil time.Time
	differs    pauses // Counts how often in a row the registry has not had what it was told.
}

// other stands for an offer that is not as it is wanted: what it is matters to nobody, and a registry may say what it likes.
const other = "?"

// no is a refusal of an offer.
type no struct {
	jws string
	why *RefusalError
	at  time.Time
}

// make brings the registry to what is wanted, and returns after how long it has to be told again. What one offer is refused does not keep
// others back.
func (r *round) make(ctx context.Context, w Wanted) (time.Duration, error) {
	c, id := r.p.cfg.Client(), r.p.cfg.Party
	if err := r.announce(ctx, c, w.Enrolment); err != nil {
		return 0, err
	}
	if r.state != registryv1.Approved {
		return waiting, nil
	}

	// What the registry has, if that is not known, or not for sure any more.
	if r.there == nil || time.Since(r.looked) >= cmp.Or(r.p.cfg.LookAgain, lookAgain) {
		there := map[string]string{}
		err := c.EachOffer(ctx, url.Values{"party": {id}}, func(o registryv1.Offer) {
			if o.Party != id {
				return
			}
			if there[o.ID] = w.Offers[o.ID]; there[o.ID] != o.JWS {
				there[o.ID] = other
			}
		})
		if err != nil {
			return 0, err
		}
		r.there, r.contact, r.looked = there, time.Now(), time.Now()
	}

	// What is missing, and what is too much.
	if err := r.publish(ctx, c, w.Offers); err != nil {
		return 0, err
	}
	for offer := range r.there {
		if _, wanted := w.Offers[offer]; wanted || w.Offers == nil {
			continue
		}
		if err := c.Withdraw(ctx, id, offer); err != nil {
			return 0, r.failed(err)
		}
		delete(r.there, offer)
	}

	// The party is alive. If offers were dropped meanwhile, the next round finds out which.
	lease, err := c.Renew(ctx, id)
	if err != nil {
		return 0, r.failed(err)
	}
	r.contact, r.leaseUntil = time.Now(), lease.Until
	if lease.Offers != len(r.there) {
		r.there = nil
		return r.differs.next(nil), nil
	}
	r.differs.reset()
	length := time.Duration(min(max(lease.Seconds, 0), int64(maxLease/time.Second))) * time.Second
	return max(length, cmp.Or(r.p.cfg.MinLease, 10*time.Second)) / renewals, nil
}

// announce announces the party, unless the registry knows it as it is and has approved it.
func (r *round) announce(ctx context.Context, c *Client, e registryv1.Enrolment) error {
	if r.state == registryv1.Approved && sameEnrolment(r.announced, e) {
		return nil
	}
	known, err := c.Announce(ctx, r.p.cfg.Party, e)
	if err != nil {
		return r.failed(err)
	}
	r.state, r.announced, r.there, r.contact = known.State, e, nil, time.Now()
	return nil
}

// publish publishes the offers that the registry does not have as they are wanted.
func (r *round) publish(ctx context.Context, c *Client, offers map[string]string) error {
	before := r.refused
	r.refused = map[string]no{}
	for _, offer := range slices.Sorted(maps.Keys(offers)) {
		jws := offers[offer]
		if r.there[offer] == jws {
			continue
		}
		if old, ok := before[offer]; ok && old.jws == jws && time.Since(old.at) < refused {
			r.refused[offer] = old
			continue
		}
		_, err := c.Publish(ctx, r.p.cfg.Party, offer, jws)
		why := Refused(err)
		switch {
		case err == nil:
			r.there[offer], r.contact = jws, time.Now()
		case why != nil && why.Status != http.StatusUnauthorized && why.Status != http.StatusForbidden:
			r.refused[offer] = no{jws, why, time.Now()}
		default:
			return fmt.Errorf("publish offer %s: %w", offer, r.failed(err)) // So would the others be.
		}
	}
	return nil
}

// failed takes into account that the registry may not know the party any more, or may have been away and come back as it was before.
func (r *round) failed(err error) error {
	r.looked = time.Time{}
	if why := Refused(err); why != nil && (why.Status == http.StatusUnauthorized || why.Status == http.StatusForbidden) {
		r.state, r.there = "", nil
	}
	return err
}

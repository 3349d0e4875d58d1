// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/registry/registryv1"
)

const (
	// renewals is how many times a lease is renewed in its length.
	renewals = 3
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
	// Tell is told of each new status, if it is not nil. It must not block.
	Tell func(PublisherStatus)
}

// PublisherStatus is how far a registry knows what it should.
type PublisherStatus struct {
	// State is what the registry has decided about the party; empty if it has not answered yet.
	State registryv1.State
	// Published are the offers that the registry has, as they were signed, by their IDs.
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
	cfg  PublisherConfig
	wake chan struct{}

	mu     sync.Mutex
	wanted Wanted
	status PublisherStatus
}

// NewPublisher returns a publisher that wants nothing yet.
func NewPublisher(cfg PublisherConfig) *Publisher {
	return &Publisher{cfg: cfg, wake: make(chan struct{}, 1)}
}

// Set replaces what is wanted. Nothing happens if it is what was wanted before.
func (p *Publisher) Set(w Wanted) {
	w = Wanted{Enrolment: w.Enrolment, Offers: maps.Clone(w.Offers)}
	w.Enrolment.Keys = slices.Clone(w.Enrolment.Keys)
	p.mu.Lock()
	same := sameEnrolment(p.wanted.Enrolment, w.Enrolment) && maps.Equal(p.wanted.Offers, w.Offers) && (p.wanted.Offers == nil) == (w.Offers == nil)
	p.wanted = w
	p.mu.Unlock()
	if same {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
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
	r := &round{p: p}
	failures := pauses{Backoff: p.cfg.Backoff}
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
				p.tell(r, err)
			}
		}
		sleep(ctx, rest, p.wake)
	}
	return nil
}

// tell notes how a round went.
func (p *Publisher) tell(r *round, err error) {
	s := PublisherStatus{State: r.state, Refused: map[string]*RefusalError{}, Error: err, Contact: r.contact, LeaseUntil: r.leaseUntil}
	for id, no := range r.refused {
		s.Refused[id] = no.why
	}
	s.Published = maps.Clone(r.there)
	p.mu.Lock()
	p.status = s
	p.mu.Unlock()
	if p.cfg.Tell != nil {
		p.cfg.Tell(p.Status())
	}
}

// round is what a publisher knows of the registry. It is for one goroutine.
type round struct {
	p *Publisher

	state      registryv1.State
	announced  registryv1.Enrolment // With which the registry knows the party.
	there      map[string]string    // The offers that the registry has; nil if that is not known.
	refused    map[string]no
	contact    time.Time
	leaseUntil time.Time
}

// no is a refusal of an offer.
type no struct {
	jws string
	why *RefusalError
	at  time.Time
}

// make brings the registry to what is wanted, and returns after how long it has to be told again. What one offer is refused does not keep others back.
func (r *round) make(ctx context.Context, w Wanted) (time.Duration, error) {
	c, id := r.p.cfg.Client(), r.p.cfg.Party
	if err := r.announce(ctx, c, w.Enrolment); err != nil {
		return 0, err
	}
	if r.state != registryv1.Approved {
		return waiting, nil
	}

	// What the registry has, if that is not known.
	if r.there == nil {
		offers, err := c.Offers(ctx, url.Values{"party": {id}})
		if err != nil {
			return 0, err
		}
		r.there = map[string]string{}
		for _, o := range offers {
			if o.Party == id {
				r.there[o.ID] = o.JWS
			}
		}
		r.contact = time.Now()
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
		return r.p.cfg.Backoff.first(), nil
	}
	return max(time.Duration(lease.Seconds)*time.Second/renewals, time.Millisecond), nil
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

// failed takes into account that the registry may not know the party any more.
func (r *round) failed(err error) error {
	if why := Refused(err); why != nil && (why.Status == http.StatusUnauthorized || why.Status == http.StatusForbidden) {
		r.state, r.there = "", nil
	}
	return err
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/listings"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/pages"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const (
	// watchPause is how long a registry is left alone at most that cannot be watched: one that has just approved the party is not to wait.
	watchPause = 20 * time.Second
	// remembered is for how long a registry that has shown what is not true is shown as one.
	remembered = 10 * time.Minute
	// rate is how many bytes of pages are written in a second, in the long run.
	rate = 64 << 10
	// flushInterval is how long pages are collected at least.
	flushInterval = 5 * time.Second
)

// follower is how the catalog uses one registry.
type follower struct {
	name      string
	of        *connectorv1alpha1.Registry
	publishes bool
	client    *registryclient.Client
	publisher *registryclient.Publisher
	watcher   *registryclient.Watcher
	cache     *pages.Cache
	enrolment registryv1.Enrolment
	// bounds is how much is kept of what the registry shows.
	bounds listings.Bounds

	stop    context.CancelFunc
	running sync.WaitGroup
	// flushAt is when pages may be written again. It is for the controller alone.
	flushAt time.Time

	mu     sync.Mutex
	report watching
}

// watching is how following a registry goes.
type watching struct {
	// reached is whether the registry was followed to where it is since the last failure.
	reached bool
	// failure is why it is not followed; nil if it is, or not yet.
	failure error
	// lie is what the registry has shown last that is not believed, and when.
	misbehaviour error
	misbehavedAt time.Time
	// leftOut is how much of what the registry shows there is no room for.
	leftOut int
}

// newFollower returns a follower that has not begun. The error is about the spec.
func (c *Catalog) newFollower(registry *connectorv1alpha1.Registry, token string, bounds listings.Bounds) (*follower, error) {
	config, err := c.tls(registry.Spec)
	if err != nil {
		return nil, err
	}
	remote, err := registryclient.New(registry.Spec.URL, config)
	if err != nil {
		return nil, fmt.Errorf("spec.url: %w", err)
	}
	if len(registry.Name) > pages.MaxName {
		return nil, fmt.Errorf("metadata.name has more than %d characters", pages.MaxName)
	}
	f := &follower{
		name: registry.Name, of: registry, client: remote, cache: pages.New(registry), bounds: bounds,
		publishes: registry.Spec.Publish == nil || *registry.Spec.Publish,
		enrolment: registryv1.Enrolment{Keys: c.cfg.Identity.Keys().Chain(), Announcement: c.cfg.Announcement, Token: token},
	}
	f.publisher = registryclient.NewPublisher(registryclient.PublisherConfig{
		Client: f.caller, Party: string(c.cfg.Identity.ID()), Backoff: c.cfg.Backoff,
		Tell: func(registryclient.PublisherStatus) {
			c.wake(f.name)
			c.cfg.Told()
		},
	})
	return f, nil
}

// tls returns how a registry is called, and known.
func (c *Catalog) tls(spec connectorv1alpha1.RegistrySpec) (*tls.Config, error) {
	own := party.TLS{Current: c.cfg.Identity.Key, Peer: party.Pin(spec.Fingerprint), Clock: c.cfg.Clock}.Client()
	if spec.Fingerprint != "" {
		return own, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetClientCertificate: own.GetClientCertificate}
	if spec.CABundle != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(spec.CABundle)) {
			return nil, errors.New("spec.caBundle has no certificate in PEM")
		}
	}
	return config, nil
}

// caller returns the client: it shows the current key by itself.
func (f *follower) caller() *registryclient.Client { return f.client }

// begin goes on from what is remembered of the registry.
func (c *Catalog) begin(ctx context.Context, f *follower, last pages.Stored) error { //nolint:contextcheck // It outlives the call.
	after, err := f.cache.Load(ctx, c.cfg.Reader, last)
	if err != nil {
		return err
	}
	if meta.IsStatusConditionFalse(f.of.Status.Conditions, connectorv1alpha1.ConditionComplete) {
		after = "" // What was left out is shown again, and there may be room for it.
	}
	backoff := c.cfg.Backoff
	backoff.Most = cmp.Or(backoff.Most, watchPause)
	f.watcher = registryclient.NewWatcher(registryclient.WatcherConfig{
		Client: f.caller, After: after, Backoff: backoff, Clock: c.cfg.Clock,
		Deliver: func(_ context.Context, changes []registryclient.Change, after string) ([]offer.Key, error) {
			leftOut := c.merge(f, changes)
			f.cache.Note(slices.Concat(changes, gone(leftOut)), after)
			if after != "" && f.reach() {
				c.wake(f.name)
			}
			return leftOut, nil
		},
		LeftOut: func(n int) {
			f.leaveOut(n)
			c.wake(f.name)
		},
		Report: func(err error) {
			if f.fail(err, c.cfg.Clock.Now()) {
				c.wake(f.name)
			}
		},
	})
	pages.Restore(f.watcher, f.cache.All(), func(restored []registryclient.Change) { f.watcher.Leave(c.merge(f, restored)) })
	c.tidy(f)
	var running context.Context
	running, f.stop = context.WithCancel(c.ctx)
	f.running.Go(func() { _ = f.publisher.Run(running) }) // Neither returns an error: what fails is tried again.
	f.running.Go(func() { _ = f.watcher.Run(running) })
	return nil
}

// tidy removes from the pages what is not kept: it is over, not true, or there is no room for it.
func (c *Catalog) tidy(f *follower) {
	for page := range f.cache.All() {
		var out []offer.Key
		for _, p := range page.Parties {
			out = append(out, offer.Key{Party: p.ID})
		}
		for _, o := range page.Offers {
			out = append(out, offer.Key{Party: o.Party, Offer: o.ID})
		}
		out = slices.DeleteFunc(out, func(key offer.Key) bool { return c.shows(f.name, key) })
		if len(out) > 0 {
			f.cache.Note(gone(out), "")
		}
	}
}

// gone returns that some things are not there any more.
func gone(keys []offer.Key) []registryclient.Change {
	changes := make([]registryclient.Change, len(keys))
	for i := range keys {
		changes[i].Gone = &keys[i]
	}
	return changes
}

// join ends the follower, and waits until it has ended.
func (f *follower) join() {
	if f.stop != nil {
		f.stop()
	}
	f.running.Wait()
	f.client.Close()
}

// want has the registry list signed offers, if anything is published there; nil leaves those that it lists.
func (f *follower) want(signed map[string]string) {
	wanted := registryclient.Wanted{Enrolment: f.enrolment, Offers: signed}
	if !f.publishes {
		wanted.Offers = map[string]string{}
	}
	f.publisher.Set(wanted)
}

// standing returns how an offer stands at the registry.
func (f *follower) standing(id, signed string) Standing {
	s := f.publisher.Status()
	switch {
	case s.Refused[id] != nil:
		return Standing{Refused: true, Outdated: s.Refused[id].Status == http.StatusConflict, Why: s.Refused[id].Error()}
	case s.Published[id] == signed && s.State == registryv1.Approved:
		return Standing{Listed: true}
	case s.Error != nil:
		return Standing{Why: s.Error.Error()}
	case s.State == registryv1.Approved:
		return Standing{Why: "it is on its way"}
	default:
		return Standing{Why: "the registry has not approved this cluster"}
	}
}

// reach notes that the registry was followed to where it is, and reports whether that is news.
func (f *follower) reach() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	news := !f.report.reached
	f.report.reached, f.report.failure = true, nil
	return news
}

// leaveOut notes how much there is no room for.
func (f *follower) leaveOut(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report.leftOut = n
}

// fail notes a report of the watcher, and reports whether it is news.
func (f *follower) fail(err error, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if misbehaviour := (*registryclient.MisbehaviourError)(nil); errors.As(err, &misbehaviour) {
		news := f.report.misbehaviour == nil || now.Sub(f.report.misbehavedAt) > time.Minute
		if news {
			f.report.misbehaviour, f.report.misbehavedAt = err, now
		}
		return news
	}
	news := f.report.reached || f.report.failure == nil
	f.report.reached, f.report.failure = false, err
	return news
}

// watching returns how following the registry goes.
func (f *follower) watching(now time.Time) watching {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.report.misbehaviour != nil && now.Sub(f.report.misbehavedAt) > remembered {
		f.report.misbehaviour = nil
	}
	return f.report
}

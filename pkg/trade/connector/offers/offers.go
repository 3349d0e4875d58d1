// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package offers is what this cluster sells: it signs its Offers with what is left of them, has registries list them, and tells a
// negotiation what can be bought and by whom.
//
// It does not negotiate, and does not know how registries are told.
package offers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/catalog"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/kpisource"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/wake"
	"github.com/capacitorset/liqo-broker/pkg/wake/wakequeue"
)

const (
	// unguardedAgain is how often a cluster is looked at that is not guarded.
	unguardedAgain = 5 * time.Second
	// lookAgain is how often the capacity is counted when nothing else happens.
	lookAgain = 30 * time.Second
	// availabilityPause is how long an offer stays as it was signed while only its availability changes.
	availabilityPause = 5 * time.Second
	// measuredPause is how long it stays while only what was measured changes.
	measuredPause = 5 * time.Minute
	// outdatedPause is how long an offer stays as it was signed though a registry wants a higher revision.
	outdatedPause = time.Minute
	// leap is how many times further ahead of the clock its revision is then each time, and maxAhead how far at most: what was signed before
	// that is over.
	leap, maxAhead = 16, 400 * 24 * time.Hour
	// countedFor is for how long a capacity that was counted is good for negotiations.
	countedFor = 2 * time.Second
)

// Registries is where offers are listed: a *catalog.Catalog. It is called concurrently.
type Registries interface {
	// SetOffers replaces the signed offers that are to be listed, by their IDs.
	SetOffers(signed map[string]string)
	// Standings returns how an offer, as it is signed, stands at each registry.
	Standings(id, signed string) map[string]catalog.Standing
}

// Config is what a Reconciler needs. All but Attributes, Covered, Guarded, Measured, Changed and Events must be
// there.
type Config struct {
	// Client writes, and Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// Party is the seller, and Key returns its current key.
	Party party.ID
	Key   func() party.Key
	// Kind is what this connector sells: offers of another kind make no sense.
	Kind connectorv1alpha1.SellerKind
	// Ledger returns what is sold, and Capacity what there is, with what is sold.
	Ledger     func(ctx context.Context) (ledger.Ledger, error)
	Capacity   capacity.Source
	Registries Registries
	// Attributes returns what of its nodes the offers of devices tell; nil tells nothing.
	Attributes func(context.Context) (capacity.Attributes, error)
	// Covered returns what the cluster lacks of what it has sold; nil says nothing of it.
	Covered capacity.Covered
	// Guarded returns an error that says what would not keep buyers in bounds: nothing is for sale then. Nil is for a cluster that is.
	Guarded func(context.Context) error
	// Measured returns what a broker tells of what it sells; nil tells nothing.
	Measured kpisource.Source
	// Changed is set when what is sold, what there is to sell, or what registries list may have changed. The zero Signal never is.
	Changed wake.Signal
	// Events are written about objects when their conditions change; nil writes none.
	Events conditions.Events
	Clock  clock.PassiveClock
}

// Reconciler is what this cluster sells. It can be used concurrently.
type Reconciler struct {
	cfg Config

	// loaded is closed after the offers were looked at for the first time.
	loaded    chan struct{}
	once      sync.Once
	mu        sync.RWMutex
	published map[string]item

	// revisions are those that were signed last, by offer, while the clock has not passed them. Only Reconcile uses them.
	revisions map[string]int64

	counting sync.Mutex
	counted  corev1.ResourceList
	at       time.Time
}

// item is an offer, as it was looked at last.
type item struct {
	spec *connectorv1alpha1.Offer
	// listing is the zero one if the offer is not for sale.
	listing offer.Signed
	rules   *negotiation.Rules
	// wanted is what the offer says, also if it is not for sale; the zero one if it makes no sense.
	wanted offer.Offer
}

var (
	_ negotiation.Offers    = (*Reconciler)(nil)
	_ negotiation.Admission = (*Reconciler)(nil)
)

// New returns a Reconciler that has not looked at any offer yet.
func New(cfg Config) (*Reconciler, error) {
	if cfg.Client == nil || cfg.Reader == nil || cfg.Party == "" || cfg.Key == nil || cfg.Kind == "" || cfg.Ledger == nil ||
		cfg.Capacity == nil ||
		cfg.Registries == nil || cfg.Clock == nil {
		return nil, errors.New("offers need a client, a reader, a party with a key, a kind, a ledger, a capacity, registries and a clock")
	}
	if cfg.Measured == nil {
		cfg.Measured = func(context.Context, time.Time) ([]offer.KPI, error) { return nil, nil }
	}
	if cfg.Attributes == nil {
		cfg.Attributes = func(context.Context) (capacity.Attributes, error) { return capacity.Attributes{}, nil }
	}
	if cfg.Guarded == nil {
		cfg.Guarded = func(context.Context) error { return nil }
	}
	return &Reconciler{cfg: cfg, loaded: make(chan struct{}), published: map[string]item{}, revisions: map[string]int64{}}, nil
}

// Setup registers the controller of the Reconciler that it returns with a manager. It looks at all offers together: what one sells, the
// others lack.
func Setup(mgr ctrl.Manager, cfg Config) (*Reconciler, error) {
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	all := reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}
	err = ctrl.NewControllerManagedBy(mgr).Named("offer").
		Watches(&connectorv1alpha1.Offer{}, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{all}
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(wakequeue.Source(cfg.Changed, func(_ context.Context, queue wakequeue.Queue) { queue.Add(all) })).
		WatchesRawSource(source.Func(func(_ context.Context, queue wakequeue.Queue) error {
			queue.Add(all) // Without any offer, there is no event.
			return nil
		})).
		Complete(s)
	if err != nil {
		return nil, fmt.Errorf("set up the controller of offers: %w", err)
	}
	return s, nil
}

// getItem returns an offer, once all were looked at.
func (s *Reconciler) getItem(ctx context.Context, id string) (item, error) {
	select {
	case <-s.loaded:
	case <-ctx.Done():
		return item{}, fmt.Errorf("wait for the offers: %w", ctx.Err())
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, ok := s.published[id]
	if !ok {
		return item{}, fmt.Errorf("offer %.63q: %w", id, negotiation.ErrNotOffered)
	}
	return found, nil
}

// Offer implements negotiation.Offers.
func (s *Reconciler) Offer(ctx context.Context, id string) (offer.Signed, error) {
	found, err := s.getItem(ctx, id)
	if err == nil && (found.listing.JWS == "" || !s.cfg.Clock.Now().Before(found.listing.ValidUntil)) {
		err = fmt.Errorf("offer %.63q: %w", id, negotiation.ErrNotOffered)
	}
	return found.listing, err
}

// Limits implements negotiation.Offers. An offer that is not for sale any more has limits for who has bought of it.
func (s *Reconciler) Limits(ctx context.Context, id, planID string) (ledger.Limits, error) {
	found, err := s.getItem(ctx, id)
	if err != nil {
		return ledger.Limits{}, err
	}
	for i := range found.spec.Spec.Plans {
		if plan := &found.spec.Spec.Plans[i]; string(plan.ID) == planID {
			has, err := s.capacity(ctx)
			return ledger.Limits{Stock: plan.Stock, Capacity: has}, err
		}
	}
	return ledger.Limits{}, fmt.Errorf("plan %.63q of offer %.63q: %w", planID, id, negotiation.ErrNotOffered)
}

// Admit implements negotiation.Admission.
func (s *Reconciler) Admit(ctx context.Context, a negotiation.Application) (contract.Verdict, string, error) {
	found, err := s.getItem(ctx, a.Terms.Offer)
	switch {
	case err != nil:
		return contract.Deny, "", err
	case found.rules == nil:
		return contract.Ask, "", nil // Nobody can tell what the rules were meant to say.
	case a.Offer.ID == "":
		a.Offer = found.wanted // It is asked for new terms of what is not for sale any more.
	}
	books, err := s.cfg.Ledger(ctx)
	if err != nil {
		return "", "", fmt.Errorf("read what party %s holds: %w", a.Buyer, err)
	}
	a.Held = books.Of(string(a.Buyer), a.Terms.ID, s.cfg.Clock.Now())
	return found.rules.Admit(ctx, a)
}

// capacity returns what there is to sell, counted a moment ago at most.
func (s *Reconciler) capacity(ctx context.Context) (corev1.ResourceList, error) {
	s.counting.Lock()
	defer s.counting.Unlock()
	now := s.cfg.Clock.Now()
	if age := now.Sub(s.at); s.counted == nil || age < 0 || age > countedFor {
		counted, err := s.cfg.Capacity(ctx)
		if err != nil {
			return nil, fmt.Errorf("count what there is to sell: %w", err)
		}
		s.counted, s.at = counted, now
	}
	return s.counted, nil
}

// rules compiles who may buy an offer. The error names the rule.
func rules(of connectorv1alpha1.Buyers) (*negotiation.Rules, error) {
	all := make([]negotiation.Rule, 0, len(of.Rules))
	for _, rule := range of.Rules {
		all = append(all, negotiation.Rule{Expression: rule.Expression, Verdict: verdict(rule.Verdict), Reason: rule.Reason})
	}
	compiled, err := negotiation.NewRules(all, verdict(of.Otherwise))
	if err != nil {
		return nil, fmt.Errorf("spec.buyers: %w", err)
	}
	return compiled, nil
}

// verdict returns what a contract calls a verdict. Whoever says nothing wants to be asked.
func verdict(v connectorv1alpha1.Verdict) contract.Verdict {
	return contract.Verdict(cmp.Or(v, connectorv1alpha1.VerdictAsk))
}

// readSigned returns an offer as it was signed by a key; false if it was not.
func readSigned(signed string, key party.Key) (offer.Signed, bool) {
	before, err := offer.ReadSigned(signed, func(jws, typ string, into any) (int, error) {
		return 0, party.Verify(jws, typ, key.Public(), into)
	})
	return before, err == nil
}

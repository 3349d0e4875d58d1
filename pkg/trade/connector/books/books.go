// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package books keeps the books of a seller in Kubernetes: a Sale for each contract, and the one SalesLedger. It does not decide what
// becomes of contracts, nor does it grant anything.
package books

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
)

// BuyerLabel is the label of Sales with the buyer, by which they are counted.
const BuyerLabel = "brokering.liqo.io/buyer"

// pollInterval is how long a change by another process stays unseen by Wait without Watch.
const pollInterval = 10 * time.Second

// lately is how old a ledger is at most by which nothing is written.
const lately = 2 * time.Second

var (
	// ErrUnreadable means that what is stored of a contract cannot be read, or is another contract's. Nothing is written over it.
	ErrUnreadable = errors.New("unreadable record")
	// ErrTooLarge means that a record or the ledger is larger than what can be stored.
	ErrTooLarge = errors.New("too large to be stored")
)

// Parties knows who parties are. It is called concurrently.
type Parties interface {
	// Party returns a party, and false if no registry has shown it.
	Party(id party.ID) (registryclient.Party, bool)
}

// Config is what a Store needs.
type Config struct {
	// Client writes. It may read from a cache.
	Client client.Client
	// Reader reads from the API server, and not from a cache: what it returns is decided upon.
	Reader client.Reader
	// Parties is nil if nobody is known.
	Parties Parties
}

// Store keeps the records of a seller and its ledger in Kubernetes. It can be used concurrently, and by several processes.
type Store struct {
	cfg  Config
	seen seen

	mu      sync.Mutex
	waiting map[string]*waiters // by the name of the Sale

	// last is the ledger as it was read or written last, and at is when.
	lastMu sync.Mutex
	last   ledger.Ledger
	at     time.Time
}

// waiters are those that wait for a change of one Sale.
type waiters struct {
	changed chan struct{}
	count   int
}

var _ negotiation.Store = (*Store)(nil)

// New returns a Store.
func New(cfg Config) (*Store, error) {
	if cfg.Client == nil || cfg.Reader == nil {
		return nil, errors.New("books need a client and a reader")
	}
	return &Store{
		cfg: cfg, waiting: map[string]*waiters{}, seen: newSeen(clock.RealClock{}),
	}, nil
}

// Name returns the name of the Sale of a contract.
func Name(key contract.Key) string {
	sum := sha256.Sum256([]byte(key.String()))
	return "s-" + hex.EncodeToString(sum[:])[:32]
}

// Get implements negotiation.Store. The error is ErrUnreadable if the record is none.
func (s *Store) Get(ctx context.Context, key contract.Key) (*contract.Record, error) {
	_, record, err := s.sale(ctx, key)
	return record, err
}

// sale returns the Sale of a contract and its record; nil if there is none.
func (s *Store) sale(ctx context.Context, key contract.Key) (*connectorv1alpha1.Sale, *contract.Record, error) {
	sale := &connectorv1alpha1.Sale{}
	err := s.cfg.Reader.Get(ctx, client.ObjectKey{Name: Name(key)}, sale)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get the sale of contract %s: %w", key, err)
	}
	if Key(sale) != key {
		return nil, nil, fmt.Errorf("sale %s is of contract %s, not of %s: %w", sale.Name, Key(sale), key, ErrUnreadable)
	}
	record, err := Record(sale)
	return sale, record, err
}

// books returns the ledger, as an object and as a value. The object has no resource version if it is not stored.
func (s *Store) books(ctx context.Context) (*connectorv1alpha1.SalesLedger, ledger.Ledger, error) {
	stored := &connectorv1alpha1.SalesLedger{}
	err := s.cfg.Reader.Get(ctx, client.ObjectKey{Name: connectorv1alpha1.LedgerName}, stored)
	if apierrors.IsNotFound(err) {
		s.remember(ledger.Ledger{})
		return &connectorv1alpha1.SalesLedger{ObjectMeta: metav1.ObjectMeta{Name: connectorv1alpha1.LedgerName}}, ledger.Ledger{}, nil
	}
	if err != nil {
		return nil, ledger.Ledger{}, fmt.Errorf("get the ledger of sales: %w", err)
	}
	held := readLedger(stored)
	s.remember(held)
	return stored, held, nil
}

// remember keeps the ledger as it was read or written.
func (s *Store) remember(held ledger.Ledger) {
	s.lastMu.Lock()
	defer s.lastMu.Unlock()
	s.last, s.at = held, s.seen.clock.Now()
}

// Ledger returns the ledger as it is stored.
func (s *Store) Ledger(ctx context.Context) (ledger.Ledger, error) {
	_, held, err := s.books(ctx)
	return held, err
}

// Lately returns the ledger as it is stored, or was two seconds ago at most: with many contracts it is large. Nothing is to be written by
// it.
func (s *Store) Lately(ctx context.Context) (ledger.Ledger, error) {
	s.lastMu.Lock()
	held, age := s.last, s.seen.clock.Now().Sub(s.at)
	read := !s.at.IsZero()
	s.lastMu.Unlock()
	if read && age >= 0 && age < lately {
		return held, nil
	}
	return s.Ledger(ctx)
}

// Update implements negotiation.Store. When somebody else writes the ledger after the record was written, only the hold of the contract is
// replaced in it, and nothing if that or the record is not what Update has written: whoever changed it takes care of it then. The error
// is ErrUnreadable or ErrTooLarge for what cannot be read or stored.
func (s *Store) Update(ctx context.Context, key contract.Key, decide negotiation.Decide) (contract.Record, error) {
	for {
		if err := ctx.Err(); err != nil {
			return contract.Record{}, fmt.Errorf("update contract %s: %w", key, err)
		}
		stored, decided, err := s.attempt(ctx, key, decide)
		if !conflicts(err) {
			if err != nil {
				return contract.Record{}, err
			}
			return stored, decided
		}
	}
}

// conflicts reports whether somebody else was faster.
func conflicts(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// attempt decides once and writes it. Decided is the error of decide.
func (s *Store) attempt(ctx context.Context, key contract.Key, decide negotiation.Decide) (written contract.Record, decided, err error) {
	// The ledger is read first. What a record that is newer than it needs was written into the ledger in between, so that this one cannot be
	// written over; an old record with a newer ledger would add or release what is another record's.
	stored, held, err := s.books(ctx)
	if err != nil {
		return contract.Record{}, nil, err
	}
	sale, record, err := s.sale(ctx, key)
	if err != nil {
		return contract.Record{}, nil, err
	}
	result, decided := decide(record, held)
	if err := s.writeLedger(ctx, stored, held, result.Before); err != nil {
		return contract.Record{}, nil, err
	}
	if result.Record.Version > 0 && (record == nil || record.Version != result.Record.Version) {
		if sale, err = s.writeRecord(ctx, sale, result.Record); err != nil {
			return contract.Record{}, nil, err
		}
		s.seen.note(sale)
		s.wake(sale.Name)
	}
	err = s.writeLedger(ctx, stored, result.Before, result.After)
	if conflicts(err) && sale != nil {
		err = s.shrink(ctx, sale, key, result)
	}
	if err != nil {
		return contract.Record{}, nil, err
	}
	return result.Record, decided, nil
}

// writeLedger writes a ledger over that which an object has, if it differs. The object is then as it is stored.
func (s *Store) writeLedger(ctx context.Context, object *connectorv1alpha1.SalesLedger, from, to ledger.Ledger) error {
	if to.Equal(from) {
		return nil
	}
	if len(to.Holds) > maxHolds {
		return fmt.Errorf("write a ledger of %d holds, more than %d: %w", len(to.Holds), maxHolds, ErrTooLarge)
	}
	changed := object.DeepCopy()
	changed.Holds = writeLedger(to)
	var err error
	if changed.ResourceVersion == "" {
		err = s.cfg.Client.Create(ctx, changed)
	} else {
		err = s.cfg.Client.Update(ctx, changed)
	}
	if err != nil {
		return fmt.Errorf("write the ledger of sales: %w", err)
	}
	*object = *changed
	s.remember(to)
	return nil
}

// writeRecord writes a record over a Sale as it was read; nil is that there was none. It returns the Sale as it is stored.
func (s *Store) writeRecord(ctx context.Context, sale *connectorv1alpha1.Sale, record contract.Record) (*connectorv1alpha1.Sale, error) {
	text, err := encode(record)
	if err != nil {
		return nil, err
	}
	buyer, known, err := s.buyer(ctx, party.ID(record.Key.Buyer), sale)
	if err != nil {
		return nil, err
	}
	if sale == nil {
		labels := map[string]string{BuyerLabel: record.Key.Buyer}
		if keys, err := party.ParseKeys(buyer.Keys); known && err == nil {
			labels[BuyerKeyLabel] = party.Fingerprint(keys.Current())
		}
		sale = &connectorv1alpha1.Sale{
			ObjectMeta: metav1.ObjectMeta{Name: Name(record.Key), Labels: labels},
			Spec: connectorv1alpha1.SaleSpec{
				Buyer: connectorv1alpha1.PartyID(record.Key.Buyer), ContractID: connectorv1alpha1.Label(record.Key.ID), DecisionRevision: 1,
			},
		}
		controllerutil.AddFinalizer(sale, connectorv1alpha1.Finalizer)
		if err := s.cfg.Client.Create(ctx, sale); err != nil {
			return nil, fmt.Errorf("create the sale of contract %s: %w", record.Key, err)
		}
	}
	sale = sale.DeepCopy()
	describeSale(&sale.Status, record, text)
	if known {
		sale.Status.Buyer = buyer
	}
	if err := s.cfg.Client.Status().Update(ctx, sale); err != nil {
		return nil, fmt.Errorf("write the record of contract %s: %w", record.Key, err)
	}
	return sale, nil
}

// shrink replaces the hold of a contract in a ledger that others have changed after the record was written.
func (s *Store) shrink(ctx context.Context, written *connectorv1alpha1.Sale, key contract.Key, result contract.Result) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("give back what contract %s held: %w", key, err)
		}
		stored, held, err := s.books(ctx)
		if err != nil {
			return err
		}
		sale, _, err := s.sale(ctx, key)
		if err != nil || sale == nil || sale.Status.Record != written.Status.Record {
			return err
		}
		before, had := result.Before.Get(key)
		now, has := held.Get(key)
		if had != has || !now.Equal(before) {
			return nil
		}
		next := held.Release(key)
		if after, keeps := result.After.Get(key); keeps {
			next = held.Keep(after)
		}
		if err = s.writeLedger(ctx, stored, held, next); !conflicts(err) {
			return err
		}
	}
}

// Tidy removes from the ledger what was reserved until now or earlier, cuts what lasts longer than reservations can, and releases what
// contracts hold that are not stored. It can be called at any time: what is done meanwhile is not lost.
func (s *Store) Tidy(ctx context.Context, now time.Time, longest time.Duration) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("tidy the ledger of sales: %w", err)
		}
		// The ledger is read first: a contract that is not in the list holds nothing confirmed in it, since a record is written between.
		stored, held, err := s.books(ctx)
		if err != nil {
			return err
		}
		known, err := s.names(ctx)
		if err != nil {
			return err
		}
		tidy := held.Lapse(now, longest).Prune(func(key contract.Key) bool { return known[Name(key)] })
		if err = s.writeLedger(ctx, stored, held, tidy); !conflicts(err) {
			return err
		}
	}
}

// pageOfNames is how many Sales are listed at once for their names: what they say would take a hundred megabytes.
const pageOfNames = 500

// names returns the names of all Sales that are stored.
func (s *Store) names(ctx context.Context) (map[string]bool, error) {
	known := map[string]bool{}
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(connectorv1alpha1.GroupVersion.WithKind("SaleList"))
	for {
		if err := s.cfg.Reader.List(ctx, page, client.Limit(pageOfNames), client.Continue(page.Continue)); err != nil {
			return nil, fmt.Errorf("list the names of sales: %w", err)
		}
		for i := range page.Items {
			known[page.Items[i].Name] = true
		}
		if page.Continue == "" {
			return known, nil
		}
	}
}

// Wait implements negotiation.Store. It returns also when the record cannot be read, which the next Get says.
func (s *Store) Wait(ctx context.Context, key contract.Key, after int64) error {
	for {
		changed, leave := s.enter(Name(key))
		newer, watched, err := s.newer(ctx, key, after)
		if err != nil || newer {
			leave()
			return err
		}
		poll := make(<-chan time.Time)
		if !watched {
			poll = time.After(pollInterval)
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-changed:
		case <-poll:
		}
		leave()
		if err != nil {
			return fmt.Errorf("wait for contract %s: %w", key, err)
		}
	}
}

// newer reports whether a record has a higher version than after. Watched is whether a change of it will wake those who wait.
func (s *Store) newer(ctx context.Context, key contract.Key, after int64) (newer, watched bool, err error) {
	k, found, watched := s.seen.get(Name(key))
	if watched {
		return found && k.Record != nil && k.Record.Version > after, true, nil
	}
	record, err := s.Get(ctx, key)
	return record != nil && record.Version > after, false, err
}

// enter returns a channel that is closed at the next change of a Sale. Leave must be called once.
func (s *Store) enter(name string) (changed <-chan struct{}, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	those := s.waiting[name]
	if those == nil {
		those = &waiters{changed: make(chan struct{})}
		s.waiting[name] = those
	}
	those.count++
	return those.changed, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if those.count--; those.count == 0 && s.waiting[name] == those {
			delete(s.waiting, name)
		}
	}
}

// wake wakes those who wait for a Sale.
func (s *Store) wake(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if those := s.waiting[name]; those != nil {
		close(those.changed)
		delete(s.waiting, name)
	}
}

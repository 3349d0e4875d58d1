// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// Snapshot returns everything, as it was at one revision.
func (s *Store) Snapshot(ctx context.Context) (Snapshot, error) {
	var taken Snapshot
	err := s.read(ctx, func(tx *sql.Tx) (err error) {
		if taken.Revision, _, err = counters(ctx, tx); err != nil {
			return err
		}
		if taken.Eras, err = readEras(ctx, tx); err != nil {
			return err
		}
		if taken.Parties, err = parties(ctx, tx, ``); err != nil {
			return err
		}
		taken.Offers, err = all(ctx, tx, scanOffer, `SELECT `+offerColumns+` FROM offers`)
		return err
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("take a snapshot: %w", err)
	}
	// Here and not in SQL, since databases order text as their administrators like.
	slices.SortFunc(taken.Parties, func(a, b Party) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(taken.Offers, func(a, b StoredOffer) int { return cmp.Or(cmp.Compare(a.Party, b.Party), cmp.Compare(a.ID, b.ID)) })
	return taken, nil
}

// counters returns the revision of the last change, and that of the last deletion that is forgotten.
func counters(ctx context.Context, tx querier) (revision, compacted int64, err error) {
	if err := tx.QueryRowContext(ctx, `SELECT revision, compacted FROM registry`).Scan(&revision, &compacted); err != nil {
		return 0, 0, fmt.Errorf("read the revision: %w", err)
	}
	return revision, compacted, nil
}

// ChangesAfter returns the first changes after a revision, in their order, and at most limit of them; none if there are none yet. Of
// several changes of one offer or one party it has the last only, so that revisions may be left out. errors.Is finds ErrCompacted.
func (s *Store) ChangesAfter(ctx context.Context, after int64, limit int) ([]Change, error) {
	var changes []Change
	err := s.read(ctx, func(tx *sql.Tx) error {
		revision, compacted, err := counters(ctx, tx)
		switch {
		case err != nil:
			return err
		case after < compacted:
			return fmt.Errorf("deletions up to revision %d are forgotten: %w", compacted, ErrCompacted)
		case after > revision:
			return fmt.Errorf("the last revision is %d: %w", revision, ErrCompacted)
		}
		for _, read := range []func(context.Context, querier, int64, int) ([]Change, error){partiesAfter, offersAfter, deletionsAfter} {
			some, err := read(ctx, tx, after, limit)
			if err != nil {
				return err
			}
			changes = append(changes, some...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read changes after revision %d: %w", after, err)
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.RegistryRevision, b.RegistryRevision) })
	return changes[:min(max(limit, 0), len(changes))], nil
}

const afterRevision = ` WHERE registry_revision > $1 ORDER BY registry_revision LIMIT $2`

func partiesAfter(ctx context.Context, tx querier, after int64, limit int) ([]Change, error) {
	return all(ctx, tx, func(from row) (Change, error) {
		p, err := scanParty(from)
		return Change{RegistryRevision: p.RegistryRevision, Kind: PartyUpsert, PartyID: p.ID, Party: &p}, err
	}, `SELECT `+partyColumns+` FROM parties`+afterRevision, after, limit)
}

func offersAfter(ctx context.Context, tx querier, after int64, limit int) ([]Change, error) {
	return all(ctx, tx, func(from row) (Change, error) {
		o, err := scanOffer(from)
		return Change{RegistryRevision: o.RegistryRevision, Kind: Upsert, PartyID: o.Party, OfferID: o.ID, Offer: &o}, err
	}, `SELECT `+offerColumns+` FROM offers`+afterRevision, after, limit)
}

func deletionsAfter(ctx context.Context, tx querier, after int64, limit int) ([]Change, error) {
	return all(ctx, tx, func(from row) (Change, error) {
		var c Change
		err := from.Scan(&c.RegistryRevision, &c.PartyID, &c.OfferID)
		c.Kind = Delete
		if c.OfferID == "" {
			c.Kind = PartyDeleted
		}
		return c, err
	}, `SELECT registry_revision, party, offer FROM deletions`+afterRevision, after, limit)
}

// Compact forgets deletions that are older than the last keep revisions, and returns how many they were. Who follows from before the last
// of them then gets ErrCompacted.
func (s *Store) Compact(ctx context.Context, keep int64) (forgotten int, err error) {
	err = s.write(ctx, func(w *writing) error {
		var last int64
		if err := w.QueryRowContext(ctx, `SELECT count(*), coalesce(max(registry_revision), 0) FROM deletions WHERE registry_revision <= $1`,
			w.revision-keep).Scan(&forgotten, &last); err != nil {
			return fmt.Errorf("look for old deletions: %w", err)
		}
		if forgotten == 0 {
			return nil
		}
		if _, err := w.ExecContext(ctx, `DELETE FROM deletions WHERE registry_revision <= $1`, last); err != nil {
			return fmt.Errorf("forget deletions: %w", err)
		}
		if _, err := w.ExecContext(ctx, `UPDATE registry SET compacted = $1`, last); err != nil {
			return fmt.Errorf("note the compaction: %w", err)
		}
		return nil
	})
	return forgotten, err
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const offerColumns = `party, id, keys, revision, jws, digest, valid_until, registry_revision`

// batch is how many offers one transaction deletes, so that writers beside it do not wait long.
const batch = 500

// scanOffer reads the columns of offerColumns.
func scanOffer(from row) (StoredOffer, error) {
	var o StoredOffer
	var until int64
	if err := from.Scan(&o.Party, &o.ID, &o.Keys, &o.Revision, &o.JWS, &o.Digest, &until, &o.RegistryRevision); err != nil {
		return StoredOffer{}, err
	}
	o.ValidUntil = fromMicros(until)
	return o, nil
}

// offer reads one offer. errors.Is finds ErrNotFound.
func offer(ctx context.Context, from querier, party, name string) (StoredOffer, error) {
	if err := checkKey(party, name); err != nil {
		return StoredOffer{}, err
	}
	o, err := scanOffer(from.QueryRowContext(ctx, `SELECT `+offerColumns+` FROM offers WHERE party = $1 AND id = $2`, party, name))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return StoredOffer{}, fmt.Errorf("offer %q of party %q: %w", name, party, err)
	}
	return o, nil
}

// checkKey refuses what names no offer.
func checkKey(party, offer string) error {
	return checkTexts(id("the ID of the party", party), id("the ID of the offer", offer))
}

// PutOffer stores an offer of a party, and returns it with its digest and its registry revision. The same document again changes nothing.
// A document that was deleted by its owner comes back with a greater revision only; one that has expired, or was dropped, as it was too.
// Documents are ordered by the length of the chain of keys and then by their revision, as announcements are. One that was signed with a key
// that is not the party's current one any more is not taken: ErrChain.
//
// errors.Is finds ErrInvalid, ErrStale, ErrChain, ErrNotFound (the party), ErrNotApproved, ErrRevoked, and ErrLimit if a new offer would be
// one more than limit of this party.
func (s *Store) PutOffer(ctx context.Context, o StoredOffer, limit int) (stored StoredOffer, err error) {
	if err := checkKey(o.Party, o.ID); err != nil {
		return StoredOffer{}, err
	}
	if err := checkTexts(document("the document", o.JWS)); err != nil {
		return StoredOffer{}, fmt.Errorf("offer %q of party %q: %w", o.ID, o.Party, err)
	}
	if o.Revision <= 0 {
		return StoredOffer{}, fmt.Errorf("offer %q of party %q: %w: revision %d", o.ID, o.Party, ErrInvalid, o.Revision)
	}
	o.Digest, o.ValidUntil = Digest(o.JWS), fromMicros(micros(o.ValidUntil))
	err = s.write(ctx, func(w *writing) error {
		stored, err = w.putOffer(ctx, o, limit)
		return err
	})
	return stored, err
}

// putOffer compares an offer with what is stored, and stores it.
func (w *writing) putOffer(ctx context.Context, o StoredOffer, limit int) (StoredOffer, error) {
	owner, err := party(ctx, w, o.Party)
	if err == nil {
		err = mayPublish(owner)
	}
	if err == nil && o.Keys != len(owner.Keys) {
		err = fmt.Errorf("offer %q of party %q is signed with key %d of %d: %w", o.ID, o.Party, o.Keys, len(owner.Keys), ErrChain)
	}
	if err != nil {
		return StoredOffer{}, err
	}
	known, err := offer(ctx, w, o.Party, o.ID)
	if errors.Is(err, ErrNotFound) {
		return w.addOffer(ctx, o, limit)
	}
	switch {
	case err != nil:
		return StoredOffer{}, err
	case o.Keys == known.Keys && o.Revision == known.Revision && o.Digest == known.Digest:
		return known, nil
	case !newer(o.Keys, o.Revision, known.Keys, known.Revision):
		return StoredOffer{}, stale(o, known.Revision)
	}
	o.RegistryRevision = w.next()
	if _, err := w.ExecContext(ctx, `UPDATE offers SET keys = $3, revision = $4, jws = $5, digest = $6, valid_until = $7, registry_revision = $8
		WHERE party = $1 AND id = $2`, o.Party, o.ID, o.Keys, o.Revision, o.JWS, o.Digest, micros(o.ValidUntil), o.RegistryRevision); err != nil {
		return StoredOffer{}, fmt.Errorf("change offer %q of party %q: %w", o.ID, o.Party, err)
	}
	return o, nil
}

// stale is the error of a document that comes after one with another revision.
func stale(o StoredOffer, known int64) error {
	return fmt.Errorf("offer %q of party %q: revision %d after %d: %w", o.ID, o.Party, o.Revision, known, ErrStale)
}

// addOffer stores an offer that is not there.
func (w *writing) addOffer(ctx context.Context, o StoredOffer, limit int) (StoredOffer, error) {
	// What was deleted is remembered.
	var revision, withdrawn int64
	var keys int
	var digest string
	err := w.QueryRowContext(ctx, `SELECT keys, revision, digest, withdrawn FROM deletions WHERE party = $1 AND offer = $2`, o.Party, o.ID).
		Scan(&keys, &revision, &digest, &withdrawn)
	again := o.Keys == keys && o.Revision == revision && o.Digest == digest && withdrawn == 0
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return StoredOffer{}, fmt.Errorf("look whether offer %q of party %q was deleted: %w", o.ID, o.Party, err)
	case !newer(o.Keys, o.Revision, keys, revision) && !again:
		return StoredOffer{}, stale(o, revision)
	}

	// The party has room for one more.
	var count int
	if err := w.QueryRowContext(ctx, `SELECT count(*) FROM offers WHERE party = $1`, o.Party).Scan(&count); err != nil {
		return StoredOffer{}, fmt.Errorf("count the offers of party %q: %w", o.Party, err)
	}
	if count >= limit {
		return StoredOffer{}, fmt.Errorf("party %q has %d offers: %w", o.Party, count, ErrLimit)
	}

	// Here, and not among the deletions any more.
	if _, err := w.ExecContext(ctx, `DELETE FROM deletions WHERE party = $1 AND offer = $2`, o.Party, o.ID); err != nil {
		return StoredOffer{}, fmt.Errorf("bring back offer %q of party %q: %w", o.ID, o.Party, err)
	}
	o.RegistryRevision = w.next()
	if _, err := w.ExecContext(ctx, `INSERT INTO offers (`+offerColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		o.Party, o.ID, o.Keys, o.Revision, o.JWS, o.Digest, micros(o.ValidUntil), o.RegistryRevision); err != nil {
		return StoredOffer{}, fmt.Errorf("add offer %q of party %q: %w", o.ID, o.Party, err)
	}
	return o, nil
}

// Why an offer is removed: whether its owner has withdrawn it, or it was dropped without being asked.
const (
	dropped   = int64(0)
	withdrawn = int64(1)
)

// removeOffers deletes at most a batch of those offers that a condition selects, and returns how many they were. The condition's
// parameters begin at $1.
func (w *writing) removeOffers(ctx context.Context, why int64, condition string, args ...any) (int64, error) {
	base, n := w.revision, len(args)
	removed, err := w.affect(ctx, fmt.Sprintf(`INSERT INTO deletions (party, offer, keys, revision, digest, withdrawn, registry_revision)
		SELECT party, id, keys, revision, digest, CAST($%d AS BIGINT), CAST($%d AS BIGINT) + row_number() OVER (ORDER BY party, id)
		FROM offers WHERE %s ORDER BY party, id LIMIT %d`, n+1, n+2, condition, batch), append(args, why, base)...)
	if err != nil {
		return 0, fmt.Errorf("note the offers that are deleted: %w", err)
	}
	if removed == 0 {
		return 0, nil
	}
	gone, err := w.affect(ctx, `DELETE FROM offers WHERE (party, id) IN (SELECT party, offer FROM deletions WHERE registry_revision > $1)`, base)
	if err != nil {
		return 0, fmt.Errorf("delete offers: %w", err)
	}
	if gone != removed {
		return 0, fmt.Errorf("deleted %d offers, and noted %d", gone, removed)
	}
	w.revision += removed
	return removed, nil
}

// DeleteOffer deletes an offer of its owner. errors.Is finds ErrNotFound.
func (s *Store) DeleteOffer(ctx context.Context, party, id string) error {
	if err := checkKey(party, id); err != nil {
		return err
	}
	return s.write(ctx, func(w *writing) error {
		n, err := w.removeOffers(ctx, withdrawn, `party = $1 AND id = $2`, party, id)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("offer %q of party %q: %w", id, party, err)
		}
		return nil
	})
}

// ExpireOffers deletes the offers that are not valid any more at a time, and returns how many they were, also if it fails halfway.
func (s *Store) ExpireOffers(ctx context.Context, now time.Time) (int, error) {
	return s.drop(ctx, `valid_until <= $1`, micros(now))
}

// DropSilent deletes the offers of parties whose lease ran out before a time, and returns how many they were, also if it fails halfway. The
// parties stay, and may publish the same documents again.
func (s *Store) DropSilent(ctx context.Context, before time.Time) (int, error) {
	return s.drop(ctx, `party IN (SELECT p.id FROM parties p WHERE p.lease_until < $1)`, micros(before))
}

// drop deletes all offers of a condition, in batches.
func (s *Store) drop(ctx context.Context, condition string, args ...any) (int, error) {
	total := 0
	for {
		var n int64
		if err := s.write(ctx, func(w *writing) (err error) {
			n, err = w.removeOffers(ctx, dropped, condition, args...)
			return err
		}); err != nil {
			return total, err
		}
		total += int(n)
		if n < batch {
			return total, nil
		}
	}
}

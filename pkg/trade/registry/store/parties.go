// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

const partyColumns = `id, state, announcement, revision, key_chain, current_key, name, endpoint, enrolled_by, enrolled_at, network, lease_until,
	silent, registry_revision`

// row is what a query gives for each row.
type row interface{ Scan(into ...any) error }

// scanParty reads the columns of partyColumns.
func scanParty(from row) (Party, error) {
	var p Party
	var keys string
	var enrolled, lease, silent int64
	if err := from.Scan(&p.ID, &p.State, &p.Announcement, &p.Revision, &keys, &p.CurrentKey, &p.Name, &p.Endpoint, &p.EnrolledBy, &enrolled,
		&p.Network, &lease, &silent,
		&p.RegistryRevision); err != nil {
		return Party{}, err
	}
	if err := json.Unmarshal([]byte(keys), &p.Keys); err != nil {
		return Party{}, fmt.Errorf("read the chain of keys of party %q: %w", p.ID, err)
	}
	p.EnrolledAt, p.LeaseUntil, p.Silent = fromMicros(enrolled), fromMicros(lease), silent == 1
	return p, nil
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// party reads one party.
func party(ctx context.Context, from querier, name string) (Party, error) {
	if err := checkTexts(id("the ID of the party", name)); err != nil {
		return Party{}, err
	}
	p, err := scanParty(from.QueryRowContext(ctx, `SELECT `+partyColumns+` FROM parties WHERE id = $1`, name))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return Party{}, fmt.Errorf("party %q: %w", name, err)
	}
	return p, nil
}

// Party returns a party. errors.Is finds ErrNotFound.
func (s *Store) Party(ctx context.Context, id string) (Party, error) { return party(ctx, s.reader, id) }

// PutParty stores what a party announces, and returns the party as it is then. State is Pending or Approved; EnrolledBy and EnrolledAt
// count for a party that is new, or that was Pending and is now Approved. Nothing takes an approval away but Revoke. LeaseUntil counts if
// it is later than the lease that there is. The same announcement again changes nothing. Announcements are ordered by the length of the
// chain and then by their revision, so that who has had a key for a while can block nothing of who has replaced it.
//
// A new party that is Pending takes the place of the one of its network that has waited longest, if MaxWaitingEach of that wait already,
// and of the one that has waited longest of the network of which most do, if it would be one more than waiting.
//
// errors.Is finds ErrInvalid, ErrStale, ErrChain, ErrKey, ErrRevoked, and ErrLimit if none may wait, or if there would be more of
// OpenRegistry than may be.
func (s *Store) PutParty(ctx context.Context, p Party, waiting int) (stored Party, err error) {
	if err := checkParty(p); err != nil {
		return Party{}, err
	}
	err = s.write(ctx, func(w *writing) error {
		stored, err = w.putParty(ctx, p, waiting)
		return err
	})
	return stored, err
}

// AdmitByToken is PutParty for a party that shows the secret of a token, given as its Digest. A party that is not approved yet becomes so,
// and uses the token once, or nothing happens and errors.Is finds ErrToken; one that is approved uses none.
func (s *Store) AdmitByToken(ctx context.Context, p Party, digest string, now time.Time) (stored Party, err error) {
	p.State = Approved
	if err := errors.Join(checkParty(p), checkTexts(id("the digest of the token", digest))); err != nil {
		return Party{}, err
	}
	err = s.write(ctx, func(w *writing) error {
		known, err := party(ctx, w, p.ID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if known.State != Approved && known.State != Revoked {
			if err := useToken(ctx, w, digest, now); err != nil {
				return err
			}
		}
		stored, err = w.putParty(ctx, p, 0)
		return err
	})
	return stored, err
}

// checkParty refuses what must not be stored.
func checkParty(p Party) error {
	if err := checkTexts(id("the ID of the party", p.ID), id("the fingerprint of the current key", p.CurrentKey)); err != nil {
		return err
	}
	if p.State != Pending && p.State != Approved {
		return fmt.Errorf("party %q: %w: state %q", p.ID, ErrInvalid, p.State)
	}
	if p.Revision <= 0 {
		return fmt.Errorf("party %q: %w: revision %d", p.ID, ErrInvalid, p.Revision)
	}
	_, err := encodeKeys(p.Keys)
	err = errors.Join(err,
		checkTexts(document("the announcement", p.Announcement), line("the name", p.Name), line("the endpoint", p.Endpoint),
			line("the network", p.Network), line("how it was enrolled", p.EnrolledBy)))
	if err != nil {
		return fmt.Errorf("party %q: %w", p.ID, err)
	}
	return nil
}

// putParty compares an announcement with what is stored, and stores it.
func (w *writing) putParty(ctx context.Context, p Party, waiting int) (Party, error) {
	if err := w.ownKey(ctx, p); err != nil {
		return Party{}, err
	}
	known, err := party(ctx, w, p.ID)
	if errors.Is(err, ErrNotFound) {
		return w.addParty(ctx, p, waiting)
	}
	if err != nil {
		return Party{}, err
	}
	admitted := known.State == Pending && p.State == Approved
	same := known.Revision == p.Revision && known.Announcement == p.Announcement && len(known.Keys) == len(p.Keys)
	switch {
	case known.State == Revoked:
		return Party{}, fmt.Errorf("party %q: %w", p.ID, ErrRevoked)
	case len(p.Keys) < len(known.Keys) || !slices.Equal(p.Keys[:len(known.Keys)], known.Keys):
		return Party{}, fmt.Errorf("party %q: %w", p.ID, ErrChain)
	case !same && !newer(len(p.Keys), p.Revision, len(known.Keys), known.Revision):
		return Party{}, fmt.Errorf("party %q: announcement %d after %d: %w", p.ID, p.Revision, known.Revision, ErrStale)
	case same && !admitted:
		return known, nil
	}

	if admitted {
		known.State, known.EnrolledBy = Approved, p.EnrolledBy
	}
	known.Announcement, known.Revision, known.Keys, known.CurrentKey = p.Announcement, p.Revision, p.Keys, p.CurrentKey
	known.Name, known.Endpoint = p.Name, p.Endpoint
	if p.LeaseUntil.After(known.LeaseUntil) {
		known.LeaseUntil, known.Silent = fromMicros(micros(p.LeaseUntil)), false
	}
	return w.changeParty(ctx, known)
}

// ownKey refuses a current key that is another party's current or first one.
func (w *writing) ownKey(ctx context.Context, p Party) error {
	var other string
	err := w.QueryRowContext(ctx, `SELECT id FROM parties WHERE id <> $1 AND (current_key = $2 OR id = $2) LIMIT 1`, p.ID,
		p.CurrentKey).Scan(&other)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look whose key %q is: %w", p.CurrentKey, err)
	}
	return fmt.Errorf("party %q: %w", p.ID, ErrKey)
}

// newer reports whether a document counts more than another one of the same name: that of a longer chain of keys, or of the same one with
// the higher revision.
func newer(keys int, revision int64, thanKeys int, thanRevision int64) bool {
	return keys > thanKeys || keys == thanKeys && revision > thanRevision
}

// addParty stores a party that is new.
func (w *writing) addParty(ctx context.Context, p Party, waiting int) (Party, error) {
	if err := w.makeRoom(ctx, p, waiting); err != nil {
		return Party{}, err
	}
	// Who was forgotten may come back.
	if _, err := w.ExecContext(ctx, `DELETE FROM deletions WHERE party = $1 AND offer = ''`, p.ID); err != nil {
		return Party{}, fmt.Errorf("remember party %q: %w", p.ID, err)
	}
	p.EnrolledAt, p.LeaseUntil, p.Silent, p.RegistryRevision = fromMicros(micros(p.EnrolledAt)), fromMicros(micros(p.LeaseUntil)),
		false, w.next()
	keys, err := encodeKeys(p.Keys)
	if err != nil {
		return Party{}, err
	}
	if _, err := w.ExecContext(ctx, `INSERT INTO parties (`+partyColumns+
		`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		p.ID, string(p.State), p.Announcement, p.Revision, keys, p.CurrentKey, p.Name, p.Endpoint, p.EnrolledBy, micros(p.EnrolledAt), p.Network,
		micros(p.LeaseUntil), flag(p.Silent), p.RegistryRevision); err != nil {
		return Party{}, fmt.Errorf("add party %q: %w", p.ID, err)
	}
	return p, nil
}

// makeRoom makes room for a party that is new, or refuses it.
func (w *writing) makeRoom(ctx context.Context, p Party, waiting int) error {
	count := func(into *int, condition string, args ...any) error {
		if err := w.QueryRowContext(ctx, `SELECT count(*) FROM parties WHERE `+condition, args...).Scan(into); err != nil {
			return fmt.Errorf("count the parties: %w", err)
		}
		return nil
	}
	// Who lets itself in finds a bound. Who waits needs a place, and nobody else is kept out.
	var all, each int
	switch {
	case p.State == Approved && p.EnrolledBy == OpenRegistry:
		err := errors.Join(count(&all, `enrolled_by = $1`, OpenRegistry),
			count(&each, `enrolled_by = $1 AND network = $2`, OpenRegistry, p.Network))
		if err == nil && (all >= MaxOpen || each >= MaxOpenEach) {
			err = fmt.Errorf("party %q: %d parties have let themselves in, %d of this network: %w", p.ID, all, each, ErrLimit)
		}
		return err
	case p.State != Pending:
		return nil
	case waiting <= 0:
		return fmt.Errorf("party %q: nobody may wait for approval: %w", p.ID, ErrLimit)
	}
	if err := errors.Join(count(&all, `state = 'Pending'`), count(&each, `state = 'Pending' AND network = $1`, p.Network)); err != nil {
		return err
	}
	// One that waits makes room: the first of the same network if that has too many, else of the network with the most.
	from := p.Network
	switch {
	case each >= MaxWaitingEach:
	case all >= waiting:
		if err := w.QueryRowContext(ctx, `SELECT network FROM parties WHERE state = 'Pending' GROUP BY network ORDER BY count(*) DESC, network LIMIT 1`).Scan(&from); err != nil {
			return fmt.Errorf("look of which network most parties wait: %w", err)
		}
	default:
		return nil
	}
	_, err := w.forgetPending(ctx, `id IN (SELECT id FROM parties WHERE state = 'Pending' AND network = $1 ORDER BY enrolled_at, id LIMIT 1)`, from)
	return err
}

// changeParty stores a party that is there, with a new registry revision.
func (w *writing) changeParty(ctx context.Context, p Party) (Party, error) {
	p.RegistryRevision = w.next()
	keys, err := encodeKeys(p.Keys)
	if err != nil {
		return Party{}, err
	}
	if _, err := w.ExecContext(ctx, `UPDATE parties SET state = $2, announcement = $3, revision = $4, key_chain = $5, current_key = $6, name = $7, endpoint = $8,
		enrolled_by = $9, enrolled_at = $10, lease_until = $11, silent = $12, registry_revision = $13 WHERE id = $1`,
		p.ID, string(p.State), p.Announcement, p.Revision, keys, p.CurrentKey, p.Name, p.Endpoint, p.EnrolledBy, micros(p.EnrolledAt),
		micros(p.LeaseUntil),
		flag(p.Silent), p.RegistryRevision); err != nil {
		return Party{}, fmt.Errorf("change party %q: %w", p.ID, err)
	}
	return p, nil
}

// Approve lets a party publish, by an administrator's word. One that is approved stays as it is. errors.Is finds ErrNotFound and
// ErrRevoked.
func (s *Store) Approve(ctx context.Context, id string) (approved Party, err error) {
	err = s.write(ctx, func(w *writing) error {
		approved, err = party(ctx, w, id)
		switch {
		case err != nil:
			return err
		case approved.State == Revoked:
			return fmt.Errorf("party %q: %w", id, ErrRevoked)
		case approved.State == Approved:
			return nil
		}
		approved.State, approved.EnrolledBy = Approved, "approval"
		approved, err = w.changeParty(ctx, approved)
		return err
	})
	return approved, err
}

// Revoke puts a party out for ever, and deletes its offers in the same transaction. It may be repeated. errors.Is finds ErrNotFound.
func (s *Store) Revoke(ctx context.Context, id string) (revoked Party, err error) {
	err = s.write(ctx, func(w *writing) error {
		revoked, err = party(ctx, w, id)
		if err != nil || revoked.State == Revoked {
			return err
		}
		revoked.State = Revoked
		if revoked, err = w.changeParty(ctx, revoked); err != nil {
			return err
		}
		for more := true; more; {
			n, err := w.removeOffers(ctx, dropped, `party = $1`, id)
			if err != nil {
				return err
			}
			more = n == batch
		}
		return nil
	})
	return revoked, err
}

// RenewLease says until when a party counts as alive, also if that is earlier than before: a clock that was wrong is overruled. It is a
// change, with a revision, only for a party that was Silent. errors.Is finds ErrNotFound, ErrNotApproved and ErrRevoked.
func (s *Store) RenewLease(ctx context.Context, name string, until time.Time) error {
	if err := checkTexts(id("the ID of the party", name)); err != nil {
		return err
	}
	renewed, err := s.writer.ExecContext(ctx, `UPDATE parties SET lease_until = $2 WHERE id = $1 AND state = 'Approved' AND silent = 0`,
		name, micros(until))
	if err != nil {
		return fmt.Errorf("renew the lease of party %q: %w", name, err)
	}
	if n, err := renewed.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return s.write(ctx, func(w *writing) error {
		p, err := party(ctx, w, name)
		if err == nil {
			err = mayPublish(p)
		}
		if err != nil {
			return err
		}
		p.LeaseUntil, p.Silent = fromMicros(micros(until)), false
		_, err = w.changeParty(ctx, p)
		return err
	})
}

// mayPublish refuses what parties do that are not approved.
func mayPublish(p Party) error {
	switch p.State {
	case Approved:
		return nil
	case Revoked:
		return fmt.Errorf("party %q: %w", p.ID, ErrRevoked)
	case Pending:
	}
	return fmt.Errorf("party %q: %w", p.ID, ErrNotApproved)
}

// MarkSilent notes which approved parties have no lease at a time, and returns how many are new among them. RenewLease takes it back.
func (s *Store) MarkSilent(ctx context.Context, now time.Time) (marked int, err error) {
	err = s.write(ctx, func(w *writing) error {
		silent, err := parties(ctx, w, `WHERE state = 'Approved' AND silent = 0 AND lease_until <= $1 ORDER BY id`, micros(now))
		if err != nil {
			return err
		}
		for _, p := range silent {
			p.Silent = true
			if _, err := w.changeParty(ctx, p); err != nil {
				return err
			}
		}
		marked = len(silent)
		return nil
	})
	return marked, err
}

// parties reads those parties that a clause selects.
func parties(ctx context.Context, from querier, clause string, args ...any) ([]Party, error) {
	return all(ctx, from, scanParty, `SELECT `+partyColumns+` FROM parties `+clause, args...)
}

// all reads all rows of a query.
func all[T any](ctx context.Context, from querier, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	defer rows.Close()
	var found []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("read a row: %w", err)
		}
		found = append(found, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	return found, nil
}

// DropPending forgets parties that have waited for approval since before a time, and returns how many they were.
func (s *Store) DropPending(ctx context.Context, before time.Time) (forgotten int, err error) {
	err = s.write(ctx, func(w *writing) (err error) {
		forgotten, err = w.forgetPending(ctx, `enrolled_at < $1`, micros(before))
		return err
	})
	return forgotten, err
}

// forgetPending forgets the parties that wait and that a condition selects, and returns how many they were. The condition's parameters
// begin at $1.
func (w *writing) forgetPending(ctx context.Context, condition string, args ...any) (int, error) {
	base := w.revision
	n, err := w.affect(ctx, fmt.Sprintf(`INSERT INTO deletions (party, offer, keys, revision, digest, withdrawn, registry_revision)
		SELECT id, '', 0, revision, '', 0, CAST($%d AS BIGINT) + row_number() OVER (ORDER BY id)
		FROM parties WHERE state = 'Pending' AND %s`, len(args)+1, condition), append(args, base)...)
	if err != nil {
		return 0, fmt.Errorf("note the parties that are forgotten: %w", err)
	}
	if _, err := w.affect(ctx, `DELETE FROM parties WHERE state = 'Pending' AND id IN (SELECT party FROM deletions WHERE offer = '' AND registry_revision > $1)`, base); err != nil {
		return 0, fmt.Errorf("forget parties: %w", err)
	}
	w.revision += n
	return int(n), nil
}

// affect runs a statement, and returns how many rows it has changed.
func (w *writing) affect(ctx context.Context, statement string, args ...any) (int64, error) {
	done, err := w.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

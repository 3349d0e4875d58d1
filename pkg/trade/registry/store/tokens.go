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

// MaxUses is how many parties one token may admit at most.
const MaxUses = 1_000_000

// CreateToken stores a token. errors.Is finds ErrInvalid, and ErrExists if there is one with this digest.
func (s *Store) CreateToken(ctx context.Context, t Token) error {
	if err := checkTexts(id("the digest of the token", t.Digest), line("the comment", t.Comment)); err != nil {
		return err
	}
	if t.Uses < 1 || t.Uses > MaxUses {
		return fmt.Errorf("token %s: %w: %d uses, not between 1 and %d", short(t.Digest), ErrInvalid, t.Uses, MaxUses)
	}
	created, err := s.writer.ExecContext(ctx, `INSERT INTO tokens (digest, uses, expires_at, created_at, comment) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (digest) DO NOTHING`, t.Digest, t.Uses, micros(t.ExpiresAt), micros(t.CreatedAt), t.Comment)
	if err != nil {
		return fmt.Errorf("create token %s: %w", short(t.Digest), err)
	}
	if n, err := created.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return fmt.Errorf("token %s: %w", short(t.Digest), ErrExists)
}

// executor is a database or a transaction that may write.
type executor interface {
	querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// useToken takes one use of a token, given by its Digest. However many call at once, a token is not used more often than it may be.
// errors.Is finds ErrToken.
func useToken(ctx context.Context, in executor, digest string, now time.Time) error {
	if err := checkTexts(id("the digest of the token", digest)); err != nil {
		return err
	}
	used, err := in.ExecContext(ctx, `UPDATE tokens SET uses = uses - 1 WHERE digest = $1 AND uses > 0 AND expires_at > $2`, digest,
		micros(now))
	if err != nil {
		return fmt.Errorf("use token %s: %w", short(digest), err)
	}
	if n, err := used.RowsAffected(); err != nil || n == 1 {
		return err
	}

	// It was not used; say why.
	var uses int64
	switch err := in.QueryRowContext(ctx, `SELECT uses FROM tokens WHERE digest = $1`, digest).Scan(&uses); {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("token %s is unknown: %w", short(digest), ErrToken)
	case err != nil:
		return fmt.Errorf("look at token %s: %w", short(digest), err)
	case uses == 0:
		return fmt.Errorf("token %s is used up: %w", short(digest), ErrToken)
	default:
		return fmt.Errorf("token %s has expired: %w", short(digest), ErrToken)
	}
}

// Tokens returns all tokens, those that were created first at the front.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	return all(ctx, s.reader, func(from row) (Token, error) {
		var t Token
		var expires, created int64
		err := from.Scan(&t.Digest, &t.Uses, &expires, &created, &t.Comment)
		t.ExpiresAt, t.CreatedAt = fromMicros(expires), fromMicros(created)
		return t, err
	}, `SELECT digest, uses, expires_at, created_at, comment FROM tokens ORDER BY created_at, digest`)
}

// DeleteToken deletes a token. errors.Is finds ErrNotFound.
func (s *Store) DeleteToken(ctx context.Context, digest string) error {
	if err := checkTexts(id("the digest of the token", digest)); err != nil {
		return err
	}
	deleted, err := s.writer.ExecContext(ctx, `DELETE FROM tokens WHERE digest = $1`, digest)
	if err != nil {
		return fmt.Errorf("delete token %s: %w", short(digest), err)
	}
	if n, err := deleted.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return fmt.Errorf("token %s: %w", short(digest), ErrNotFound)
}

// short is enough of a digest for people to know which it is.
func short(digest string) string { return fmt.Sprintf("%.12q", digest) }

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// Store is an open database. It may be used concurrently, and several stores, in one process or in many, may have the same database open.
type Store struct {
	reader *sql.DB
	writer *sql.DB // on PostgreSQL the same as reader
	dialect

	version int64
	poll    time.Duration // how often Wait looks

	changes   wake.Broadcast
	listening context.CancelFunc
	listeners sync.WaitGroup
}

// Open opens the database of a DSN, "sqlite:FILE" or "postgres://USER:PASSWORD@HOST:PORT/DATABASE?...", and migrates it. A file that is not
// there is created, for its owner only; a database of PostgreSQL must exist. errors.Is finds ErrForeign and ErrNewer. No error tells a
// password.
func Open(ctx context.Context, dsn string) (*Store, error) {
	return open(ctx, dsn, migrations)
}

// open is Open with other migrations, for tests.
func open(ctx context.Context, dsn string, files fs.FS) (*Store, error) {
	place, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	s, err := place.open(ctx)
	if err == nil {
		if err = s.prepare(ctx, files); err != nil {
			s.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", place, place.hide(err))
	}
	return s, nil
}

// prepare brings the schema up to date, and reads what stays the same.
func (s *Store) prepare(ctx context.Context, files fs.FS) error {
	version, err := s.migrate(ctx, files)
	if err != nil {
		return err
	}
	s.version, s.poll = version, pollInterval
	s.listen()
	return nil
}

// Close closes the database. Calls that run fail.
func (s *Store) Close() error {
	if s.listening != nil {
		s.listening()
	}
	s.listeners.Wait()
	err := s.reader.Close()
	if s.writer != s.reader {
		err = errors.Join(err, s.writer.Close())
	}
	return err
}

// SchemaVersion is the number of the last migration.
func (s *Store) SchemaVersion() int64 { return s.version }

// Revision returns the revision of the last change.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	var revision int64
	if err := s.reader.QueryRowContext(ctx, `SELECT revision FROM registry`).Scan(&revision); err != nil {
		return 0, fmt.Errorf("read the revision: %w", err)
	}
	return revision, nil
}

// Now returns the time of the database, which all that have it open agree on: PostgreSQL's clock, or for a file that of its machine. Who
// writes a time, or compares one that was written, asks it.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now int64
	if err := s.reader.QueryRowContext(ctx, s.clock).Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("ask the database for the time: %w", err)
	}
	return fromMicros(now), nil
}

// writing is a transaction that holds the counter of revisions.
type writing struct {
	*sql.Tx
	before, revision int64 // the counter, as it was found and as it will be
}

// next returns the revision of one more change.
func (w *writing) next() int64 {
	w.revision++
	return w.revision
}

// write runs a deed in a transaction that no other writer of changes is beside: what it reads stays so until it commits.
func (s *Store) write(ctx context.Context, deed func(w *writing) error) error {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin to write: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // After a commit there is nothing to roll back, and before it nothing to keep.

	// The order of this lock is the order of commits.
	w := &writing{Tx: tx}
	if err := tx.QueryRowContext(ctx, `SELECT revision FROM registry`+s.forUpdate).Scan(&w.before); err != nil { //nolint:gosec // forUpdate is a constant of the dialect.
		return fmt.Errorf("lock the counter of revisions: %w", err)
	}
	w.revision = w.before
	if err := deed(w); err != nil {
		return err
	}
	if w.revision > w.before {
		if _, err := tx.ExecContext(ctx, `UPDATE registry SET revision = $1`, w.revision); err != nil {
			return fmt.Errorf("count revision %d: %w", w.revision, err)
		}
		if s.notify != "" {
			if _, err := tx.ExecContext(ctx, s.notify); err != nil { //nolint:gosec // It is a constant of the dialect.
				return fmt.Errorf("notify of revision %d: %w", w.revision, err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if w.revision > w.before {
		s.changes.Send()
	}
	return nil
}

// read runs a deed in a transaction that sees the database as it was at one moment.
func (s *Store) read(ctx context.Context, deed func(tx *sql.Tx) error) error {
	tx, err := s.reader.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("begin to read: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // It has only read.
	return deed(tx)
}

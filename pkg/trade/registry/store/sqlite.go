// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite" // also the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// busyMilliseconds is how long a writer waits for one of another process, such as an administrator's command.
	busyMilliseconds = 10_000
	// sqliteReaders is how many may read at once, each with a cache of 2 MB.
	sqliteReaders = 4
)

// file is a database of SQLite.
type file struct {
	name string
	uri  string
}

// newFile makes the name absolute, so that it means the same for every connection.
func newFile(name string) (place, error) {
	if name == "" || name == ":memory:" {
		return nil, errors.New(`the DSN "sqlite:" must name a file`)
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("find the file of the DSN: %w", err)
	}
	escaped := (&url.URL{Path: filepath.ToSlash(absolute)}).EscapedPath()
	return file{name: absolute, uri: "file:" + escaped}, nil
}

// String implements fmt.Stringer.
func (f file) String() string { return "sqlite:" + f.name }

func (file) hide(err error) error { return err }

// open creates the file if it is not there. It does not touch one that holds something else.
func (f file) open(ctx context.Context) (*Store, error) {
	created, err := os.OpenFile(f.name, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", err)
	}
	info, err := created.Stat()
	created.Close()
	switch {
	case err != nil:
		return nil, fmt.Errorf("look at the file: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is no file: %w", ErrForeign)
	case info.Size() > 0:
		if err := f.inspect(ctx); err != nil {
			return nil, err
		}
	}

	const writing = "?_txlock=immediate&_foreign_keys=1&_journal_mode=WAL&_synchronous=FULL"
	const reading = "?_query_only=1"
	both := fmt.Sprintf("&_busy_timeout=%d&_dqs=0&_defensive=1", busyMilliseconds)
	writer, err := sql.Open("sqlite", f.uri+writing+both)
	if err != nil {
		return nil, err
	}
	writer.SetMaxOpenConns(1) // They queue here, and not in SQLite, which lets the unlucky starve.
	reader, err := sql.Open("sqlite", f.uri+reading+both)
	if err != nil {
		writer.Close()
		return nil, err
	}
	reader.SetMaxOpenConns(sqliteReaders)
	reader.SetMaxIdleConns(sqliteReaders)
	return &Store{reader: reader, writer: writer, dialect: dialect{
		tables:   sqliteTables,
		clock:    `SELECT CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)`,
		migrator: migrator{dialect: goose.DialectSQLite3, tries: 5},
		listen:   func() {},
	}}, nil
}

const sqliteTables = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`

// inspect looks at a file without changing it: even asking for a write-ahead log would.
func (f file) inspect(ctx context.Context) error {
	head := make([]byte, 16)
	opened, err := os.Open(f.name)
	if err != nil {
		return fmt.Errorf("open the file: %w", err)
	}
	n, err := opened.Read(head)
	opened.Close()
	// https://www.sqlite.org/fileformat.html#magic_header_string
	if err != nil || string(head[:n]) != "SQLite format 3\x00" {
		return fmt.Errorf("it is no file of SQLite: %w", ErrForeign)
	}
	db, err := sql.Open("sqlite", fmt.Sprintf("%s?mode=ro&_query_only=1&_busy_timeout=%d", f.uri, busyMilliseconds))
	if err != nil {
		return err
	}
	defer db.Close()
	err = inspect(ctx, db, sqliteTables)
	// https://www.sqlite.org/rescode.html; the upper bits say more.
	if refusal := (*sqlite.Error)(nil); errors.As(err, &refusal) &&
		(refusal.Code()&0xff == sqlite3.SQLITE_NOTADB || refusal.Code()&0xff == sqlite3.SQLITE_CORRUPT) {
		return fmt.Errorf("%w: %w", err, ErrForeign)
	}
	return err
}

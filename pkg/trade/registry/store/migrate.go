// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// versions is the table of the migrations that a database has seen; it also says that the database is ours.
const versions = "registry_versions"

// migrator is how the schema of one kind of database is migrated.
type migrator struct {
	dialect goose.Dialect
	tries   int // more than 1 where no lock keeps two processes from migrating at once: the second sees what the first has done
}

// inspect refuses a database that has tables, but not ours.
func inspect(ctx context.Context, db *sql.DB, tables string) error {
	rows, err := db.QueryContext(ctx, tables)
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return fmt.Errorf("list the tables: %w", err)
		}
		found = append(found, name)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	if len(found) > 0 && !slices.Contains(found, versions) {
		return fmt.Errorf("it has tables (%s), but not %s; take an empty one: %w", strings.Join(found[:min(3, len(found))], ", "),
			versions, ErrForeign)
	}
	return nil
}

// migrate applies the migrations that the database has not seen, and returns the number of the last one.
func (s *Store) migrate(ctx context.Context, files fs.FS) (int64, error) {
	folder, err := fs.Sub(files, "migrations")
	if err != nil {
		return 0, fmt.Errorf("find the migrations: %w", err)
	}
	options := []goose.ProviderOption{goose.WithTableName(versions), goose.WithDisableGlobalRegistry(true)}
	if s.migrator.dialect == goose.DialectPostgres {
		// Replicas that start together wait for the first, looking each second.
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 120))
		if err != nil {
			return 0, fmt.Errorf("prepare the lock: %w", err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(s.migrator.dialect, s.writer, folder, options...)
	if err != nil {
		return 0, fmt.Errorf("read the migrations: %w", err)
	}
	for try := 1; ; try++ {
		version, err := up(ctx, provider)
		if err == nil || try >= s.migrator.tries || ctx.Err() != nil {
			return version, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// up refuses a database of a newer program, and migrates one of an older.
func up(ctx context.Context, provider *goose.Provider) (int64, error) {
	current, newest, err := provider.GetVersions(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the version of the schema: %w", err)
	}
	if current > newest {
		return 0, fmt.Errorf("schema version %d, and this program knows up to %d: %w", current, newest, ErrNewer)
	}
	if _, err := provider.Up(ctx); err != nil {
		return 0, fmt.Errorf("migrate the schema from version %d to %d: %w", current, newest, err)
	}
	return newest, nil
}

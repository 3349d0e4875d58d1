// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// upTo are the migrations with at most a number, and further ones.
func upTo(t *testing.T, last string, more fstest.MapFS) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if path.Base(name) > last+"~" {
			continue
		}
		data, err := migrations.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	maps.Copy(files, more)
	return files
}

// migration brings a database of version 1 to the newest schema, and to one of the future, and back to no older program.
func migration(t *testing.T, dsn string) {
	first, err := open(t.Context(), dsn, upTo(t, "00001", nil))
	if err != nil {
		t.Fatal(err)
	}
	if first.SchemaVersion() != 1 {
		t.Errorf("version %d, want 1", first.SchemaVersion())
	}
	admit(t, first, "p")
	publish(t, first, signed("p", "o", 1))
	before := snapshot(t, first)
	first.Close()

	// All migrations of this program.
	present := opened(t, dsn)
	if diff := cmp.Diff(before, snapshot(t, present)); diff != "" {
		t.Error(diff)
	}
	publish(t, present, signed("p", "o", 2))

	// A migration that fails leaves nothing behind.
	broken := fstest.MapFS{
		"migrations/09998_broken.sql": {Data: []byte("-- +goose Up\nCREATE TABLE half (id BIGINT);\nINSERT INTO nowhere VALUES (1);\n")},
	}
	if s, err := open(t.Context(), dsn, upTo(t, "09997", broken)); err == nil {
		s.Close()
		t.Error("a broken migration was applied")
	}
	if _, err := present.reader.ExecContext(t.Context(), `SELECT id FROM half`); err == nil {
		t.Error("half a migration was applied")
	}

	// One of the future.
	future := fstest.MapFS{
		"migrations/09999_future.sql": {Data: []byte("-- +goose Up\nALTER TABLE parties ADD COLUMN rating BIGINT NOT NULL DEFAULT 5;\n")},
	}
	newer, err := open(t.Context(), dsn, upTo(t, "09998", future))
	if err != nil {
		t.Fatal(err)
	}
	publish(t, newer, signed("p", "o", 3))
	newer.Close()
	_, err = Open(t.Context(), dsn)
	refused(t, "a newer schema", err, ErrNewer)
	if err != nil && !strings.Contains(err.Error(), "schema version 9999, and this program knows up to") {
		t.Errorf("error %q", err)
	}
	publish(t, present, signed("p", "o", 4)) // Who runs goes on, as replicas do during an upgrade.
}

// foreign refuses a database with something else, and leaves it as it was.
func foreign(t *testing.T, dsn string) {
	place, err := parseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := place.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.ExecContext(t.Context(), `CREATE TABLE customers (id BIGINT)`); err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, err = Open(t.Context(), dsn)
	refused(t, "another database", err, ErrForeign)
	if err != nil && !strings.Contains(err.Error(), "it has tables (customers)") {
		t.Errorf("error %q", err)
	}
	rest, err := place.open(t.Context())
	if err == nil {
		rest.Close()
		t.Error("the connection that does not migrate opens it")
	}
}

// TestForeignFiles refuses files that are no database of ours, and changes none.
func TestForeignFiles(t *testing.T) {
	for name, content := range map[string]string{
		"text":    "a diary\n",
		"short":   "S",
		"cut off": "SQLite format 3\x00",
		"garbage": "SQLite format 3\x00" + strings.Repeat("\xff", 4096),
	} {
		file := path.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), "sqlite:"+file)
		if err == nil {
			s.Close()
		}
		refused(t, name, err, ErrForeign)
		if after, err := os.ReadFile(file); string(after) != content || err != nil {
			t.Errorf("%s: changed to %.40q, %v", name, after, err)
		}
	}
	_, err := Open(t.Context(), "sqlite:"+t.TempDir())
	if err == nil {
		t.Error("a folder was opened")
	}
	_, err = Open(t.Context(), "sqlite:/nowhere/at/all/registry.db")
	refused(t, "no folder", err, fs.ErrNotExist)
}

// TestFileIsPrivate looks at the rights and at the settings of a new file.
func TestFileIsPrivate(t *testing.T) {
	dsn := newFileDSN(t)
	s := opened(t, dsn)
	admit(t, s, "p")
	name := strings.TrimPrefix(dsn, "sqlite:")
	for _, file := range []string{name, name + "-wal"} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %s", file, info.Mode())
		}
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000"} {
		var got string
		if err := s.writer.QueryRowContext(t.Context(), `PRAGMA `+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", pragma, got, err, want)
		}
	}
	if _, err := s.reader.ExecContext(t.Context(), `DELETE FROM parties`); err == nil {
		t.Error("a reader writes")
	}
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store keeps what a registry must not lose: parties, their offers, enrolment tokens, and in which order they changed.
// It is SQL, on a file of SQLite or on PostgreSQL, with one schema and one code for both.
//
// It does not know what a document says, and verifies no signature: whoever calls has read the document and says who its owner is. It asks
// no clock: every time is an argument, and [Store.Now] is the one that several registries agree on. It compares and counts inside its
// transactions, so that several registries on one PostgreSQL, or a registry and an administrator's command on one file, decide as one.
//
// # Revisions
//
// Each change of an offer or of a party has a registry revision, 1 more than the one before. The counter is a row that a writer locks
// before it reads anything else, and holds until its commit, so that revisions become visible in their order: who has seen revision n
// misses nothing up to n. What is deleted leaves a row with its revision until [Store.Compact] forgets it.
//
// # Durability
//
// What was acknowledged is on disk: SQLite runs with a write-ahead log and synchronous=FULL, PostgreSQL with what its administrator
// chose (synchronous_commit=on unless changed). An error of a writing method does not say that nothing was written, since a connection
// can break during a commit; every method can be repeated with the same arguments.
//
// # Why these libraries
//
// Both drivers are used by database/sql: modernc.org/sqlite is SQLite without cgo, as the programs are built; pgx's adapter for
// database/sql also gives its own connection, for LISTEN. Migrations are run by goose, as a library: it links no driver of a database,
// applies a file and notes it in one transaction, and locks PostgreSQL against other replicas. It stays at v3.26.0, since later versions
// raise gRPC for everybody in this repository. golang-migrate raises more modules, and after a kill leaves a schema that somebody has to
// declare clean by hand.
package store

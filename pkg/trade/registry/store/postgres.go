// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

const (
	// channel is that of NOTIFY, in a database of PostgreSQL.
	channel = "liqo_broker_registry"
	// postgresConnections is how many one store opens, besides that which listens: writers queue for one row, so more would only wait.
	postgresConnections = 8
	// connectTimeout is how long a server may take to answer, if the DSN says nothing.
	connectTimeout = 10 * time.Second
	// listenAgain is how long a store waits until it tries again to listen. Until then its polls see changes.
	listenAgain = time.Second
)

// parameters keep a replica that hangs, or whose machine was stopped, from holding the counter of revisions for ever. The DSN may set
// others.
var parameters = map[string]string{
	"application_name":                    "registry",
	"idle_in_transaction_session_timeout": "10s",
	"lock_timeout":                        "20s",
	"statement_timeout":                   "60s",
}

// server is a database of PostgreSQL.
type server struct {
	config *pgx.ConnConfig
	secret
}

// newServer reads a URL of PostgreSQL.
func newServer(dsn string) (place, error) {
	address, err := url.Parse(dsn)
	_, rest, _ := strings.Cut(dsn, "//")
	if err != nil || strings.Contains(rest[len(authority(rest)):], "@") {
		// The parser's error repeats the URL, and nobody knows where in such a one the password is.
		return nil, errors.New(
			"the DSN is not a URL; percent-encode what is special in its password: postgres://USER:PASSWORD@HOST:PORT/DATABASE",
		)
	}
	hide := secrets(address)
	config, err := pgx.ParseConfig(address.String()) // Written again, so that the two parsers see the same parts.
	if err != nil {
		return nil, fmt.Errorf("read the DSN: %w", hide.hide(err))
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	for name, value := range parameters {
		if _, set := config.RuntimeParams[name]; !set {
			config.RuntimeParams[name] = value
		}
	}
	return server{config: config, secret: hide}, nil
}

// authority is the part of a URL after its slashes that names a user and a host (RFC 3986, 3.2).
func authority(rest string) string {
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		return rest[:end]
	}
	return rest
}

// String implements fmt.Stringer.
func (s server) String() string {
	return fmt.Sprintf("postgres://%s:%d/%s", s.config.Host, s.config.Port, s.config.Database)
}

// open connects, and refuses a database that holds something else.
func (s server) open(ctx context.Context) (*Store, error) {
	db := stdlib.OpenDB(*s.config)
	db.SetMaxOpenConns(postgresConnections)
	db.SetMaxIdleConns(postgresConnections)
	db.SetConnMaxIdleTime(time.Minute)
	const tables = `SELECT table_name FROM information_schema.tables
		WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name`
	if err := inspect(ctx, db, tables); err != nil {
		db.Close()
		return nil, err
	}
	opened := &Store{reader: db, writer: db, dialect: dialect{
		tables:    tables,
		forUpdate: ` FOR UPDATE`,
		notify:    `NOTIFY ` + channel,
		clock:     `SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)`,
		migrator:  migrator{dialect: goose.DialectPostgres, tries: 1},
	}}
	opened.listen = func() {
		listening, stop := context.WithCancel(context.WithoutCancel(ctx)) // Until Close.
		opened.listening = stop
		opened.listeners.Go(func() { s.listen(listening, opened.changes.Send) })
	}
	return opened, nil
}

// listen calls a function whenever some store has written, until its context ends. It tells nobody that it could not connect: who waits
// polls as well.
func (s server) listen(ctx context.Context, wake func()) {
	for ctx.Err() == nil {
		if conn, err := pgx.ConnectConfig(ctx, s.config); err == nil {
			s.hear(ctx, conn, wake)
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}

// hear listens on one connection until it breaks.
func (server) hear(ctx context.Context, conn *pgx.Conn, wake func()) {
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		conn.Close(closing) // It is broken, or not needed any more.
	}()
	_, err := conn.Exec(ctx, `LISTEN `+channel)
	for err == nil {
		wake() // The first time for what came while nobody listened.
		_, err = conn.WaitForNotification(ctx)
	}
}

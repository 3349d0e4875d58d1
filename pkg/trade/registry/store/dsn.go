// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// dialect is in what the two databases differ, once they are open.
type dialect struct {
	tables    string // a query for the names of the tables that there are
	forUpdate string // what makes a SELECT lock its rows
	notify    string // a statement that tells other processes of a change; empty: they poll
	clock     string // a query for the time, in microseconds since 1970
	migrator  migrator
	listen    func() // starts to hear what notify tells
}

// place is where a database is, from a DSN. Its String is for people, and has no password.
type place interface {
	fmt.Stringer
	open(ctx context.Context) (*Store, error)
	hide(err error) error // takes the password out of an error
}

// parseDSN reads a DSN. Its errors repeat nothing of it, since it may hold a password at any place.
func parseDSN(dsn string) (place, error) {
	if strings.ContainsRune(dsn, 0) {
		return nil, errors.New("the DSN contains a zero byte")
	}
	if name, is := strings.CutPrefix(dsn, "sqlite:"); is {
		return newFile(name)
	}
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return newServer(dsn)
	}
	return nil, errors.New(`the DSN must be "sqlite:FILE" or "postgres://USER:PASSWORD@HOST:PORT/DATABASE"`)
}

// secret is what an error must not show.
type secret []string

// secrets are all spellings of the passwords in a URL.
func secrets(from *url.URL) secret {
	var found secret
	add := func(password string) {
		if password != "" {
			found = append(found, password, url.QueryEscape(password), url.PathEscape(password), url.UserPassword("", password).String()[1:])
		}
	}
	if password, is := from.User.Password(); is {
		add(password)
	}
	for key, values := range from.Query() {
		if strings.Contains(strings.ToLower(key), "password") {
			for _, value := range values {
				add(value)
			}
		}
	}
	return found
}

// hide returns an error whose text has none of the secrets, and that gives the one with them to nobody.
func (s secret) hide(err error) error {
	text := err.Error()
	for _, password := range s {
		text = strings.ReplaceAll(text, password, "xxxxx")
	}
	return hidden{error: err, text: text}
}

// hidden is an error with another text.
type hidden struct {
	error

	text string
}

// Error implements error.
func (h hidden) Error() string { return h.text }

// Is lets errors.Is find what the error wraps, and As nothing of it: that would have the old text.
func (h hidden) Is(target error) bool { return errors.Is(h.error, target) }

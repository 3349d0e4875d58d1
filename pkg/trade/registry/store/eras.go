// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
)

// maxEras is how many eras are remembered.
const maxEras = 64

// Era is a part of the history of a database. Revisions of two eras are of one history only as far as the database has both: one that was
// restored from a copy does not have those that began after the copy, and in one that began before, it has no more than up to the next.
type Era struct {
	// Name is random.
	Name string `json:"name"`
	// From is the revision with which it begins.
	From int64 `json:"from"`
}

// BeginEra begins an era with a revision of its own, at which nothing else changes. Whoever begins to show the database to others calls it,
// and who sees that the database has gone back.
func (s *Store) BeginEra(ctx context.Context) error {
	return s.write(ctx, func(w *writing) error {
		eras, err := readEras(ctx, w)
		if err != nil {
			return err
		}
		eras = append(eras, Era{Name: rand.Text(), From: w.next()})
		text, err := json.Marshal(eras[max(0, len(eras)-maxEras):])
		if err != nil {
			return fmt.Errorf("write the eras: %w", err)
		}
		if _, err := w.ExecContext(ctx, `UPDATE registry SET eras = $1`, string(text)); err != nil {
			return fmt.Errorf("begin an era: %w", err)
		}
		return nil
	})
}

// Eras returns the eras that are remembered, in their order.
func (s *Store) Eras(ctx context.Context) ([]Era, error) { return readEras(ctx, s.reader) }

func readEras(ctx context.Context, from querier) ([]Era, error) {
	var text string
	var eras []Era
	err := from.QueryRowContext(ctx, `SELECT eras FROM registry`).Scan(&text)
	if err == nil {
		err = json.Unmarshal([]byte(text), &eras)
	}
	if err != nil {
		return nil, fmt.Errorf("read the eras: %w", err)
	}
	return eras, nil
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"
)

const (
	// sweepsEach is how often in the length of a lease the registry looks at its clock.
	sweepsEach = 8
	// maxWait is how long a party may wait for an approval.
	maxWait = 30 * 24 * time.Hour
)

// sweep does what follows from the clock of the store alone, until ctx ends. Several registries on one store may do it at the same time.
func (s *Server) sweep(ctx context.Context) error {
	for ctx.Err() == nil {
		s.sweepOnce(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(max(s.cfg.Lease/sweepsEach, time.Millisecond)):
		}
	}
	return nil
}

// sweepOnce notes who has become silent, and removes what is over.
func (s *Server) sweepOnce(ctx context.Context) {
	now, err := s.cfg.Store.Now(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.cfg.Log.Error(err, "Cannot look for what is over")
		}
		return
	}
	for what, deed := range map[string]func() (int, error){
		"silent":    func() (int, error) { return s.cfg.Store.MarkSilent(ctx, now) },
		"expired":   func() (int, error) { return s.cfg.Store.ExpireOffers(ctx, now) },
		"dropped":   func() (int, error) { return s.cfg.Store.DropSilent(ctx, now.Add(-s.cfg.Drop)) },
		"pending":   func() (int, error) { return s.cfg.Store.DropPending(ctx, now.Add(-maxWait)) },
		"forgotten": func() (int, error) { return s.cfg.Store.Compact(ctx, remembered) },
	} {
		n, err := deed()
		s.metrics.swept.WithLabelValues(what).Add(float64(n))
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Error(err, "Cannot remove what is over", "what", what)
		}
	}
}

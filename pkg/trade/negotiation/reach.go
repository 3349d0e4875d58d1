// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation

import (
	"context"
	"fmt"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// tried is where a party had a cluster tried.
type tried struct {
	buyer party.ID
	at    negotiationv1.Endpoints
}

// reaches refuses to sign with a buyer whose cluster is not reached where it says. Only who holds a reservation has anything dialled, so
// often and no oftener, and is told of each endpoint whether it is reached, and nothing else: also the answer that one is not takes always
// the same time. The error is ErrNotReachable or ErrTooMany.
func (s *Server) reaches(ctx context.Context, terms contract.Terms, said *negotiationv1.Endpoints) error {
	if said == nil {
		said = &negotiationv1.Endpoints{Cluster: string(terms.Cluster.ID)} // It is reached nowhere.
	}
	record, err := s.cfg.Store.Get(ctx, terms.Key())
	switch {
	case err != nil:
		return fmt.Errorf("read contract %s: %w", terms.Key(), err)
	case record == nil || record.State != contract.Reserved || !s.cfg.Clock.Now().Before(record.Until) ||
		record.Terms.Cluster != terms.Cluster:
		return nil // There is nothing to sign, or not any more: the record says so.
	case said.Cluster != string(terms.Cluster.ID):
		return fmt.Errorf("endpoints.cluster: %.63q is not the cluster of the terms: %w", said.Cluster, contract.ErrTerms)
	}
	// What was reached a short while ago need not be dialled again, and nobody has this cluster dial without bounds.
	try := tried{party.ID(terms.Buyer), *said}
	try.at.Gateway = "" // One of two gateways is enough, and the buyer has tried this side's.
	if _, is := s.reached.Get(try); is {
		return nil
	}
	leave, ok := s.tries.Enter(source.Caller(terms.Buyer))
	if !ok {
		return fmt.Errorf("this seller tries to reach other clusters: %w", ErrTooMany)
	}
	defer leave()
	if !s.pacer(try.buyer).tries.Allow() {
		most := s.cfg.Limits.TriesPerMinute
		return fmt.Errorf("party %s has its clusters tried more than its %d times in a minute: %w", terms.Buyer, most, ErrTooMany)
	}
	// A failure is told when the time is over, and no sooner.
	trying, cancel := context.WithTimeout(ctx, s.cfg.TryFor)
	defer cancel()
	unreached, err := s.cfg.Reach.Try(trying, try.buyer, try.at)
	if err == nil && len(unreached) == 0 {
		s.reached.Add(try, struct{}{}, reachedFor)
		return nil
	}
	<-trying.Done()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("try to reach cluster %s of party %s: %w", terms.Cluster.ID, terms.Buyer, err)
	}
	return fmt.Errorf("the seller does not reach %s of cluster %s: %w", strings.Join(unreached, " and "), terms.Cluster.ID, ErrNotReachable)
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// Peerings lets the clusters of contracts peer, and ends that. For one cluster it does one thing at a time, whoever asks. Another process
// can be in its way, one that has led before: so the record is read again after something was issued, which is taken back if the contract
// is over by then. It can be used concurrently.
type Peerings struct {
	reader    client.Reader
	contracts Contracts
	driver    peering.Seller

	mu   sync.Mutex
	busy map[cluster.ID]chan struct{} // Closed when the cluster is free.
}

var _ negotiation.Credentials = (*Peerings)(nil)

// NewPeerings returns Peerings. The reader reads from the API server.
func NewPeerings(reader client.Reader, contracts Contracts, driver peering.Seller) *Peerings {
	return &Peerings{reader: reader, contracts: contracts, driver: driver, busy: map[cluster.ID]chan struct{}{}}
}

// enter waits until nothing is done for a cluster. Leave must be called once.
func (p *Peerings) enter(ctx context.Context, id cluster.ID) (leave func(), err error) {
	for {
		p.mu.Lock()
		busy, taken := p.busy[id]
		if !taken {
			free := make(chan struct{})
			p.busy[id] = free
			p.mu.Unlock()
			return func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(p.busy, id)
				close(free)
			}, nil
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for cluster %s: %w", id, ctx.Err())
		case <-busy:
		}
	}
}

// stored returns the record of a contract; nil if there is none.
func (p *Peerings) stored(ctx context.Context, key contract.Key) (*contract.Record, error) {
	sale := &connectorv1alpha1.Sale{}
	if err := p.reader.Get(ctx, client.ObjectKey{Name: books.Name(key)}, sale); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	} else if err != nil {
		return nil, fmt.Errorf("get the sale of contract %s: %w", key, err)
	}
	return books.Record(sale)
}

// Credentials implements negotiation.Credentials. The error is contract.ErrLate if the contract is over, grant.ErrTaken if another party
// has a contract for the cluster, and peering.ErrForeign if it has peered without.
func (p *Peerings) Credentials(ctx context.Context, record contract.Record) (json.RawMessage, error) {
	issued, err := p.issue(ctx, record, contract.Provisioning, contract.Active, contract.Resizing, contract.Suspended)
	if err != nil {
		return nil, err
	}
	document, err := issued.Document()
	if err != nil {
		return nil, fmt.Errorf("write credentials for cluster %s: %w", record.Terms.Cluster.ID, err)
	}
	return document, nil
}

// issue lets the cluster of a contract peer that is in one of some states.
func (p *Peerings) issue(ctx context.Context, record contract.Record, states ...contract.State) (peering.Credentials, error) {
	buyer := record.Terms.Cluster
	leave, err := p.enter(ctx, buyer.ID)
	if err != nil {
		return peering.Credentials{}, err
	}
	defer leave()
	// No credentials for a contract that has ended since it was read, or for a cluster for which another party has one.
	switch now, err := p.stored(ctx, record.Key); {
	case err != nil:
		return peering.Credentials{}, err
	case now == nil || !slices.Contains(states, now.State):
		return peering.Credentials{}, past(record.Key, now)
	}
	all, err := registerOf(ctx, p.contracts)
	if err != nil {
		return peering.Credentials{}, err
	}
	if err := p.taken(ctx, all, record); err != nil {
		return peering.Credentials{}, err
	}
	// What is issued is given out only if the contract is still there after that.
	issued, err := p.driver.Issue(ctx, buyer)
	if err != nil {
		return peering.Credentials{}, fmt.Errorf("issue credentials for cluster %s: %w", buyer.ID, err)
	}
	now, err := p.stored(ctx, record.Key)
	if err != nil {
		return peering.Credentials{}, err
	}
	if now == nil || now.State.Final() {
		// Another process may have withdrawn it before this one issued.
		if _, err := p.takeBack(ctx, record); err != nil {
			return peering.Credentials{}, err
		}
		return peering.Credentials{}, past(record.Key, now)
	}
	return issued, nil
}

// past says that nothing can be issued for a contract any more.
func past(key contract.Key, record *contract.Record) error {
	state := contract.State("None")
	if record != nil {
		state = record.State
	}
	return fmt.Errorf("credentials of contract %s in state %s: %w", key, state, contract.ErrLate)
}

// withdraw takes back what a contract gave, if no other needs it. It reports whether nothing is left. What was never issued is not taken
// back: the cluster may be peered without a contract, or by that of another party.
func (p *Peerings) withdraw(ctx context.Context, record contract.Record) (done bool, err error) {
	if record.State == contract.Failed {
		return true, nil
	}
	leave, err := p.enter(ctx, record.Terms.Cluster.ID)
	if err != nil {
		return false, err
	}
	defer leave()
	return p.takeBack(ctx, record)
}

// takeBack is withdraw while nothing else is done for the cluster.
func (p *Peerings) takeBack(ctx context.Context, record contract.Record) (done bool, err error) {
	buyer := record.Terms.Cluster
	if kept, err := p.kept(ctx, record); err != nil || kept {
		return kept, err
	}
	if endedUngranted(record) {
		// It may have been issued and not written down. Issue tells a peering that is not ours, and can be repeated.
		switch _, err := p.driver.Issue(ctx, buyer); {
		case errors.Is(err, peering.ErrForeign):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("find out what contract %s was granted: %w", record.Key, err)
		}
	}
	if done, err = p.driver.Withdraw(ctx, buyer.ID); err != nil {
		return false, fmt.Errorf("withdraw contract %s from cluster %s: %w", record.Key, buyer.ID, err)
	}
	return done, nil
}

// kept reports whether what a contract gave is not to be taken back: another one needs it, or it is another party's.
func (p *Peerings) kept(ctx context.Context, record contract.Record) (bool, error) {
	all, err := registerOf(ctx, p.contracts)
	if err != nil {
		return false, err
	}
	needed, err := p.stands(ctx, all, func(other contract.Record) bool {
		return other.Key != record.Key && needs(other, record.Terms.Cluster.ID)
	})
	if err != nil || needed {
		return needed, err
	}
	if err = p.taken(ctx, all, record); errors.Is(err, grant.ErrTaken) {
		return true, nil
	}
	return false, err
}

// stands reports whether something is so of a contract as this process knows it, and still as it is stored. What it knows is behind when
// another one has led meanwhile, or the seller was restored from a copy, and what is written because of it is final: that a contract
// failed, or has nothing to withdraw.
func (p *Peerings) stands(ctx context.Context, all register, is func(contract.Record) bool) (bool, error) {
	for _, each := range all {
		if !is(each.record) {
			continue
		}
		now, err := p.stored(ctx, each.record.Key)
		switch {
		case errors.Is(err, books.ErrUnreadable): // It excludes itself.
		case err != nil:
			return false, err
		case now != nil && is(*now):
			return true, nil
		}
	}
	return false, nil
}

// taken returns grant.ErrTaken if another party has a contract that was granted for the cluster of one.
func (p *Peerings) taken(ctx context.Context, all register, record contract.Record) error {
	id := record.Terms.Cluster.ID
	taken := all.taken(record, id)
	if taken == nil {
		return nil
	}
	stands, err := p.stands(ctx, all, func(other contract.Record) bool {
		return other.Key.Buyer != record.Key.Buyer && other.Terms.Cluster.ID == id && granted(other)
	})
	if err != nil || !stands {
		return err
	}
	return taken
}

// grant lets the buyer's cluster peer, and returns what to tell the contract.
func (p *Peerings) grant(ctx context.Context, record contract.Record) (contract.Request, error) {
	switch _, err := p.issue(ctx, record, contract.Signed); {
	case errors.Is(err, grant.ErrTaken):
		return contract.Request{Event: contract.Fail, Reason: grant.ErrTaken.Error()}, nil
	case errors.Is(err, peering.ErrForeign):
		return contract.Request{Event: contract.Fail, Reason: peering.ErrForeign.Error()}, nil
	case errors.Is(err, contract.ErrLate):
		return contract.Request{Event: contract.Tick}, nil // What has changed since has duties of its own.
	case err != nil:
		return contract.Request{}, fmt.Errorf("grant contract %s to cluster %s: %w", record.Key, record.Terms.Cluster.ID, err)
	}
	return contract.Request{Event: contract.Grant}, nil
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// BuyerKeyLabel is the label of Sales with the fingerprint of the buyer's current key, as far as this seller knows.
const BuyerKeyLabel = "brokering.liqo.io/buyer-key"

// Identify returns the party whose current key it is, as its Sales say, with its longest chain of keys, of which Sales or registries know:
// the key may have been replaced since. It is a negotiation.Identify for those whom no registry shows any more: they can do and end what
// they have bought. It reads what a watch has shown, or else from the client. The error is negotiation.ErrStranger, or that of the API
// server.
func (s *Store) Identify(ctx context.Context, key ed25519.PublicKey) (party.Keys, error) {
	sales, err := s.with(ctx, label{BuyerKeyLabel, party.Fingerprint(key)})
	if err != nil {
		return party.Keys{}, err
	}
	for _, sale := range sales {
		if keys := keysOf(sale); keys.Current() != nil && keys.Current().Equal(key) {
			return s.Longest(ctx, keys)
		}
	}
	return party.Keys{}, negotiation.ErrStranger
}

// Longest returns the longest chain of which Sales or registries know and that continues another one. It reads as Identify does.
func (s *Store) Longest(ctx context.Context, keys party.Keys) (party.Keys, error) {
	sales, err := s.with(ctx, label{BuyerLabel, string(keys.ID())})
	if err != nil {
		return party.Keys{}, err
	}
	return s.longest(keys, sales), nil
}

// longest returns the longest chain of Sales and registries that continues another one.
func (s *Store) longest(keys party.Keys, sales []*connectorv1alpha1.Sale) party.Keys {
	for _, sale := range sales {
		if len(sale.Status.Buyer.Keys) <= len(keys.Chain()) {
			continue
		}
		if longer := keysOf(sale); longer.Continues(keys) && longer.Current() != nil {
			keys = longer
		}
	}
	if s.cfg.Parties != nil {
		if shown, known := s.cfg.Parties.Party(keys.ID()); known && shown.Keys.Continues(keys) {
			keys = shown.Keys
		}
	}
	return keys
}

// keysOf returns the keys of the buyer in a Sale; none if they are not those of its buyer.
func keysOf(sale *connectorv1alpha1.Sale) party.Keys {
	keys, err := party.ParseKeys(sale.Status.Buyer.Keys)
	if err != nil || string(keys.ID()) != string(sale.Spec.Buyer) {
		return party.Keys{}
	}
	return keys
}

// Learn writes a chain of keys into all Sales to its party. It is a negotiation.Learn: the error is negotiation.ErrStranger if there is no
// Sale, or the chain leads elsewhere than the one that is known, negotiation.ErrReplaced if that one goes on from it, or that of the API
// server.
func (s *Store) Learn(ctx context.Context, keys party.Keys) error {
	var sales connectorv1alpha1.SaleList
	if err := s.cfg.Reader.List(ctx, &sales, client.MatchingLabels{BuyerLabel: string(keys.ID())}); err != nil {
		return fmt.Errorf("list the sales to party %s: %w", keys.ID(), err)
	}
	i := slices.IndexFunc(sales.Items, func(sale connectorv1alpha1.Sale) bool { return keysOf(&sale).Current() != nil })
	if i < 0 {
		return negotiation.ErrStranger
	}
	switch known := s.longest(keysOf(&sales.Items[i]), pointers(sales.Items)); {
	case keys.Continues(known):
	case known.Continues(keys):
		return negotiation.ErrReplaced
	default:
		return negotiation.ErrStranger
	}
	return s.rekey(ctx, pointers(sales.Items), keys)
}

// Rekey writes into all Sales the longest chains of keys of their buyers of which one of them or a registry knows, so that who has an
// earlier key is refused also when no registry shows its party any more.
func (s *Store) Rekey(ctx context.Context) error {
	var all connectorv1alpha1.SaleList
	if err := s.cfg.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the sales: %w", err)
	}
	by := map[connectorv1alpha1.PartyID][]*connectorv1alpha1.Sale{}
	for i := range all.Items {
		buyer := all.Items[i].Spec.Buyer
		by[buyer] = append(by[buyer], &all.Items[i])
	}
	var failed []error
	for _, sales := range by {
		known := party.Keys{}
		for _, sale := range sales {
			if known = keysOf(sale); known.Current() != nil {
				break
			}
		}
		if known.Current() != nil {
			failed = append(failed, s.rekey(ctx, sales, s.longest(known, sales)))
		}
	}
	return errors.Join(failed...)
}

// rekey writes keys into Sales that have earlier ones, and their label. A Sale that somebody else has changed is written again by who looks
// next. The Sales that are given are not changed.
func (s *Store) rekey(ctx context.Context, sales []*connectorv1alpha1.Sale, keys party.Keys) error {
	chain, label := keys.Chain(), party.Fingerprint(keys.Current())
	earlier := func(sale *connectorv1alpha1.Sale) bool {
		has := keysOf(sale)
		return has.Current() != nil && keys.Continues(has)
	}
	var failed []error
	for _, found := range sales {
		if found.Labels[BuyerKeyLabel] == label && slices.Equal(found.Status.Buyer.Keys, chain) || !earlier(found) {
			continue
		}
		sale := &connectorv1alpha1.Sale{}
		err := s.cfg.Reader.Get(ctx, client.ObjectKeyFromObject(found), sale) // A cache does not keep it whole.
		if err == nil && !earlier(sale) {
			continue
		}
		if err == nil && len(chain) > len(sale.Status.Buyer.Keys) {
			sale.Status.Buyer.Keys = chain
			err = s.cfg.Client.Status().Update(ctx, sale)
		}
		if err == nil && sale.Labels[BuyerKeyLabel] != label {
			if sale.Labels == nil {
				sale.Labels = map[string]string{}
			}
			sale.Labels[BuyerKeyLabel] = label
			err = s.cfg.Client.Update(ctx, sale)
		}
		if client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("write the keys of party %s into sale %s: %w", keys.ID(), sale.Name, err))
		}
	}
	return errors.Join(failed...)
}

// rekeyPause is how soon after it Rekey is called again at the earliest, and rekeyEvery at the latest.
const rekeyPause, rekeyEvery = 10 * time.Second, 10 * time.Minute

// Follow calls Rekey when it is told that registries have shown something, and from time to time, until ctx ends. What fails is given to
// failed.
func (s *Store) Follow(ctx context.Context, told <-chan struct{}, failed func(error)) {
	for {
		if err := s.Rekey(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rekeyPause):
		}
		select {
		case <-ctx.Done():
			return
		case <-told:
		case <-time.After(rekeyEvery):
		}
	}
}

// buyer returns what is written into a Sale of its buyer: as registries show it, unless the Sales know of later keys. It is false if nobody
// knows it.
func (s *Store) buyer(ctx context.Context, id party.ID, sale *connectorv1alpha1.Sale) (connectorv1alpha1.PartyStatus, bool, error) {
	status, known := connectorv1alpha1.PartyStatus{}, false
	if s.cfg.Parties != nil {
		if shown, is := s.cfg.Parties.Party(id); is {
			status, known = describeParty(shown), true
		}
	}
	others := []*connectorv1alpha1.Sale{sale}
	if sale == nil {
		var err error
		if others, err = s.with(ctx, label{BuyerLabel, string(id)}); err != nil {
			return status, false, err
		}
	}
	for _, other := range others {
		has := other.Status.Buyer
		switch {
		case len(has.Keys) == 0 || keysOf(other).Current() == nil:
		case !known:
			status, known = has, true
		case len(has.Keys) > len(status.Keys), !slices.Equal(has.Keys, status.Keys[:len(has.Keys)]):
			status.Keys = has.Keys // What a Sale has counts: a registry may show an earlier chain, or one that leads elsewhere.
		}
	}
	status.Keys = slices.Clone(status.Keys) // They may be those of a cache.
	return status, known, nil
}

// Bought reports whether a party has a contract for a cluster that both have signed. It reads as Identify does.
func (s *Store) Bought(ctx context.Context, buyer party.ID, of cluster.ID) (bool, error) {
	sales, err := s.with(ctx, label{BuyerLabel, string(buyer)})
	if err != nil {
		return false, err
	}
	for _, sale := range sales {
		record, err := Record(sale)
		if err == nil && record != nil && record.Signed() && record.Terms.Cluster.ID == of {
			return true, nil
		}
	}
	return false, nil
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/objects"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
)

const (
	// maxRecord bounds the text of a record, in bytes, as the Sale does.
	maxRecord = 256 << 10
	// maxHolds bounds the ledger, as the SalesLedger does.
	maxHolds = 4096
	// maxName, maxEndpoint and maxKeys bound what is kept of a buyer, as the Sale does.
	maxName, maxEndpoint, maxKeys, maxKey = 253, 512, 17, 8192
)

// Key returns the contract of a Sale.
func Key(sale *connectorv1alpha1.Sale) contract.Key {
	return contract.Key{Buyer: string(sale.Spec.Buyer), ID: string(sale.Spec.ContractID)}
}

// Record returns the record of a Sale; nil if it is not written yet. The error is ErrUnreadable.
func Record(sale *connectorv1alpha1.Sale) (*contract.Record, error) {
	text := sale.Status.Record
	if text == "" {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	}
	if len(text) > maxRecord {
		return nil, fmt.Errorf("record of sale %s has %d bytes, more than %d: %w", sale.Name, len(text), maxRecord, ErrUnreadable)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	record := &contract.Record{}
	if err := decoder.Decode(record); err != nil {
		return nil, fmt.Errorf("record of sale %s: %w: %w", sale.Name, err, ErrUnreadable)
	}
	if record.Key != Key(sale) || record.Version < 1 || record.State == contract.None {
		return nil, fmt.Errorf("record of sale %s is version %d of contract %s: %w", sale.Name, record.Version, record.Key, ErrUnreadable)
	}
	return record, nil
}

// shorten takes out of a record what nobody asks for often, and of which there is much: superseded terms, and the signatures of a contract
// that is over. It reports whether there was any.
func shorten(record *contract.Record) bool {
	had := len(record.Superseded) > 0
	record.Superseded = nil
	if record.State.Final() && record.Countersignature != signedInSale {
		had = had || record.Signature != "" || record.Countersignature != ""
		record.Signature = ""
		if record.Countersignature != "" {
			record.Countersignature = signedInSale
		}
	}
	return had
}

// signedInSale stands for a countersignature that is only in the Sale.
const signedInSale = "in the Sale"

// Kept is for caches: it returns a Sale as this process keeps it, without what was superseded, and of a contract that is over without
// signatures. So a Sale of a cache must not be written: who writes reads it whole. What cannot be read is kept as it is.
func Kept(o any) (any, error) {
	sale, ok := o.(*connectorv1alpha1.Sale)
	if !ok {
		return o, nil
	}
	sale.ManagedFields, sale.Status.Superseded = nil, nil
	record, err := Record(sale)
	if err != nil || record == nil || !shorten(record) {
		return o, nil //nolint:nilerr // It is kept as it is.
	}
	text, err := encode(*record)
	if err != nil {
		return o, nil //nolint:nilerr // It was read, and is shorter now.
	}
	sale.Status.Record = text
	return o, nil
}

// encode returns a record as text. The error is ErrTooLarge.
func encode(record contract.Record) (string, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return "", fmt.Errorf("encode the record of contract %s: %w", record.Key, err)
	}
	if len(text) > maxRecord {
		return "", fmt.Errorf("record of contract %s has %d bytes, more than %d: %w", record.Key, len(text), maxRecord, ErrTooLarge)
	}
	return string(text), nil
}

// describeSale writes a record into a status, and what people read of it.
func describeSale(status *connectorv1alpha1.SaleStatus, record contract.Record, text string) {
	terms := record.Terms
	status.Record, status.State, status.ContractID = text, string(record.State), record.Key.ID
	status.Offer, status.Plan, status.Resources = terms.Offer, terms.Plan, terms.Resources
	status.Price, status.StartTime, status.EndTime = price(terms.Price), at(terms.StartsAt), at(record.Ends)
	status.PaidUntilTime, status.EffectiveTime, status.Superseded = at(record.PaidUntil), at(terms.Counts()), Superseded(record.Superseded)
	status.PendingRevision, status.Documents = Pending(record), objects.Documents(record.Documents)
}

// price returns a price as objects have it; nil is none.
func price(of offer.Price) *connectorv1alpha1.Price {
	if of == (offer.Price{}) {
		return nil
	}
	return new(objects.Price(of))
}

// Superseded returns earlier terms as objects have them.
func Superseded(all []contract.Superseded) []connectorv1alpha1.SupersededTerms {
	var written []connectorv1alpha1.SupersededTerms
	for _, each := range all {
		terms := each.Terms
		written = append(written, connectorv1alpha1.SupersededTerms{
			Revision: terms.Revision, EffectiveTime: metav1.NewTime(terms.Counts()), EndTime: metav1.NewTime(terms.EndsAt),
			Plan: terms.Plan, Resources: terms.Resources, Price: price(terms.Price),
		})
	}
	return written
}

// Pending returns the revision of the terms that wait for somebody's approval; 0 if none do.
func Pending(record contract.Record) int64 {
	switch {
	case record.State == contract.Proposed:
		return record.Terms.Revision
	case record.State == contract.Resizing && record.Change != nil && record.Change.Approval == contract.Pending:
		return record.Change.Terms.Revision
	}
	return 0
}

// describeParty returns what is kept of a party, within the bounds of a Sale.
func describeParty(known registryclient.Party) connectorv1alpha1.PartyStatus {
	status := connectorv1alpha1.PartyStatus{Name: known.Said.Name}
	for len(status.Name) > maxName || !utf8.ValidString(status.Name) {
		status.Name = strings.ToValidUTF8(status.Name[:min(len(status.Name), maxName)], "")
	}
	if len(known.Said.Endpoint) <= maxEndpoint {
		status.Endpoint = known.Said.Endpoint
	}
	if chain := known.Keys.Chain(); len(chain) <= maxKeys {
		for _, key := range chain {
			if len(key) > maxKey {
				return status
			}
		}
		status.Keys = chain
	}
	return status
}

// readLedger returns the ledger of an object.
func readLedger(object *connectorv1alpha1.SalesLedger) ledger.Ledger {
	read := make([]ledger.Hold, 0, len(object.Holds))
	for _, hold := range object.Holds {
		read = append(read, ledger.Hold{
			Key:   ledger.Key{Buyer: string(hold.Buyer), ID: string(hold.ContractID)},
			Offer: string(hold.Offer), Plan: string(hold.Plan), Resources: hold.Resources,
			Until: since(hold.UntilTime), Next: hold.NextResources, NextPlans: texts[string](hold.NextPlans), NextUntil: since(hold.NextUntilTime),
		})
	}
	return ledger.New(read) // People can have brought them out of order.
}

// writeLedger returns the holds of a ledger as an object has them.
func writeLedger(from ledger.Ledger) []connectorv1alpha1.SalesHold {
	holds := make([]connectorv1alpha1.SalesHold, 0, len(from.Holds))
	for _, hold := range from.Holds {
		holds = append(holds, connectorv1alpha1.SalesHold{
			Buyer: connectorv1alpha1.PartyID(hold.Key.Buyer), ContractID: connectorv1alpha1.Label(hold.Key.ID),
			Offer: connectorv1alpha1.Label(hold.Offer), Plan: connectorv1alpha1.Label(hold.Plan),
			Resources: hold.Resources, UntilTime: at(hold.Until), NextResources: hold.Next,
			NextPlans: texts[connectorv1alpha1.Label](hold.NextPlans), NextUntilTime: at(hold.NextUntil),
		})
	}
	return holds
}

// texts returns texts of one type as those of another; nil is none.
func texts[To, From ~string](from []From) []To {
	var to []To
	for _, text := range from {
		to = append(to, To(text))
	}
	return to
}

// at returns a time as objects have it; nil is none.
func at(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// since returns the time of an object; nil is none.
func since(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/objects"
)

// maxRecord bounds status.record in bytes, as the API does.
const maxRecord = 256 << 10

// record is what stands in status.record.
type record struct {
	Purchase contract.Purchase `json:"purchase"`
	// Cluster is the one that the seller has given credentials for. It is written before the clusters peer.
	Cluster connectorv1alpha1.ClusterStatus `json:"cluster"`
	// Peered is whether the driver has begun to peer: before, what runs on nodes of that cluster is not the contract's.
	Peered bool `json:"peered,omitempty"`
	// Size and End are what people wanted when new terms were asked for last: what is refused is not asked for again.
	Size string `json:"size,omitempty"`
	End  string `json:"end,omitempty"`
	// Renewal is how it stands with a later end that is asked for without people; nil if none is.
	Renewal *renewal `json:"renewal,omitempty"`
	// Documents are those of the offers of the terms in force and of those that are asked for, by the digest of the offer.
	Documents map[string]map[string]string `json:"documents,omitempty"`
	// Note is what people are told of that.
	Note string `json:"note,omitempty"`
	// Unreached is whether the seller has not signed because it does not reach this cluster.
	Unreached bool `json:"unreached,omitempty"`
}

// readRecord reads a record; nil if there is none yet.
func readRecord(text string) (*record, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // None is no error.
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	read := &record{}
	if err := decoder.Decode(read); err != nil {
		return nil, fmt.Errorf("read status.record: %w", err)
	}
	if err := read.Purchase.Terms.Validate(); err != nil {
		return nil, fmt.Errorf("read status.record: %w", err)
	}
	return read, nil
}

// keepDocuments keeps the documents of an offer by which new terms are asked for, beside those of the terms in force.
func (r *record) keepDocuments(of offer.Offer, digest string) {
	kept := map[string]map[string]string{}
	if now := r.Purchase.Terms.OfferDigest; r.Documents[now] != nil {
		kept[now] = r.Documents[now]
	}
	if documents := offer.Documents(of.Properties); documents != nil {
		kept[digest] = documents
	}
	r.Documents = kept
}

// text writes the record. One that is too long is written without what was only said: what a seller says keeps nobody from going on.
func (r *record) text() (string, error) {
	text, err := json.Marshal(r)
	if err == nil && len(text) > maxRecord {
		terse := *r
		terse.Note, terse.Purchase.History, terse.Purchase.Seen.Reason, terse.Purchase.Seen.Refused = "", nil, "", nil
		text, err = json.Marshal(terse)
	}
	if err == nil && len(text) > maxRecord {
		err = errors.New("it has more than 256 KiB")
	}
	if err != nil {
		return "", fmt.Errorf("write status.record: %w", err)
	}
	return string(text), nil
}

// overTotal returns why a contract would cost more in all than people pay, if so.
func overTotal(spec *connectorv1alpha1.PurchaseSpec, wanted bill.Contract) (string, error) {
	if spec.MaxTotal == nil {
		return "", nil
	}
	most, err := objects.ReadMoney(*spec.MaxTotal)
	if err != nil {
		return "", offer.In("spec.maxTotal", err)
	}
	after := wanted.All()
	if after.Within(most, spec.MaxTotal.Currency) {
		return "", nil
	}
	return fmt.Sprintf("It costs %s in all, and spec.maxTotal is %s %s.", after, most, spec.MaxTotal.Currency), nil
}

// tooExpensive returns why a price is more than people pay; empty if it is not. That is spec.maxPrice, or else what was listed.
func tooExpensive(spec *connectorv1alpha1.PurchaseSpec, asked offer.Price) (string, error) {
	most, field := spec.MaxPrice, "spec.maxPrice"
	if most == nil && spec.Listed != nil {
		most, field = &spec.Listed.Price, "spec.listed.price"
	}
	if most == nil {
		return "Say spec.maxPrice, the most that it may cost.", nil
	}
	limit, err := objects.ReadPrice(*most)
	if err != nil {
		return "", offer.In(field, err)
	}
	if asked.Currency == limit.Currency && asked.Compare(limit) <= 0 {
		return "", nil
	}
	return fmt.Sprintf("It costs %s, and %s is %s.", asked, field, limit), nil
}

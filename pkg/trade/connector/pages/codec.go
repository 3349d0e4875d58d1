// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages is how a connector remembers in Kubernetes what a registry has shown, so that the catalog is there while the registry is
// not, and is not loaded again after a restart: a number of CatalogPages for each registry, of which those are written that have changed.
//
// It does not verify what it keeps, and does not know who follows registries.
package pages

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const (
	// maxData bounds a page as it is stored, in bytes: as base64, the API takes a third more. maxText bounds what it says.
	maxData, maxText = 768 << 10, 32 << 20
)

var (
	// ErrTooLarge means that a page does not fit into an object.
	ErrTooLarge = errors.New("too large for a page")
	// ErrMalformed means that a page was not written by Encode.
	ErrMalformed = errors.New("malformed page")
)

// Page is a part of what a registry has shown: what is signed is as it was signed.
type Page struct {
	Parties []registryv1.Party `json:"parties,omitempty"`
	Offers  []registryv1.Offer `json:"offers,omitempty"`
}

// Encode returns the data of a CatalogPage. The error is ErrTooLarge.
func Encode(p Page) ([]byte, error) {
	var data bytes.Buffer
	packed := gzip.NewWriter(&data)
	if err := errors.Join(json.NewEncoder(packed).Encode(p), packed.Close()); err != nil {
		return nil, fmt.Errorf("write a page of %d offers: %w", len(p.Offers), err)
	}
	if data.Len() > maxData {
		return nil, fmt.Errorf("%w: %d bytes of at most %d", ErrTooLarge, data.Len(), maxData)
	}
	return data.Bytes(), nil
}

// Decode reads the data of a CatalogPage. The error is ErrMalformed.
func Decode(data []byte) (Page, error) {
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return Page{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	text, err := io.ReadAll(io.LimitReader(packed, maxText+1))
	if err != nil {
		return Page{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if len(text) > maxText {
		return Page{}, fmt.Errorf("%w: more than %d bytes of text", ErrMalformed, maxText)
	}
	var p Page
	if err := json.Unmarshal(text, &p); err != nil {
		return Page{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return p, nil
}

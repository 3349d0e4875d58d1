// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	strict "sigs.k8s.io/json"
)

// MaxSize is how many bytes an offer has at most as JSON.
const MaxSize = 16 << 10

// Errors of Parse, Encode and Validate, for errors.Is.
var (
	// ErrInvalid: this is no offer. The message names the field.
	ErrInvalid = errors.New("invalid offer")
	// ErrExpired: the offer is over.
	ErrExpired = errors.New("expired offer")
)

// document is an offer with text where the offer has values: what is wrong with one of
// them is said together with its place, which a decoder of JSON does not know.
type document struct {
	Offer

	IssuedAt   string         `json:"issuedAt"`
	ValidUntil string         `json:"validUntil"`
	Plans      []planDocument `json:"plans"`
	KPIs       []kpiDocument  `json:"kpis"`
}

type planDocument struct {
	Plan

	Resources   map[string]string            `json:"resources"`
	Range       *rangeDocument               `json:"range"`
	Price       priceDocument                `json:"price"`
	UnitPrices  map[string]unitPriceDocument `json:"unitPrices"`
	MinDuration string                       `json:"minDuration"`
	MaxDuration string                       `json:"maxDuration"`
	Notice      string                       `json:"notice"`
}

type rangeDocument struct {
	Min  map[string]string `json:"min"`
	Max  map[string]string `json:"max"`
	Step map[string]string `json:"step"`
}

type priceDocument struct {
	Price

	Amount string `json:"amount"`
}

type unitPriceDocument struct {
	Amount string `json:"amount"`
	Per    string `json:"per"`
}

type kpiDocument struct {
	KPI

	MeasuredAt string `json:"measuredAt"`
}

// jsonPath returns the path of a field in JSON: the decoder's also has the names of embedded types, which begin with capital letters, as no
// name of a document does.
func jsonPath(field string) string {
	return strings.Join(
		slices.DeleteFunc(strings.Split(field, "."), func(name string) bool { return name != "" && unicode.IsUpper(rune(name[0])) }), ".",
	)
}

// Parse reads an offer from JSON, and refuses unknown fields, fields that are there twice or in other
// letters, and everything that Validate refuses at any time. Errors are ErrInvalid and name the field.
func Parse(data []byte) (Offer, error) {
	switch {
	case len(data) > MaxSize:
		return Offer{}, fmt.Errorf("%w: it has %d bytes, which is more than %d", ErrInvalid, len(data), MaxSize)
	case !utf8.Valid(data):
		return Offer{}, fmt.Errorf("%w: it is not text in UTF-8", ErrInvalid)
	}
	var d document
	more, err := strict.UnmarshalStrict(data, &d)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		err = In(cmp.Or(jsonPath(mismatch.Field), "document"), fmt.Errorf("it cannot be a %s", mismatch.Value))
		return Offer{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	case err != nil:
		return Offer{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	case len(more) > 0:
		return Offer{}, fmt.Errorf("%w: %.200s", ErrInvalid, more[0].Error())
	}
	o, err := d.offer()
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return Offer{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return o, nil
}

// Encode returns a valid offer as JSON, always the same for the same offer: this is what its seller
// signs, and what Parse reads. Errors are ErrInvalid and name the field.
func Encode(o Offer) ([]byte, error) {
	data, err := encode(o)
	if err == nil && len(data) > MaxSize {
		return nil, fmt.Errorf("%w: it has %d bytes, which is more than %d", ErrInvalid, len(data), MaxSize)
	}
	return data, err
}

// encode writes an offer, whose text can be longer than the one that it was read from.
func encode(o Offer) ([]byte, error) {
	err := o.check()
	if err == nil {
		var data []byte
		if data, err = json.Marshal(o.canonical()); err == nil {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
}

// Fingerprint returns the SHA-256 of a valid offer as Encode writes it, as "sha256:" and hexadecimal
// digits; nothing for an offer that is not valid. Contracts name by it what they are about.
func (o Offer) Fingerprint() string {
	data, err := encode(o)
	if err != nil {
		return ""
	}
	digest := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(digest[:])
}

// canonical returns the offer with its times in UTC.
func (o Offer) canonical() Offer {
	o.IssuedAt, o.ValidUntil = o.IssuedAt.UTC(), o.ValidUntil.UTC()
	o.KPIs = slices.Clone(o.KPIs)
	for i := range o.KPIs {
		o.KPIs[i].MeasuredAt = o.KPIs[i].MeasuredAt.UTC()
	}
	return o
}

// Validate refuses an offer that is not one, by ErrInvalid, and by ErrExpired one that is over at a
// time. The clock of who issued it may be a little ahead.
func (o Offer) Validate(now time.Time) error {
	if err := o.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch {
	case o.IssuedAt.After(now.Add(maxSkew)):
		return fmt.Errorf("%w: %w", ErrInvalid, In("issuedAt", fmt.Errorf("%s has not come yet", o.IssuedAt.UTC().Format(time.RFC3339))))
	case !now.Before(o.ValidUntil):
		return fmt.Errorf("%w: %w", ErrExpired, In("validUntil", fmt.Errorf("%s has passed", o.ValidUntil.UTC().Format(time.RFC3339))))
	default:
		return nil
	}
}

// offer returns the offer that a document describes. The error names the first field in its
// order that is not what it should be.
func (d *document) offer() (Offer, error) {
	r, o := reader{}, d.Offer
	o.IssuedAt = read(&r, parseTime, d.IssuedAt, "issuedAt")
	o.ValidUntil = read(&r, parseTime, d.ValidUntil, "validUntil")
	o.Plans = make([]Plan, len(d.Plans))
	for i := range d.Plans {
		r.at = fmt.Sprintf("plans[%d].", i)
		o.Plans[i] = d.Plans[i].plan(&r)
	}
	if len(d.KPIs) > 0 {
		o.KPIs = make([]KPI, len(d.KPIs))
	}
	for i := range d.KPIs {
		r.at = fmt.Sprintf("kpis[%d].", i)
		o.KPIs[i] = d.KPIs[i].KPI
		o.KPIs[i].MeasuredAt = read(&r, parseTime, d.KPIs[i].MeasuredAt, "measuredAt")
	}
	return o, r.err
}

func (d *planDocument) plan(r *reader) Plan {
	p := d.Plan
	p.Resources = r.resources(d.Resources, "resources")
	if d.Range != nil {
		p.Range = &Range{
			Min: r.resources(d.Range.Min, "range.min"), Max: r.resources(d.Range.Max, "range.max"), Step: r.resources(d.Range.Step, "range.step"),
		}
	}
	p.Price = d.Price.Price
	p.Price.Amount = read(r, ParseAmount, d.Price.Amount, "price.amount")
	if len(d.UnitPrices) > 0 {
		p.UnitPrices = make(map[string]UnitPrice, len(d.UnitPrices))
	}
	for _, name := range slices.Sorted(maps.Keys(d.UnitPrices)) {
		p.UnitPrices[name] = UnitPrice{
			Amount: read(r, ParseAmount, d.UnitPrices[name].Amount, "unitPrices", name, ".amount"),
			Per:    read(r, ParseQuantity, d.UnitPrices[name].Per, "unitPrices", name, ".per"),
		}
	}
	p.MinDuration = r.duration(d.MinDuration, "minDuration")
	p.MaxDuration = r.duration(d.MaxDuration, "maxDuration")
	p.Notice = r.duration(d.Notice, "notice")
	return p
}

// reader reads the texts of a document, and keeps the first error.
type reader struct {
	// at is the path of what is being read, with a point at its end.
	at  string
	err error
}

// read reads one text. The field is followed by a key and what comes after the key, if it is in a map.
func read[T any](r *reader, parse func(string) (T, error), text, field string, key ...string) T {
	value, err := parse(text)
	if err == nil || r.err != nil {
		return value
	}
	if len(key) > 0 {
		field += fmt.Sprintf("[%.64q]", key[0]) + strings.Join(key[1:], "")
	}
	r.err = In(r.at+field, err)
	return value
}

func (r *reader) resources(texts map[string]string, field string) Resources {
	of, err := ParseResources(texts)
	if err != nil && r.err == nil {
		r.err = In(r.at+field, err)
	}
	return of
}

// duration reads a duration that need not be there.
func (r *reader) duration(text, field string) Duration {
	if text == "" {
		return 0
	}
	return read(r, ParseDuration, text, field)
}

func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || len(text) > maxText {
		return time.Time{}, fmt.Errorf("%.*q is not a time such as 2024-05-01T12:00:00Z", maxText, text)
	}
	return t.UTC(), nil
}
